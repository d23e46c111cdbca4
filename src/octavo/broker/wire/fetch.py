"""Read Fetch requests, versions 4 to 18, by hand. Their answers are written in `fetched`.

Versions: 5 adds the log's start offset, 7 sessions, 9 leader epochs, 11 racks, 12 is flexible, 13 names topics by their
id, 15 moves the replica's id into a tagged field, 16 has the endpoints of leaders (tagged), 18 the high watermark that
a replica knows (tagged).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from octavo.broker.wire.primitives import (
    check_tags,
    count,
    read_uvarint,
    sized,
    skip_tagged,
    take,
)
from octavo.errors import MalformedRequest

LOG_START: Final = 5
SESSIONS: Final = 7
_LEADER_EPOCH: Final = 9
RACK: Final = 11
FLEXIBLE: Final = 12
TOPIC_IDS: Final = 13
_REPLICA_STATE: Final = 15
_HIGH_WATERMARK: Final = 18

NO_SESSION: Final = 0
NO_EPOCH: Final = -1
CONSUMER: Final = -1  # the id of a replica that is none
NO_HIGH_WATERMARK: Final = (1 << 63) - 1  # that of a replica which does not tell
_UUID_SIZE: Final = 16

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
    high_watermark: int = NO_HIGH_WATERMARK  # that a replica knows; the answer does not wait if there is a higher one


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
    rack: str = ""

    @property
    def is_from_replica(self) -> bool:
        """Whether another broker asks, to follow."""
        return self.replica_id >= 0


_HEAD: Final = {  # the numbers before the topics, by the version since which the field exists
    False: struct.Struct(">iiiib"),
    True: struct.Struct(">iiib"),  # without the replica's id
}
_SESSION: Final = struct.Struct(">ii")
_INDEX: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")

_read_name: Final = {each: sized("string", flexible=each, nullable=False)[0] for each in (False, True)}
_read_count: Final = {each: count(flexible=each, nullable=False)[0] for each in (False, True)}


def _partition_layout(version: int) -> struct.Struct:
    """Return the layout of a partition in a request, as far as it has a fixed size."""
    epoch = "i" if version >= _LEADER_EPOCH else ""
    last_fetched = "i" if version >= FLEXIBLE else ""
    start = "q" if version >= LOG_START else ""
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
    rack = ""
    if version >= RACK:
        rack, position = _read_name[flexible](body, position)
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
        rack,
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
                if position < len(body) and body[position] == 0:  # nearly always
                    partitions.append(PartitionFetch(topic, *values))
                    position += 1
                else:
                    high_watermark, position = _read_high_watermark(body, position, version)
                    partitions.append(PartitionFetch(topic, *values)._replace(high_watermark=high_watermark))
            else:
                partitions.append(_old_partition(topic, values, version))
        if flexible:
            position = skip_tagged(body, position)
    return partitions, position


def _read_high_watermark(body: memoryview, position: int, version: int) -> tuple[int, int]:
    """Return the high watermark that a replica knows, from the tagged fields of a partition."""
    high_watermark = NO_HIGH_WATERMARK
    tagged, position = _tagged(body, position)
    for tag, content in tagged:
        if tag == _HIGH_WATERMARK_TAG and version >= _HIGH_WATERMARK:
            (high_watermark,) = _LONG.unpack_from(content)
    return high_watermark, position


def _tagged(body: memoryview, position: int) -> tuple[list[tuple[int, memoryview]], int]:
    """Return tagged fields, the number and the content of each, and where they end."""
    number, position = read_uvarint(body, position)
    check_tags(number)
    found = []
    for _ in range(number):
        tag, position = read_uvarint(body, position)
        size, position = read_uvarint(body, position)
        content, position = take(body, position, size)
        found.append((tag, content))
    return found, position


def _old_partition(topic: TopicKey, values: tuple[int, ...], version: int) -> PartitionFetch:
    rest = list(values)
    partition = rest.pop(0)
    leader_epoch = rest.pop(0) if version >= _LEADER_EPOCH else NO_EPOCH
    offset = rest.pop(0)
    start = rest.pop(0) if version >= LOG_START else -1
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
_HIGH_WATERMARK_TAG: Final = 1
_REPLICA: Final = struct.Struct(">iq")


def _read_replica(body: memoryview, position: int, version: int, replica_id: int) -> tuple[int, int]:
    """Return the id and the epoch of the replica that asks, from the tagged fields at the end."""
    replica_epoch = -1
    for tag, content in _tagged(body, position)[0]:
        if tag == _REPLICA_STATE_TAG and version >= _REPLICA_STATE:
            replica_id, replica_epoch = _REPLICA.unpack_from(content)
    return replica_id, replica_epoch
