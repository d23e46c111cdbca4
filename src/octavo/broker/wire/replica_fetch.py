"""Write the Fetch requests of a member and read the responses, versions 13 to 18, by hand.

A member fetches partitions from their leaders, and the metadata log from the active controller. Records in an answer
are views of its bytes. Versions: 15 moves the replica's id into a tagged field and adds the epoch of its broker, 16 has
the endpoints of leaders, 17 the directory of the replica, 18 its high watermark.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from octavo.broker.wire.primitives import check_tags, encode_text, read_uvarint, sized, skip_tagged, take, uvarint
from octavo.cluster.messages import (
    NO_EPOCH,
    NO_OFFSET,
    NONE,
    CurrentLeader,
    Endpoint,
    EpochEndOffset,
    FetchAnswer,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
    TopicIdPartition,
)
from octavo.errors import MalformedRequest

METADATA_FETCH_VERSION: Final = 18
METADATA_TOPIC_ID: Final = UUID(int=1)  # of __cluster_metadata

_REPLICA_STATE: Final = 15
_HIGH_WATERMARK: Final = 18
_UUID_SIZE: Final = 16
_NEVER: Final = 2**63 - 1  # the default of the tagged field: answer without regard to the high watermark

_LIMITS: Final = struct.Struct(">iii")  # max_wait_ms, min_bytes, max_bytes
_SESSION: Final = struct.Struct(">bii")  # isolation_level, session_id, session_epoch
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_REPLICA: Final = struct.Struct(">iq")
_PARTITION: Final = struct.Struct(">iiqiqi")

_to_uuid: Final = lru_cache(4096)(lambda data: UUID(bytes=data))  # the same topics are in every answer


class FetchLimits(NamedTuple):
    """How long a leader waits for how many bytes, and how many it gives."""

    max_wait_ms: int = 500  # replica.fetch.wait.max.ms
    min_bytes: int = 1  # replica.fetch.min.bytes
    max_bytes: int = 10 << 20  # replica.fetch.response.max.bytes
    partition_max_bytes: int = 1 << 20  # replica.fetch.max.bytes


METADATA_LIMITS: Final = FetchLimits(min_bytes=0, max_bytes=1 << 20, partition_max_bytes=0)


def fetch_version(metadata_version: int) -> int:
    """Return the version of Fetch that replicas use, by the level of metadata.version."""
    levels = ((27, 18), (21, 17), (19, 16), (10, 15), (9, 14))
    return next((version for level, version in levels if metadata_version >= level), 13)


# ------------------------------------------------------------------------------------------------------------- request


def write_replica_fetch(
    request: FetchRequest, version: int, *, broker_id: int, broker_epoch: int, limits: FetchLimits
) -> bytes:
    """Return the body of a replica's Fetch."""
    parts = [_head(version, broker_id, limits), _SESSION.pack(0, request.session_id, request.session_epoch)]
    max_bytes = limits.partition_max_bytes
    _write_topics(
        parts,
        (
            (topic_id, _partition(partition, asked, max_bytes) + b"\0")
            for (topic_id, partition), asked in request.partitions.items()
        ),
    )
    _write_topics(parts, ((topic_id, _INT.pack(partition)) for topic_id, partition in request.forgotten))
    parts.append(b"\x01")  # rack_id: ""
    parts.append(_end(version, broker_id, broker_epoch, cluster_id=None))
    return b"".join(parts)


def write_metadata_fetch(
    request: MetadataFetchRequest,
    *,
    cluster_id: str | None,
    broker_id: int,
    directory_id: UUID,
    version: int = METADATA_FETCH_VERSION,
    limits: FetchLimits = METADATA_LIMITS,
) -> bytes:
    """Return the body of a Fetch of the metadata log, in version 17 or 18."""
    asked = FetchPartition(
        request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch, log_start_offset=NO_OFFSET
    )
    tags = []
    if directory_id.int:
        tags.append(b"\0" + uvarint(_UUID_SIZE) + directory_id.bytes)
    if version >= _HIGH_WATERMARK and request.high_watermark != _NEVER:
        tags.append(b"\1" + uvarint(_LONG.size) + _LONG.pack(request.high_watermark))
    partition = _partition(0, asked, limits.partition_max_bytes) + uvarint(len(tags)) + b"".join(tags)
    parts = [_head(version, broker_id, limits), _SESSION.pack(0, 0, NO_EPOCH)]
    _write_topics(parts, [(METADATA_TOPIC_ID, partition)])
    parts.append(b"\x01\x01")  # nothing is forgotten, and rack_id is ""
    parts.append(_end(version, broker_id, NO_EPOCH, cluster_id=cluster_id))
    return b"".join(parts)


@lru_cache(16)  # of requests one after the other, only the partitions differ
def _head(version: int, broker_id: int, limits: FetchLimits) -> bytes:
    numbers = _LIMITS.pack(*limits[:3])
    return numbers if version >= _REPLICA_STATE else _INT.pack(broker_id) + numbers


def _partition(partition: int, asked: FetchPartition, max_bytes: int) -> bytes:
    return _PARTITION.pack(partition, *asked, max_bytes)


def _write_topics(parts: list[bytes], partitions: Iterable[tuple[UUID, bytes]]) -> None:
    """Write partitions in their order, which is that in which the leader reads them. So a topic may come twice."""
    topics: list[tuple[UUID, list[bytes]]] = []
    for topic_id, encoded in partitions:
        if not topics or topics[-1][0] != topic_id:
            topics.append((topic_id, []))
        topics[-1][1].append(encoded)
    parts.append(uvarint(len(topics) + 1))
    for topic_id, several in topics:
        parts += (topic_id.bytes, uvarint(len(several) + 1), *several, b"\0")


@lru_cache(16)
def _end(version: int, broker_id: int, broker_epoch: int, *, cluster_id: str | None) -> bytes:
    """Return the tagged fields of the request."""
    tags = []
    if cluster_id is not None:
        text = encode_text(cluster_id, flexible=True)
        tags.append(b"\0" + uvarint(len(text)) + text)
    if version >= _REPLICA_STATE:
        tags.append(b"\1" + uvarint(_REPLICA.size + 1) + _REPLICA.pack(broker_id, broker_epoch) + b"\0")
    return uvarint(len(tags)) + b"".join(tags)


# ------------------------------------------------------------------------------------------------------------ response

_TOP: Final = struct.Struct(">ihi")  # throttle_time_ms, error_code, session_id
_RESULT: Final = struct.Struct(">ihqqq")
_ABORTED_SIZE: Final = 16
_EPOCH_END: Final = struct.Struct(">iq")
_SNAPSHOT: Final = struct.Struct(">qi")
_LEADER: Final = struct.Struct(">ii")

_DIVERGING_TAG: Final = 0
_LEADER_TAG: Final = 1
_SNAPSHOT_TAG: Final = 2
_ENDPOINTS_TAG: Final = 0

_read_text: Final = sized("string", flexible=True, nullable=False)[0]
_read_maybe_text: Final = sized("string", flexible=True, nullable=True)[0]

_Tags = dict[int, memoryview]
_EMPTY: Final = memoryview(b"")
_NO_TAGS: Final[_Tags] = {}


class _Result(NamedTuple):
    topic_id: UUID
    partition: int
    error_code: int
    high_watermark: int
    log_start_offset: int
    records: memoryview
    tags: _Tags


class _Response(NamedTuple):
    error_code: int
    session_id: int
    results: list[_Result]
    tags: _Tags


def read_replica_fetch(body: memoryview) -> FetchAnswer:
    """Read the answer to a replica's Fetch. Raises `MalformedRequest`."""
    response = _read(body)
    partitions = {
        TopicIdPartition(topic_id, partition): FetchedPartition(
            error_code, high_watermark, start_offset, records, _diverging_epoch(tags) if tags else None
        )
        for topic_id, partition, error_code, high_watermark, start_offset, records, tags in response.results
    }
    return FetchAnswer(response.error_code, response.session_id, partitions)


def read_metadata_fetch(body: memoryview) -> MetadataFetchAnswer:
    """Read the answer to a Fetch of the metadata log. Raises `MalformedRequest`."""
    response = _read(body)
    if response.error_code != NONE:
        return MetadataFetchAnswer(response.error_code)
    if len(response.results) != 1:
        raise MalformedRequest(f"a Fetch of the metadata log is answered for {len(response.results)} partitions")
    [result] = response.results
    if (result.topic_id, result.partition) != (METADATA_TOPIC_ID, 0):
        raise MalformedRequest("a Fetch of the metadata log is answered for another partition")
    return MetadataFetchAnswer(
        NONE,
        result.error_code,
        _current_leader(result.tags),
        _node_endpoints(response.tags),
        result.high_watermark,
        result.log_start_offset,
        result.records,
        _diverging_epoch(result.tags),
        _snapshot_id(result.tags),
    )


def _read(body: memoryview) -> _Response:
    try:
        _, error_code, session_id = _TOP.unpack_from(body)
        position = _TOP.size
        results: list[_Result] = []
        topics, position = _read_count(body, position)
        for _ in range(topics):
            view, position = take(body, position, _UUID_SIZE)
            position = _read_topic(body, position, _to_uuid(bytes(view)), results)
            position = skip_tagged(body, position)
        tags, _ = _read_tags(body, position)
    except struct.error:
        raise MalformedRequest("the answer to a Fetch ends early") from None
    return _Response(error_code, session_id, results, tags)


def _read_topic(body: memoryview, position: int, topic_id: UUID, results: list[_Result]) -> int:
    several, position = _read_count(body, position)
    for _ in range(several):
        partition, error_code, high_watermark, _, log_start_offset = _RESULT.unpack_from(body, position)
        position += _RESULT.size
        if position < len(body) and body[position] <= 1:  # none, nearly always
            position += 1
        else:
            aborted, position = _read_count(body, position)
            for _ in range(aborted):
                position = skip_tagged(body, position + _ABORTED_SIZE)
        size, position = read_uvarint(body, position + _INT.size)  # after preferred_read_replica
        records, position = take(body, position, size - 1) if size > 1 else (_EMPTY, position)
        tags, position = _read_tags(body, position)
        results.append(_Result(topic_id, partition, error_code, high_watermark, log_start_offset, records, tags))
    return position


def _read_count(body: memoryview, position: int) -> tuple[int, int]:
    """Read the number of items of an array; null counts as empty, and every item takes at least one byte."""
    number, position = read_uvarint(body, position)
    if number - 1 > len(body) - position:
        raise MalformedRequest(f"{number - 1} items are announced at byte {position}, and there are fewer bytes")
    return max(number - 1, 0), position


def _read_tags(body: memoryview, position: int) -> tuple[_Tags, int]:
    if position < len(body) and body[position] == 0:  # nearly always
        return _NO_TAGS, position + 1
    number, position = read_uvarint(body, position)
    check_tags(number)
    tags: _Tags = {}
    for _ in range(number):
        tag, position = read_uvarint(body, position)
        size, position = read_uvarint(body, position)
        tags[tag], position = take(body, position, size)
    return tags, position


def _diverging_epoch(tags: _Tags) -> EpochEndOffset | None:
    content = tags.get(_DIVERGING_TAG)
    if content is None:
        return None
    found = EpochEndOffset(*_unpack(_EPOCH_END, content))
    return None if found == (NO_EPOCH, NO_OFFSET) else found


def _snapshot_id(tags: _Tags) -> SnapshotId | None:
    content = tags.get(_SNAPSHOT_TAG)
    if content is None:
        return None
    found = SnapshotId(*_unpack(_SNAPSHOT, content))
    return None if found.epoch < 0 and found.end_offset < 0 else found


def _current_leader(tags: _Tags) -> CurrentLeader:
    content = tags.get(_LEADER_TAG)
    return CurrentLeader() if content is None else CurrentLeader(*_unpack(_LEADER, content))


def _node_endpoints(tags: _Tags) -> dict[int, Endpoint]:
    content = tags.get(_ENDPOINTS_TAG)
    return {} if content is None else dict(_endpoints(content))


def _endpoints(content: memoryview) -> Iterator[tuple[int, Endpoint]]:
    number, position = _read_count(content, 0)
    for _ in range(number):
        [node_id] = _unpack(_INT, content[position:])
        host, position = _read_text(content, position + _INT.size)
        [port] = _unpack(_INT, content[position:])
        _, position = _read_maybe_text(content, position + _INT.size)
        position = skip_tagged(content, position)
        yield node_id, Endpoint(host, port)


def _unpack(layout: struct.Struct, content: memoryview) -> Iterable[int]:
    try:
        return layout.unpack_from(content)
    except struct.error:
        raise MalformedRequest("a field of the answer to a Fetch ends early") from None
