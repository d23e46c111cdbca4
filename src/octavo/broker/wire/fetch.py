"""Read Fetch requests and write their responses, versions 4 to 18, by hand.

Versions: 5 adds the log's start offset, 7 sessions, 9 leader epochs, 11 racks, 12 is flexible, 13 names topics by their
id, 15 moves the replica's id into a tagged field, 16 has the endpoints of leaders (tagged).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from octavo.broker.wire.primitives import (
    check_tags,
    count,
    encode_count,
    encode_text,
    read_uvarint,
    sized,
    skip_tagged,
    take,
)
from octavo.errors import MalformedRequest
from octavo.log.reading.read_view import FileSlice

_LOG_START: Final = 5
SESSIONS: Final = 7
_LEADER_EPOCH: Final = 9
_RACK: Final = 11
FLEXIBLE: Final = 12
TOPIC_IDS: Final = 13
_REPLICA_STATE: Final = 15

NO_SESSION: Final = 0
NO_EPOCH: Final = -1
CONSUMER: Final = -1  # the id of a replica that is none
_UUID_SIZE: Final = 16

Part = bytes | FileSlice
TopicKey = str | bytes  # the name of a topic, or its id from version 13 on


class PartitionFetch(NamedTuple):
    """What is wanted of one partition."""

    topic: TopicKey
    partition: int
    leader_epoch: int
    offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


class FetchRequest(NamedTuple):
    """A Fetch request."""

    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    partitions: list[PartitionFetch]
    forgotten: list[tuple[TopicKey, int]]
    replica_epoch: int = -1


class FetchedPartition(NamedTuple):
    """What was read of one partition."""

    topic: TopicKey
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None  # producer id and first offset
    records: FileSlice | None = None
    diverging: tuple[int, int] | None = None  # where the client's log differs: an epoch, and its end offset here


_HEAD: Final = {  # the numbers before the topics, by the version since which the field exists
    False: struct.Struct(">iiiib"),
    True: struct.Struct(">iiib"),  # without the replica's id
}
_SESSION: Final = struct.Struct(">ii")
_INDEX: Final = struct.Struct(">i")

_read_name: Final = {each: sized("string", flexible=each, nullable=False)[0] for each in (False, True)}
_read_count: Final = {each: count(flexible=each, nullable=False)[0] for each in (False, True)}


def _partition_layout(version: int) -> struct.Struct:
    """Return the layout of a partition in a request, as far as it has a fixed size."""
    epoch = "i" if version >= _LEADER_EPOCH else ""
    last_fetched = "i" if version >= FLEXIBLE else ""
    start = "q" if version >= _LOG_START else ""
    return struct.Struct(f">i{epoch}q{last_fetched}{start}i")


_PARTITIONS: Final = {version: _partition_layout(version) for version in range(4, 19)}


def read_fetch(body: memoryview, version: int) -> FetchRequest:
    """Read a Fetch request. Raises `MalformedRequest`."""
    try:
        return _read(body, version)
    except struct.error:
        raise MalformedRequest("a Fetch request ends early") from None


def _read(body: memoryview, version: int) -> FetchRequest:
    flexible = version >= FLEXIBLE
    head = _HEAD[version >= _REPLICA_STATE]
    *before, max_wait_ms, min_bytes, max_bytes, isolation_level = head.unpack_from(body)
    replica_id = before[0] if before else CONSUMER
    position = head.size
    session_id, session_epoch = NO_SESSION, NO_EPOCH
    if version >= SESSIONS:
        session_id, session_epoch = _SESSION.unpack_from(body, position)
        position += _SESSION.size
    partitions, position = _read_partitions(body, position, version)
    forgotten: list[tuple[TopicKey, int]] = []
    if version >= SESSIONS:
        forgotten, position = _read_forgotten(body, position, version)
    if version >= _RACK:
        _, position = _read_name[flexible](body, position)
    replica_epoch = -1
    if flexible:
        replica_id, replica_epoch = _read_replica(body, position, version, replica_id)
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        partitions,
        forgotten,
        replica_epoch,
    )


def _read_topic(body: memoryview, position: int, version: int) -> tuple[TopicKey, int]:
    if version < TOPIC_IDS:
        return _read_name[version >= FLEXIBLE](body, position)
    view, position = take(body, position, _UUID_SIZE)
    return bytes(view), position


def _read_partitions(body: memoryview, position: int, version: int) -> tuple[list[PartitionFetch], int]:
    flexible = version >= FLEXIBLE
    read_count, layout = _read_count[flexible], _PARTITIONS[version]
    partitions: list[PartitionFetch] = []
    topics, position = read_count(body, position)
    for _ in range(topics):
        topic, position = _read_topic(body, position, version)
        several, position = read_count(body, position)
        for _ in range(several):
            values = layout.unpack_from(body, position)
            position += layout.size
            if flexible:
                partitions.append(PartitionFetch(topic, *values))
                position = skip_tagged(body, position)
            else:
                partitions.append(_old_partition(topic, values, version))
        if flexible:
            position = skip_tagged(body, position)
    return partitions, position


def _old_partition(topic: TopicKey, values: tuple[int, ...], version: int) -> PartitionFetch:
    rest = list(values)
    partition = rest.pop(0)
    leader_epoch = rest.pop(0) if version >= _LEADER_EPOCH else NO_EPOCH
    offset = rest.pop(0)
    start = rest.pop(0) if version >= _LOG_START else -1
    return PartitionFetch(topic, partition, leader_epoch, offset, NO_EPOCH, start, rest.pop(0))


def _read_forgotten(body: memoryview, position: int, version: int) -> tuple[list[tuple[TopicKey, int]], int]:
    flexible = version >= FLEXIBLE
    read_count = _read_count[flexible]
    forgotten: list[tuple[TopicKey, int]] = []
    topics, position = read_count(body, position)
    for _ in range(topics):
        topic, position = _read_topic(body, position, version)
        several, position = read_count(body, position)
        for _ in range(several):
            forgotten.append((topic, _INDEX.unpack_from(body, position)[0]))
            position += _INDEX.size
        if flexible:
            position = skip_tagged(body, position)
    return forgotten, position


_REPLICA_STATE_TAG: Final = 1
_REPLICA: Final = struct.Struct(">iq")


def _read_replica(body: memoryview, position: int, version: int, replica_id: int) -> tuple[int, int]:
    """Return the id and the epoch of the replica that asks, from the tagged fields at the end."""
    replica_epoch = -1
    number, position = read_uvarint(body, position)
    check_tags(number)
    for _ in range(number):
        tag, position = read_uvarint(body, position)
        size, position = read_uvarint(body, position)
        content, position = take(body, position, size)
        if tag == _REPLICA_STATE_TAG and version >= _REPLICA_STATE:
            replica_id, replica_epoch = _REPLICA.unpack_from(content)
    return replica_id, replica_epoch


# ------------------------------------------------------------------------------------------------------------ response

_RESULT: Final = {False: struct.Struct(">ihqq"), True: struct.Struct(">ihqqq")}
_DIVERGING: Final = struct.Struct(">iq")
_ABORTED: Final = struct.Struct(">qq")
_NOT_THROTTLED: Final = b"\0\0\0\0"
_NO_REPLICA: Final = b"\xff\xff\xff\xff"  # no preferred one
_ERROR_AND_SESSION: Final = struct.Struct(">hi")


def write_fetch(
    version: int, partitions: Sequence[FetchedPartition], *, error_code: int = 0, session_id: int = NO_SESSION
) -> list[Part]:
    """Return the parts of a Fetch response's body. Partitions of one topic must stand together."""
    flexible = version >= FLEXIBLE
    head = [_NOT_THROTTLED]
    if version >= SESSIONS:
        head.append(_ERROR_AND_SESSION.pack(error_code, session_id))
    topics = _grouped(partitions)
    head.append(encode_count(len(topics), flexible))
    parts: list[Part] = []
    for topic, several in topics:
        head.append(topic if isinstance(topic, bytes) else encode_text(topic, flexible))
        head.append(encode_count(len(several), flexible))
        for each in several:
            _write_partition(head, each, version)
            if each.records is not None:
                parts += (b"".join(head), each.records)
                head = []
            if flexible:
                head.append(b"\0" if each.diverging is None else _diverging(each.diverging))
        if flexible:
            head.append(b"\0")
    if flexible:
        head.append(b"\0")
    parts.append(b"".join(head))
    return parts


def _diverging(end: tuple[int, int]) -> bytes:
    """Return the tagged fields of a partition whose records differ from the client's."""
    return b"\1\0" + bytes((_DIVERGING.size + 1,)) + _DIVERGING.pack(*end) + b"\0"


def _write_partition(head: list[bytes], each: FetchedPartition, version: int) -> None:
    has_start = version >= _LOG_START
    _, *numbers = each[: 6 if has_start else 5]
    head.append(_RESULT[has_start].pack(*numbers))
    flexible = version >= FLEXIBLE
    if each.aborted is None:
        head.append(b"\0" if flexible else b"\xff\xff\xff\xff")
    else:
        head.append(encode_count(len(each.aborted), flexible))
        for transaction in each.aborted:
            head.append(_ABORTED.pack(*transaction))
            if flexible:
                head.append(b"\0")
    if version >= _RACK:
        head.append(_NO_REPLICA)
    size = 0 if each.records is None else each.records.size
    head.append(encode_count(size, flexible))


def _grouped(partitions: Sequence[FetchedPartition]) -> list[tuple[TopicKey, list[FetchedPartition]]]:
    groups: list[tuple[TopicKey, list[FetchedPartition]]] = []
    for each in partitions:
        if groups and groups[-1][0] == each.topic:
            groups[-1][1].append(each)
        else:
            groups.append((each.topic, [each]))
    return groups
