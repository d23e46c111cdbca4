"""Leave out records by their keys, in the worker, before anything goes to Spark's JVM."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from octavo.errors import InvalidConfig
from octavo.spark.values import Values

if TYPE_CHECKING:
    import pyarrow as pa


class KeyFilter(NamedTuple):
    """What keys have to be like. A record without a key has none that could be."""

    equals: bytes | None
    prefix: bytes | None

    def keep(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that have such a key."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for batch in batches:
            keys = batch.column("key")
            kept = None if self.equals is None else pc.equal(keys, pa.scalar(self.equals, pa.binary()))
            if self.prefix is not None:
                begins = pc.starts_with(keys, self.prefix)
                kept = begins if kept is None else pc.and_(kept, begins)
            rows = batch.filter(kept)  # null is not true
            if rows.num_rows:
                yield rows


def read_key_filter(values: Values) -> KeyFilter | None:
    """Read the options `keyEquals` and `keyPrefix`; None if there is neither. Raises `InvalidConfig`."""
    key_filter = KeyFilter(_read_bytes(values, "keyEquals"), _read_bytes(values, "keyPrefix"))
    return None if key_filter == (None, None) else key_filter


def _read_bytes(values: Values, name: str) -> bytes | None:
    """Read bytes: text, or `text:`, `hex:` or `base64:` and something of that form."""
    given = values.options.get(name.lower())
    if given is None:
        return None
    form, _, rest = given.partition(":")
    try:
        match form:
            case "hex":
                return bytes.fromhex(rest)
            case "base64":
                return base64.b64decode(rest, validate=True)
            case "text":
                return rest.encode()
            case _:
                return given.encode()
    except (ValueError, binascii.Error) as error:
        raise InvalidConfig(name, given, f"it is no {form}: {error}") from None
