"""Find the next batch after damage.

Only a right checksum makes bytes a batch. But checksums alone do not say which batch to continue with: a record's value
may itself hold batches. So the search tries, in this order:

1. the batch that the damaged batch's own length leads to, if its checksum is right: then only one batch is lost;
2. the first batch whose offsets follow closely after the last good batch;
3. the first batch whose offsets are higher;
4. the first batch at all, unless a torn tail explains the bytes as well.

The search is linear in the number of bytes, whatever they are. Each byte is searched once, by regular expressions for
the few header bytes that have limited values. A checksum costs the same for every length that a false header claims.
"""

from __future__ import annotations

import re
import struct
from array import array
from typing import Final

from octavo.records.checksum import RangeChecksum, covered_from, stored_crc_at
from octavo.records.kernels.machine import read_i64, read_u32
from octavo.records.kernels.record import MIN_RECORD_SIZE
from octavo.records.kernels.scan import MORE, TORN, entry_extent
from octavo.records.layout import (
    BATCH_HEADER,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_V0,
    MESSAGE_V1,
    MIN_LENGTH,
    Attributes,
)

_WINDOW: Final = 1 << 18  # bytes that are searched at a time
_LOOKAHEAD: Final = 64  # number of candidates among which to look for one that follows closely
_OFFSETS_PER_BYTE: Final = 16  # highest density of lost records at which the next batch counts as close

_CODEC: Final = int(Attributes.CODEC)
_NOT_NEGATIVE: Final = rb"[\x00-\x7f]"  # the first byte of a number
_NOT_BELOW_MINUS_ONE: Final = rb"[\x00-\x7f\xff]"
_KEY_LENGTH: Final = rb"(?:\xff{4}|\x00)"  # null, or below 16 MiB

# A byte that follows eight zeros cannot be a magic byte, because the length would be zero.
_IN_ZEROS: Final = rb"(?<=\x00{9})\x00*|"


def _header(magic: int, ahead: list[tuple[int, bytes, int]], zeros: bytes = b"") -> re.Pattern[bytes]:
    """Return a pattern for the magic byte of a header; `ahead` lists what must follow, as (position, pattern, size).

    The pattern begins with one plain byte, for which `re` searches fast, and consumes no other, so that matches may
    overlap.
    """
    # The length is before the magic byte. It is not negative, and not below the minimum.
    behind = rb"(?<=%s.{%d})(?<!\x00{3}[\x00-\x%02x].{%d})" % (
        _NOT_NEGATIVE,
        MAGIC_AT - LENGTH_AT,
        MIN_LENGTH - 1,
        MAGIC_AT - LENGTH_AT - 3,
    )
    at = MAGIC_AT + 1
    rest = b""
    for position, expected, size in ahead:
        rest += b".{%d}" % (position - at) + expected
        at = position + size
    return re.compile(b"\\x%02x(?:%s%s(?=%s))" % (magic, zeros, behind, rest), re.DOTALL)


# The high byte of the attributes is always written as zero.
_ATTRIBUTES_V2: Final = rb"\x00[\x00-\x04\x08-\x0c\x10-\x14\x18-\x1c\x20-\x7f]"

_HEADERS: Final = (
    _header(0, [(MESSAGE_V0.at("attributes"), rb"[\x00-\x03]", 1), (MESSAGE_V0.size, _KEY_LENGTH, 1)], _IN_ZEROS),
    _header(1, [(MESSAGE_V1.at("attributes"), rb"[\x00-\x03\x08-\x0b]", 1), (MESSAGE_V1.size, _KEY_LENGTH, 1)]),
    _header(
        2,
        [
            (BATCH_HEADER.at("attributes"), _ATTRIBUTES_V2, 2),
            (BATCH_HEADER.at("last_offset_delta"), _NOT_NEGATIVE, 1),
            (BATCH_HEADER.at("producer_id"), _NOT_BELOW_MINUS_ONE, 1),
            (BATCH_HEADER.at("record_count"), _NOT_NEGATIVE, 1),
        ],
    ),
)


_LENGTH: Final = struct.Struct(">i")
_HEADER_SIZES: Final = (MESSAGE_V0.size, MESSAGE_V1.size)
_LENGTHS: Final = tuple(  # length of the message, and length of its key
    struct.Struct(f">{LENGTH_AT}xi{header_size - LOG_OVERHEAD}xi") for header_size in _HEADER_SIZES
)


class Resync:
    """Searches `buffer[start:end]` for batches with a right checksum, always forward."""

    last_offset: int | None  # last offset of the last good batch; the caller updates it
    is_torn: bool | None  # whether a torn tail explains the bytes as well; None to tell from the damaged batch

    def __init__(self, buffer: memoryview, start: int, end: int, *, any_offset: bool = False) -> None:
        """Prepare a search. `any_offset`: after step 1, take the first batch at all, whatever its offset."""
        self.last_offset = None
        self.is_torn = None
        self._any_offset = any_offset
        self._buffer = buffer
        self._end = end
        old = RangeChecksum(buffer, start, 0)
        self._checksums = (old, old, RangeChecksum(buffer, start, 2))
        # The candidates found so far, all with right checksums, in the order of their positions.
        self._positions = array("q")
        self._offsets = array("q")
        self._next = 0  # index of the first candidate that the walk has not passed
        self._searched = start
        self._highest: array[int] | None = None  # for each candidate: the highest offset from it on

    def checksum(self, position: int, size: int, magic: int) -> int:
        """Compute the checksum that the batch at `position` should have stored."""
        return self._checksums[magic].of(position + covered_from(magic), position + size)

    def find(self, damaged: int, size: int) -> tuple[int, int] | None:
        """Return the position and size of the batch to continue with, or None.

        `size` is the size that the damaged batch declares; 0 if that is impossible.
        """
        outcome, _, _ = entry_extent(self._buffer, damaged, self._end)
        torn = outcome == TORN
        if size:
            behind = damaged + size
            if behind == self._end:
                return None
            outcome, next_size, _ = entry_extent(self._buffer, behind, self._end)
            if outcome == MORE and self._checks_out(behind, next_size):
                return behind, next_size
            torn = outcome == TORN
        chosen = self._choose(damaged, torn if self.is_torn is None else self.is_torn)
        if chosen is None:
            return None
        return self._positions[chosen], entry_extent(self._buffer, self._positions[chosen], self._end)[1]

    def _choose(self, damaged: int, torn: bool) -> int | None:
        """Return the index of the best candidate after `damaged`, or None.

        If a torn tail explains the bytes as well, only candidates with a higher offset count.
        """
        self._searched = max(self._searched, damaged + 1)
        while self._next < len(self._positions) and self._positions[self._next] <= damaged:
            self._next += 1
        if self._any_offset:
            return self._next if self._next < len(self._positions) or self._search() else None
        last = -1 if self.last_offset is None else self.last_offset
        expected = (
            read_i64(self._buffer, damaged) if self.last_offset is None and self._end - damaged >= 8 else last + 1
        )
        forward = None
        at = self._next
        while at < len(self._positions) or self._search():
            offset = self._offsets[at]
            passed = self._positions[at] - damaged
            within = at - self._next < _LOOKAHEAD
            if within and expected <= offset <= expected + passed * _OFFSETS_PER_BYTE:
                return at
            if offset > last and forward is None:
                forward = at
            if not within and (forward is not None or (self._highest and self._highest[at] <= last)):
                break
            at += 1
        if forward is None and not torn and self._next < len(self._positions):
            return self._next
        return forward

    def _search(self) -> bool:
        """Continue the search, window by window; returns True if there are new candidates."""
        known = len(self._positions)
        while self._searched < self._end and len(self._positions) == known:
            window_end = min(self._searched + _WINDOW, self._end)
            first, behind = self._searched + MAGIC_AT, window_end + MAGIC_AT
            ahead = min(behind + BATCH_HEADER.size, self._end)
            hits = []
            for magic, header in enumerate(_HEADERS):
                for match in header.finditer(self._buffer, min(first, ahead), ahead):
                    if match.start() >= behind:
                        break
                    hits.append((match.start() - MAGIC_AT, magic))
            for position, magic in sorted(hits):
                size = self._plausible_size(position, magic)
                if size and self._checks_out(position, size):
                    self._positions.append(position)
                    self._offsets.append(read_i64(self._buffer, position))
            self._searched = window_end
        if self._searched >= self._end and self._highest is None:
            self._highest = array("q", self._offsets)
            for at in range(len(self._highest) - 2, -1, -1):
                self._highest[at] = max(self._highest[at], self._highest[at + 1])
        return len(self._positions) > known

    def _checks_out(self, position: int, size: int) -> bool:
        magic = self._buffer[position + MAGIC_AT]
        return read_u32(self._buffer, position + stored_crc_at(magic)) == self.checksum(position, size, magic)

    def _plausible_size(self, position: int, magic: int) -> int:
        """Return the size of the possible batch at `position`, or 0 if no writer would write such a batch."""
        if magic < 2 and not self._is_plausible_message(position, magic):
            return 0
        outcome, size, _ = entry_extent(self._buffer, position, self._end)
        if outcome != MORE or self._buffer[position] > 0x7F:
            return 0
        return size if magic < 2 or self._is_plausible_v2(position, size) else 0

    def _is_plausible_message(self, position: int, magic: int) -> bool:
        """Return whether a message's lengths agree. Readers ignore bytes after the value, but no writer leaves any.

        Zeros are common, and each may be the magic byte of a message of magic 0, so this has to be quick.
        """
        header_size = _HEADER_SIZES[magic]
        if header_size + 2 * _LENGTH.size > self._end - position:
            return False
        length, key_length = _LENGTHS[magic].unpack_from(self._buffer, position)
        left = length - (header_size - LOG_OVERHEAD + 2 * _LENGTH.size) - max(key_length, 0)
        value_at = position + header_size + _LENGTH.size + max(key_length, 0)
        if left < 0 or left > self._end - value_at - _LENGTH.size:
            return False
        (value_length,) = _LENGTH.unpack_from(self._buffer, value_at)
        return bool(left == max(value_length, 0))

    def _is_plausible_v2(self, position: int, size: int) -> bool:
        header = BATCH_HEADER.read(self._buffer, position)
        if header.leader_epoch < -1 or header.producer_epoch < -1 or header.base_sequence < -1:
            return False
        if header.record_count == 0:
            return size == BATCH_HEADER.size
        smallest = 1 if header.attributes & _CODEC else header.record_count * MIN_RECORD_SIZE
        return header.record_count - 1 <= header.last_offset_delta and size - BATCH_HEADER.size >= smallest
