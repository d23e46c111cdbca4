"""Select records by ranges of offsets, timestamps and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from octavo.errors import InvalidInput
from octavo.records import Batch, Record

if TYPE_CHECKING:
    import pyarrow as pa

Range = tuple[int | None, int | None]  # half open; None leaves an end open
EVERYTHING: Range = (None, None)


class KeyRange(NamedTuple):
    """Keys from `first` on and below `behind`, compared byte by byte; None leaves an end open."""

    first: bytes | None
    behind: bytes | None

    @classmethod
    def exactly(cls, key: bytes) -> KeyRange:
        """Return the range that holds only this key."""
        return cls(key, key + b"\0")

    @classmethod
    def with_prefix(cls, prefix: bytes) -> KeyRange:
        """Return the range of all keys that begin with `prefix`."""
        stem = prefix.rstrip(b"\xff")
        return cls(prefix, stem[:-1] + bytes([stem[-1] + 1]) if stem else None)

    def has(self, key: bytes) -> bool:
        """Return whether the range holds this key."""
        return (self.first is None or key >= self.first) and (self.behind is None or key < self.behind)


class Wanted(NamedTuple):
    """Which records are wanted: those inside of both ranges and, if there are any, inside one of the ranges of keys.

    A record without a key is outside every range of keys.
    """

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING  # in milliseconds
    keys: tuple[KeyRange, ...] = ()

    def check(self) -> None:
        """Raise `InvalidInput` if a range ends before it begins."""
        for name, (first, behind) in (("offsets", self.offsets), ("timestamps", self.timestamps)):
            if first is not None and behind is not None and behind < first:
                raise InvalidInput(f"the range of {name} ends at {behind}, before it begins at {first}")
        for begin, end in self.keys:
            if begin is not None and end is not None and end < begin:
                raise InvalidInput(f"the range of keys ends at {end!r}, before it begins at {begin!r}")

    @property
    def is_everything(self) -> bool:
        """Whether all records are wanted."""
        return self == Wanted()

    def may_have(self, batch: Batch) -> bool:
        """Return whether the batch may have records in the ranges.

        The header of a wrapper message of magic 0 or 1 has only the last offset. If that is 0, as some producers left
        it, not even the last offset is known. Timestamps in a header are believed only as an upper bound.
        """
        first, behind = self.offsets
        is_wrapper = batch.count is None
        ends_anywhere = is_wrapper and batch.last_offset == 0
        if first is not None and batch.last_offset < first and not ends_anywhere:
            return False
        return behind is None or is_wrapper or batch.base_offset < behind

    def has(self, record: Record) -> bool:
        """Return whether a record is wanted."""
        first, behind = self.offsets
        if (first is not None and record.offset < first) or (behind is not None and record.offset >= behind):
            return False
        first, behind = self.timestamps
        time = record.timestamp_ms
        if (first is not None and time < first) or (behind is not None and time >= behind):
            return False
        key = record.key
        return not self.keys or (key is not None and any(each.has(key) for each in self.keys))

    def with_keys(self, chunk: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of a chunk whose keys are wanted."""
        if not self.keys:
            return chunk
        import pyarrow as pa
        import pyarrow.compute as pc

        keys = chunk.column("key")
        chosen = pa.scalar(False)
        for first, behind in self.keys:
            inside = pc.is_valid(keys)
            if first is not None:
                inside = pc.and_(inside, pc.greater_equal(keys, pa.scalar(first, pa.binary())))
            if behind is not None:
                inside = pc.and_(inside, pc.less(keys, pa.scalar(behind, pa.binary())))
            chosen = pc.or_(chosen, inside)
        return chunk.filter(chosen)
