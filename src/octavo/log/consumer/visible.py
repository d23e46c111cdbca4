"""Which bytes of a fetch an application is to see: no control batches, no aborted ones, no batch that is cut."""

from __future__ import annotations

from typing import Final, NamedTuple

from octavo.log.committed import AbortedRanges
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD, MIN_LENGTH, Attributes, Buffer

_HEADER: Final = BATCH_HEADER.only("base_offset", "length", "magic", "attributes", "last_offset_delta", "producer_id")
_CONTROL: Final = int(Attributes.CONTROL)
_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_NO_DATA: Final = _CONTROL | _TRANSACTIONAL
_SMALLEST: Final = LOG_OVERHEAD + MIN_LENGTH


class Visible(NamedTuple):
    """Batches that are all there, and all to be seen."""

    data: Buffer
    next_offset: int  # behind the last batch, be it to be seen or not


def visible(data: bytes, offset: int, aborted: AbortedRanges) -> Visible:
    """What is to be seen of a fetch from `offset` on. What is no batch stays at the end, for who decodes it to say."""
    position, end = 0, len(data)
    begin = 0  # of what is to be seen, since the last that is not
    parts: list[memoryview] = []
    unpack = _HEADER.unpack_from
    while end - position >= _SMALLEST:
        if end - position < _HEADER.size:  # only an old message is as short
            base_offset, length, magic, attributes, delta, producer_id = unpack(data[position:] + bytes(_HEADER.size))
        else:
            base_offset, length, magic, attributes, delta, producer_id = unpack(data, position)
        size = length + LOG_OVERHEAD
        if length < MIN_LENGTH or not 0 <= magic <= 2:
            position = end
            break
        if size > end - position:
            break
        if magic < 2:
            offset = max(offset, base_offset + 1)
        else:
            offset = max(offset, base_offset + delta + 1)
            if attributes & _NO_DATA and _is_hidden(attributes, producer_id, base_offset, aborted):
                if begin < position:
                    parts.append(memoryview(data)[begin:position])
                begin = position + size
        position += size
    if not parts and begin == 0:
        return Visible(memoryview(data)[:position], offset)
    parts.append(memoryview(data)[begin:position])
    return Visible(b"".join(parts) if len(parts) > 1 else parts[0], offset)


def _is_hidden(attributes: int, producer_id: int, base_offset: int, aborted: AbortedRanges) -> bool:
    return bool(attributes & _CONTROL) or aborted.holds(producer_id, base_offset)
