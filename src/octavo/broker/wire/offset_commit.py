"""Read OffsetCommit requests and write their responses, versions 2 to 10, by hand.

A consumer of very many partitions commits all their offsets at once, without metadata as a rule. Then all partitions of
a topic have the same size, and are read and written together. A test holds this equal to the codec for all messages.
Versions: 2 to 4 say for how long offsets are kept, 3 can throttle, 6 has leader epochs, 7 static members, 8 is
flexible, 10 names topics by their id.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from octavo.broker.wire.primitives import count, encode_count, encode_text, sized, skip_tagged, take
from octavo.errors import MalformedRequest

_LAST_WITH_RETENTION: Final = 4
_THROTTLE: Final = 3
_LEADER_EPOCH: Final = 6
_STATIC_MEMBERS: Final = 7
_FLEXIBLE: Final = 8
TOPIC_IDS: Final = 10  # the first version that names topics by their ids

_NO_EPOCH: Final = -1
_NEVER: Final = -1
_UUID_SIZE: Final = 16
_GENERATION: Final = struct.Struct(">i")
_RETENTION: Final = struct.Struct(">q")
_OFFSET: Final = struct.Struct(">iq")  # partition, offset
_OFFSET_AND_EPOCH: Final = struct.Struct(">iqi")
_WITHOUT_METADATA: Final = struct.Struct(">iqiBB")  # the same, the length of the metadata, and no tagged fields
_NULL_OR_EMPTY: Final = {0, 1}  # lengths are one more than they say
_NO_METADATA: Final = (None, "")  # by those
_RESULT: Final = struct.Struct(">ih")  # partition, error code
_FLEXIBLE_RESULT: Final = struct.Struct(">ihx")  # and no tagged fields
_SHORT_BODY: Final = 256  # bytes
_SHORT_BODIES: Final = 512

TopicKey = str | bytes  # the name of a topic, or its id from version 10 on
PartitionOffset = tuple[int, int, int, str | None]  # partition, offset, leader epoch, metadata
PartitionResult = tuple[int, int]  # partition, error code


class OffsetCommitRequest(NamedTuple):
    """An OffsetCommit request."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[tuple[TopicKey, list[PartitionOffset]]]


_read_text: Final = {each: sized("string", flexible=each, nullable=False)[0] for each in (False, True)}
_read_nullable: Final = {each: sized("string", flexible=each, nullable=True)[0] for each in (False, True)}
_read_count: Final = {each: count(flexible=each, nullable=False)[0] for each in (False, True)}


def read_offset_commit(body: memoryview, version: int) -> OffsetCommitRequest:
    """Read an OffsetCommit request. Raises `MalformedRequest`.

    Who consumes nothing commits the same again and again: two requests with the same bytes may be one object.
    """
    try:
        return _read_short(bytes(body), version) if len(body) <= _SHORT_BODY else _read(body, version)
    except struct.error:
        raise MalformedRequest("an OffsetCommit request ends early") from None


@lru_cache(_SHORT_BODIES)
def _read_short(body: bytes, version: int) -> OffsetCommitRequest:
    return _read(memoryview(body), version)


def _read(body: memoryview, version: int) -> OffsetCommitRequest:
    flexible = version >= _FLEXIBLE
    group_id, position = _read_text[flexible](body, 0)
    (generation,) = _GENERATION.unpack_from(body, position)
    member_id, position = _read_text[flexible](body, position + _GENERATION.size)
    instance_id, retention_ms = None, _NEVER
    if version >= _STATIC_MEMBERS:
        instance_id, position = _read_nullable[flexible](body, position)
    if version <= _LAST_WITH_RETENTION:
        (retention_ms,) = _RETENTION.unpack_from(body, position)
        position += _RETENTION.size
    number, position = _read_count[flexible](body, position)
    topics = []
    for _ in range(number):
        topic: TopicKey
        if version >= TOPIC_IDS:
            view, position = take(body, position, _UUID_SIZE)
            topic = bytes(view)
        else:
            topic, position = _read_text[flexible](body, position)
        partitions, position = _read_partitions(body, position, version)
        topics.append((topic, partitions))
    if flexible:
        skip_tagged(body, position)
    return OffsetCommitRequest(group_id, generation, member_id, instance_id, retention_ms, topics)


def _read_partitions(body: memoryview, position: int, version: int) -> tuple[list[PartitionOffset], int]:
    """Read the partitions of a topic, and the end of the topic."""
    flexible = version >= _FLEXIBLE
    number, position = _read_count[flexible](body, position)
    if not flexible:
        return _read_each(body, position, number, version)
    end = position + number * _WITHOUT_METADATA.size
    if position < end <= len(body):
        *numbers, lengths, tags = zip(*_WITHOUT_METADATA.iter_unpack(body[position:end]), strict=True)
        if not any(tags) and set(lengths) <= _NULL_OR_EMPTY:
            metadata = map(_NO_METADATA.__getitem__, lengths)
            return list(zip(*numbers, metadata, strict=True)), skip_tagged(body, end)
    partitions, position = _read_each(body, position, number, version)
    return partitions, skip_tagged(body, position)


def _read_each(body: memoryview, position: int, number: int, version: int) -> tuple[list[PartitionOffset], int]:
    flexible = version >= _FLEXIBLE
    has_epoch = version >= _LEADER_EPOCH
    layout = _OFFSET_AND_EPOCH if has_epoch else _OFFSET
    read_metadata = _read_nullable[flexible]
    partitions: list[PartitionOffset] = []
    for _ in range(number):
        numbers = layout.unpack_from(body, position)
        metadata, position = read_metadata(body, position + layout.size)
        if flexible:
            position = skip_tagged(body, position)
        partition, offset, epoch = numbers if has_epoch else (*numbers, _NO_EPOCH)
        partitions.append((partition, offset, epoch, metadata))
    return partitions, position


_NOT_THROTTLED: Final = bytes(4)


def write_offset_commit(version: int, topics: Sequence[tuple[TopicKey, Sequence[PartitionResult]]]) -> bytes:
    """Return the body of an OffsetCommit response: the results of each topic's partitions."""
    flexible = version >= _FLEXIBLE
    pack = _FLEXIBLE_RESULT.pack if flexible else _RESULT.pack
    parts = [_NOT_THROTTLED if version >= _THROTTLE else b"", encode_count(len(topics), flexible)]
    for topic, results in topics:
        parts.append(topic if isinstance(topic, bytes) else encode_text(topic, flexible))
        parts.append(encode_count(len(results), flexible))
        parts += [pack(*each) for each in results]
        if flexible:
            parts.append(b"\0")
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)
