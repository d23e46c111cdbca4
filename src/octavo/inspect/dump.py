"""The public class that dumps one file: `Dump`. The lines that it yields are described in `record_lines`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from octavo.choices import chosen
from octavo.inspect.decoding.record_decoding import RecordDecoding
from octavo.inspect.record_lines import Binary, RecordLines
from octavo.inspect.segment_file import SegmentFile
from octavo.inspect.wanted import EVERYTHING, KeyRange, Range, Wanted
from octavo.records import Damage


class Dump(Iterable[str]):
    """The records of one file as lines of JSON, each with its newline. Can be iterated over once.

    verify: compare checksums; for batches outside the range of offsets, only if a gap in the offsets follows
    resync: continue after damage, and record it in `damage`
    offsets, timestamps: the first, and the one after the last; None for no limit. Timestamps are in milliseconds.
        Batches outside the offsets are not decoded
    keys: only records whose key is in one of these ranges
    decoding: decode keys and values, too (`octavo.inspect.decoding`)

    In a file that is named like a segment, batches whose offsets do not increase are damage, too.

    Raises `Unreadable` if the file cannot be opened. Raises `InvalidInput` for a range that ends before it begins, and
    for the other kinds of files that Kafka keeps beside segments.
    Without `resync`, iterating yields everything before the first damage, and then raises `FormatError`. If the file is
    cut meanwhile, it raises `Unreadable`.
    """

    def __init__(
        self,
        path: Path,
        *,
        binary: Binary | str = Binary.HEX,
        verify: bool = True,
        resync: bool = False,
        offsets: Range = EVERYTHING,
        timestamps: Range = EVERYTHING,
        keys: Iterable[KeyRange] = (),
        decoding: RecordDecoding | None = None,
    ) -> None:
        wanted = Wanted(offsets, timestamps, tuple(keys))
        self._segment: Final = SegmentFile(path, wanted=wanted, verify=verify, resync=resync)
        how = chosen("binary", binary, Binary, {each.value: each for each in Binary})
        self._lines: Final = RecordLines(self._segment, how, decoding)

    @property
    def size(self) -> int:
        """The number of bytes of the file, as far as they are read."""
        return self._segment.size

    @property
    def position(self) -> int:
        """The position after the batch that is being iterated over."""
        return self._segment.position

    @property
    def damage(self) -> list[Damage]:
        """The damage that was skipped so far. Only with `resync`."""
        return self._segment.damage

    @property
    def torn_tail(self) -> int | None:
        """The position of an incomplete batch at the end of the file, or None. Known after the iteration."""
        return self._segment.torn_tail

    @property
    def zero_tail(self) -> int | None:
        """The position of zeros that fill the file to its end, as if allocated in advance, or None. Not damage."""
        return self._segment.zero_tail

    def grow(self) -> bool:
        """Look for what was written to the file since. Returns whether it has grown, and can be iterated over again.

        Raises `Unreadable` if the file is shorter than what was read of it.
        """
        return self._segment.grow()

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the same lines as UTF-8, many at a time, which is faster. A block is valid until the next."""
        return self._lines.blocks()
