"""Selects the bytes of a fetch that an application may see: no control, aborted or incomplete batches."""

from __future__ import annotations

from typing import Final, NamedTuple

from octavo.log.producer_state.aborted import AbortedRanges
from octavo.records.checksum import crc_of
from octavo.records.kernels.scan import BROKEN, MORE, header_extent
from octavo.records.layout import BATCH_HEADER, CRC_AT, MIN_SIZE, Attributes, Buffer
from octavo.records.offset_order import base_offset_at, is_misplaced

_HEADER: Final = BATCH_HEADER.only("base_offset", "length", "magic", "attributes", "last_offset_delta", "producer_id")
_CONTROL: Final = int(Attributes.CONTROL)
_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_NO_DATA: Final = _CONTROL | _TRANSACTIONAL


class Visible(NamedTuple):
    """Complete batches that an application may see."""

    data: Buffer
    next_offset: int  # offset after the last batch, visible or not


def visible(data: bytes, offset: int, aborted: AbortedRanges, *, verify: bool = True) -> Visible:
    """Select the batches that an application may see, in a fetch from `offset` on.

    A hidden batch is left out only if its checksum is right (unless `verify` is False). The selection ends with a
    damaged batch, or with bytes that are no batch; decoding these raises. A batch whose offsets are in doubt is left to
    the next fetch. That fetch begins with it and checks what is before it and after it.
    """
    position, end = 0, len(data)
    begin = 0  # start of the visible batches since the last hidden one
    parts: list[memoryview] = []
    unpack = _HEADER.unpack_from
    while (left := end - position) >= MIN_SIZE:
        if left < _HEADER.size:  # only an old message is this short
            base_offset, length, magic, attributes, delta, producer_id = unpack(data[position:] + bytes(_HEADER.size))
        else:
            base_offset, length, magic, attributes, delta, producer_id = unpack(data, position)
        outcome, size, _ = header_extent(length, magic, left)
        if outcome != MORE:
            if outcome == BROKEN:
                position = end
            break
        last_offset = base_offset if magic < 2 else base_offset + delta
        if base_offset != offset and position and not _is_next(data, position + size, base_offset, last_offset, offset):
            break
        if magic == 2 and attributes & _NO_DATA and _is_hidden(attributes, producer_id, base_offset, aborted):
            if verify and not _is_sound(data, position, size):
                position += size
                break
            if begin < position:
                parts.append(memoryview(data)[begin:position])
            begin = position + size
        if last_offset >= offset:
            offset = last_offset + 1
        position += size
    if not parts and begin == 0:
        return Visible(memoryview(data)[:position], offset)
    parts.append(memoryview(data)[begin:position])
    return Visible(b"".join(parts) if len(parts) > 1 else parts[0], offset)


def _is_next(data: bytes, end: int, base_offset: int, last_offset: int, offset: int) -> bool:
    """Whether a batch that does not begin at the expected `offset` is in its place, judging by the batch after it.

    Of the last batch, `Log.read` has found that out: it sees the batch after it, too.
    """
    if end == len(data):
        return not is_misplaced(base_offset, last_offset, offset - 1, None)
    behind = base_offset_at(data, end)
    return behind is not None and not is_misplaced(base_offset, last_offset, offset - 1, behind)


def _is_sound(data: bytes, position: int, size: int) -> bool:
    stored = int.from_bytes(data[position + CRC_AT : position + CRC_AT + 4], "big")
    return crc_of(memoryview(data)[position : position + size], 2) == stored


def _is_hidden(attributes: int, producer_id: int, base_offset: int, aborted: AbortedRanges) -> bool:
    return bool(attributes & _CONTROL) or aborted.holds(producer_id, base_offset)
