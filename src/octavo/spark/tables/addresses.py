"""The address of a table, for the libraries that write Delta and Iceberg.

The user gives one address, in the way of pyarrow: a local path, or for example

    s3://bucket/path?region=eu-central-1&endpoint_override=127.0.0.1%3A9000&scheme=http

Tasks write data files there with pyarrow. The libraries take the same address without the query, and options for what
was in it. Other file systems than S3 are found by their address alone, with credentials from the environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from octavo.errors import InvalidInput
from octavo.spark.files import Root, children, shown

_S3: Final = ("s3", "s3a", "s3n")
_MISREAD: Final = "%?#"  # one library or the other takes these as parts of an address, even in a local path


class TableAddress(NamedTuple):
    """Where a table is."""

    root: Root  # for pyarrow
    plain: str  # for the libraries: a local path, or an address without user and query
    s3: dict[str, str]  # region, endpoint, access_key and secret_key, as far as the address tells them

    def __str__(self) -> str:
        return self.plain

    def has_only(self, *names: str) -> bool:
        """Whether nothing but these files and folders is there."""
        storage, path = self.root.storage(), self.root.path()
        return not storage.is_folder(path) or children(storage, path).keys() <= set(names)


def parse_address(address: str) -> TableAddress:
    """Read the address that the user gave. Raises `InvalidInput` if the libraries would misread it."""
    if address.startswith("file:"):
        address = unquote(urlsplit(address).path)
    if Root(address).is_local:
        path = str(Path(address).expanduser().absolute())
        if any(letter in path for letter in _MISREAD):
            raise InvalidInput(f"a Delta or Iceberg table cannot be at a path with one of {_MISREAD}: {path}")
        return TableAddress(Root(path), path, {})
    root = Root(address.rstrip("/") if "?" not in address else address)
    parts = urlsplit(root.address)
    plain = shown(root.address).rstrip("/")
    if parts.scheme not in _S3:
        return TableAddress(root, plain, {})
    query = dict(parse_qsl(parts.query))
    s3 = {"region": query.get("region"), "access_key": parts.username, "secret_key": parts.password}
    if endpoint := query.get("endpoint_override"):
        s3["endpoint"] = endpoint if "://" in endpoint else f"{query.get('scheme', 'https')}://{endpoint}"
    known = {name: unquote(value) for name, value in s3.items() if value}
    return TableAddress(root, "s3" + plain[len(parts.scheme) :], known)
