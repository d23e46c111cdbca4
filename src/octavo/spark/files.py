"""Access to logs on a local disk, or on any file system that pyarrow or fsspec supports.

A `Root` is a path as the user gave it. It is sent to the tasks, which open it again. Files below it have paths of its
file system, and are read through the `Storage` of `octavo.log`, so that the same code reads local and remote logs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from octavo.errors import BadDirectory, InvalidInput
from octavo.log.storage import DISK, File, FileStatus, Storage

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|file:/")
_BLOCK: Final = 64 << 10  # number of bytes that a small read of a remote file fetches
_ALIASES: Final = {"s3a": "s3", "s3n": "s3"}  # Hadoop's names of schemes
_MAGIC: Final = re.compile(r"[*?\[]")
_REMOTE_MAGIC: Final = re.compile(r"[*\[]")  # in an address, a question mark begins the query
# User name and password before the host. The password may contain a slash, but not directly after nothing but digits:
# in `host:80/`, those are a port.
_USER: Final = re.compile(r"(?<=://)[^/@]*:(?:[^/]*|(?!\d+/)[^@]*)@")


def shown(address: str) -> str:
    """Return an address for messages, without the user name, password and query, which may contain secrets."""
    if _SCHEME.match(address) is None:
        return address
    return _USER.sub("", address.partition("?")[0], count=1)


class Root(NamedTuple):
    """A local path or the address of a remote one, without wildcards."""

    address: str

    def __repr__(self) -> str:
        return f"Root({shown(self.address)!r})"

    @property
    def is_local(self) -> bool:
        """Whether this is a path on a local disk."""
        return _SCHEME.match(self.address) is None

    def storage(self) -> Storage:
        """Return the storage to read the files with. Raises `InvalidInput` if no file system has this address."""
        return DISK if self.is_local else _remote(self.address)[0]

    def path(self) -> Path:
        """Return the path in the file system, without scheme and host."""
        return Path(self.address) if self.is_local else _remote(self.address)[1]


class FoundPath(NamedTuple):
    """A file or folder that a given path leads to."""

    root: Root
    path: Path


def find_paths(given: str) -> list[FoundPath]:
    """Find the files and folders that a path, an address or a pattern matches. Raises `BadDirectory` if none does."""
    if given.startswith("file:"):
        given = unquote(urlsplit(given).path)
    if _SCHEME.match(given) is None:
        return _find_local(given)
    return _find_remote(given)


def _find_local(given: str) -> list[FoundPath]:
    path = Path(given).expanduser().absolute()
    if path.exists() or not _MAGIC.search(given):
        if not path.exists():
            raise BadDirectory(path, "there is no such file or folder")
        return [FoundPath(Root(str(path)), path)]
    matches = sorted(map(str, Path(path.anchor).glob(str(path.relative_to(path.anchor)))))
    if not matches:
        raise BadDirectory(path, "no file and no folder matches this pattern")
    return [FoundPath(Root(match), Path(match)) for match in matches]


def _find_remote(given: str) -> list[FoundPath]:
    address, question, query = given.partition("?")
    pattern = _REMOTE_MAGIC.search(address)
    fixed = address[: address.rindex("/", 0, pattern.start())] if pattern else address
    root = Root(fixed.rstrip("/") + question + query)
    storage, path = _remote(root.address)
    if pattern is None:
        if not storage.exists(path):
            raise BadDirectory(shown(root.address), "there is no such file or folder")
        return [FoundPath(root, path)]
    matches = list(_match(storage, path, address[len(fixed) :].strip("/").split("/")))
    if not matches:
        raise BadDirectory(shown(given), "no file and no folder matches this pattern")
    return [FoundPath(root, match) for match in matches]


def _match(storage: RemoteStorage, folder: Path, patterns: list[str]) -> Iterator[Path]:
    first, *rest = patterns
    if not storage.is_folder(folder):
        return
    for name, is_folder in sorted(storage.children(folder).items()):
        if fnmatchcase(name, first) and (is_folder or not rest):
            if rest:
                yield from _match(storage, folder / name, rest)
            else:
                yield folder / name


def children(storage: Storage, folder: Path) -> dict[str, bool]:
    """Return the names in a folder, and for each whether it is a folder itself."""
    if isinstance(storage, RemoteStorage):
        return storage.children(folder)
    return {path.name: path.is_dir() for path in folder.iterdir()}


class RemoteFile(File):
    """A remote file. Each read is a request, except small ones in the block that was fetched last."""

    __slots__ = ("_block", "_file")

    def __init__(self, filesystem: FileSystem, path: Path) -> None:
        self._file = filesystem.open_input_file(str(path))
        self._block = (0, b"")  # position and bytes of the block that the last small read fetched
        self.path = path

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # `__init__` may have failed to open the file
            self.close()

    def close(self) -> None:
        """Close the file. May be called more than once."""
        self._file.close()

    @property
    def is_closed(self) -> bool:
        """Whether the file is closed."""
        return bool(self._file.closed)

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return int(self._file.size())

    def read_at(self, size: int, position: int) -> bytes:
        """Read `size` bytes from `position`, or fewer if the file ends before."""
        if size >= _BLOCK:
            return self._read(size, position)
        start, block = self._block
        end = min(position + size, self.size())
        if position < start or end > start + len(block):
            start, block = self._block = position, self._read(_BLOCK, position)
        return block[position - start : max(position, end) - start]

    def _read(self, size: int, position: int) -> bytes:
        size = min(size, self.size() - position)
        return bytes(self._file.read_at(size, position)) if size > 0 else b""

    def next_data(self, position: int) -> int:
        """Return `position`: remote file systems do not report holes."""
        return position

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes read."""
        data = self._read(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)


class RemoteStorage(Storage):
    """Read-only access to files through a pyarrow file system."""

    def __init__(self, filesystem: FileSystem) -> None:
        self.filesystem: Final = filesystem

    def open(self, path: Path) -> File:
        """Open an existing file for reading."""
        return RemoteFile(self.filesystem, path)

    def status(self, path: Path) -> FileStatus:
        """Return the status of a file. A file that was written again has another identity."""
        info = self.filesystem.get_file_info(str(path))
        if not info.is_file:
            raise FileNotFoundError(str(path))
        return _status(info)

    def identity(self, file: File) -> int:
        """Return the identity of an open file, as in `status`."""
        return self.status(file.path).identity

    def exists(self, path: Path) -> bool:
        """Whether there is a file or a folder at this path."""
        return bool(self.filesystem.get_file_info(str(path)).type.name != "NotFound")

    def is_folder(self, path: Path) -> bool:
        """Whether there is a folder at this path, or anything below it."""
        return bool(self.filesystem.get_file_info(str(path)).type.name == "Directory")

    def files(self, folder: Path, suffix: str | tuple[str, ...]) -> dict[str, FileStatus]:
        """Return the files in a folder whose names end with `suffix`, with their status, from one listing."""
        infos = {info.base_name: info for info in self._list(folder) if info.base_name.endswith(suffix)}
        return {name: _status(info) for name, info in sorted(infos.items())}

    def children(self, folder: Path) -> dict[str, bool]:
        """Return the names in a folder, and for each whether it is a folder itself."""
        return {info.base_name: info.type.name == "Directory" for info in self._list(folder)}

    def _list(self, folder: Path) -> list[Any]:
        from pyarrow.fs import FileSelector

        return list(self.filesystem.get_file_info(FileSelector(str(folder))))


def _status(info: Any) -> FileStatus:
    """Return the status of a remote file.

    Remote files have no inode numbers, and many may have been written in the same second. So the identity is computed
    from path, time and size.
    """
    modified_ns = int(info.mtime_ns or 0)
    told = f"{info.path}\n{modified_ns}\n{info.size}"
    identity = int.from_bytes(blake2b(told.encode(), digest_size=8).digest(), "big")
    return FileStatus(identity, int(info.size), modified_ns)


@cache
def _remote(address: str) -> tuple[RemoteStorage, Path]:
    """Return the storage for an address, and the path in it."""
    scheme, _, rest = address.partition("://")
    address = f"{_ALIASES.get(scheme, scheme)}://{rest}"
    try:
        filesystem, path = _open_filesystem(address)
    except OSError as error:
        reason = _without_secrets(str(error), address)
        raise BadDirectory(shown(address), f"its file system cannot be reached: {reason}") from None
    return RemoteStorage(filesystem), cast(Path, PurePosixPath(path))


def _open_filesystem(address: str) -> tuple[FileSystem, str]:
    from pyarrow import ArrowInvalid, ArrowNotImplementedError
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

    try:
        filesystem, path = FileSystem.from_uri(address)
    except (ArrowInvalid, ArrowNotImplementedError) as error:
        refused = _without_secrets(str(error), address)
    else:
        return filesystem, path
    scheme = address.partition(":")[0]
    try:
        from fsspec.core import url_to_fs

        other, path = url_to_fs(address)
    except ImportError:
        reason = f"pyarrow says: {refused}. With fsspec, and its package for this scheme, it may be read"
        raise InvalidInput(f"nothing here reads {scheme}:// ({reason})") from None
    except ValueError as error:
        reason = f"pyarrow says: {refused}; fsspec says: {_without_secrets(str(error), address)}"
        raise InvalidInput(f"nothing here reads {scheme}:// ({reason})") from None
    return PyFileSystem(FSSpecHandler(other)), path


def _without_secrets(text: str, address: str) -> str:
    """Remove the secrets of an address from a library's error message."""
    before, _, query = address.partition("?")
    user = _USER.search(before)
    said = text.replace(address, shown(address))
    for secret in (query, "" if user is None else user[0]):
        said = said.replace(secret, "") if secret else said
    return said
