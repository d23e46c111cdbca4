"""Read Produce requests and write their responses, versions 3 to 13, by hand.

With the codec for all messages, reading and writing would take as long as everything else that a produce costs. A test
holds the two equal. Versions: 5 adds the log's start offset, 8 the errors of single records, 9 is flexible, 10 has the
current leader (tagged), 13 names topics by their id.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from octavo.broker.wire.leader_tags import NO_LEADER, CurrentLeader, NodeEndpoint, endpoint_tags, leader_tag
from octavo.broker.wire.primitives import (
    MAX_ITEMS,
    count,
    encode_count,
    encode_text,
    read_uvarint,
    sized,
    skip_tagged,
    take,
)
from octavo.errors import MalformedRequest, RecordError
from octavo.records.text import read_text

FLEXIBLE: Final = 9
TOPIC_IDS: Final = 13  # the first version that names topics by id
_LOG_START: Final = 5
_RECORD_ERRORS: Final = 8
LEADERS: Final = 10  # the first version that tells who leads

_ACKS: Final = struct.Struct(">hi")  # acks, timeout in milliseconds
_INDEX: Final = struct.Struct(">i")
_INDEX_AND_SIZE: Final = struct.Struct(">ii")
_UUID_SIZE: Final = 16
_USUAL: Final = struct.Struct(">BhiB")  # transactional id, acks, timeout in milliseconds, number of topics
_ONE_PARTITION: Final = struct.Struct(">Bi")  # number of partitions, number of the partition
_NULL: Final = 0
_ONE: Final = 2  # items of an array; numbers of items are one more than they say
_NO_TAGS: Final = bytes(3)
_SHORT_NAME: Final = 0x7F  # the length of such a name takes one byte
_name: Final = lru_cache(1024)(read_text)


class PartitionProduce(NamedTuple):
    """The records for one partition."""

    topic: str | bytes  # the name of the topic, or its id from version 13 on
    partition: int
    records: memoryview | None  # part of the request's buffer


class ProduceRequest(NamedTuple):
    """A Produce request."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    partitions: list[PartitionProduce]


class PartitionResult(NamedTuple):
    """What came of the records for one partition. The fields have the order that they have on the wire."""

    partition: int
    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[RecordError] = ()
    error_message: str | None = None
    current_leader: CurrentLeader = NO_LEADER  # if it is another one


_read_nullable: Final = {each: sized("string", flexible=each, nullable=True)[0] for each in (False, True)}
_read_name: Final = {each: sized("string", flexible=each, nullable=False)[0] for each in (False, True)}
_read_count: Final = {each: count(flexible=each, nullable=False)[0] for each in (False, True)}


def read_produce(body: memoryview, version: int) -> ProduceRequest:
    """Read a Produce request. Raises `MalformedRequest`."""
    if version >= FLEXIBLE:
        usual = _read_usual(body, version)
        if usual is not None:
            return usual
    return _read_any(body, version)


def _read_usual(body: memoryview, version: int) -> ProduceRequest | None:
    """Read a request as nearly all are: one partition, no transaction, no tagged fields. None if it is another."""
    try:
        no_id, acks, timeout_ms, topics = _USUAL.unpack_from(body)
        if no_id != _NULL or topics != _ONE:
            return None
        position = _USUAL.size
        topic: str | bytes
        if version < TOPIC_IDS:
            end = position + body[position]  # the length is one more than it says, and so is where the name begins
            if not position < end <= position + _SHORT_NAME:
                return None
            topic = _name(bytes(body[position + 1 : end]))
        else:
            end = position + _UUID_SIZE
            topic = bytes(body[position:end])
        one, partition = _ONE_PARTITION.unpack_from(body, end)
        size, position = read_uvarint(body, end + _ONE_PARTITION.size)
        end = position + size - 1
        # After the records come three empty lists of tagged fields. The bytes behind them are ignored.
        if one != _ONE or size == 0 or body[end : end + 3] != _NO_TAGS:
            return None
    except (struct.error, IndexError, MalformedRequest):
        return None  # the other function knows what is wrong with it
    return ProduceRequest(None, acks, timeout_ms, [PartitionProduce(topic, partition, body[position:end])])


def _read_any(body: memoryview, version: int) -> ProduceRequest:
    flexible = version >= FLEXIBLE
    read_count, read_name = _read_count[flexible], _read_name[flexible]
    transactional_id, position = _read_nullable[flexible](body, 0)
    try:
        acks, timeout_ms = _ACKS.unpack_from(body, position)
        topics, position = read_count(body, position + _ACKS.size)
        partitions: list[PartitionProduce] = []
        for _ in range(topics):
            topic: str | bytes
            if version < TOPIC_IDS:
                topic, position = read_name(body, position)
            else:
                view, position = take(body, position, _UUID_SIZE)
                topic = bytes(view)
            several, position = read_count(body, position)
            for _ in range(several):
                records: memoryview | None
                if flexible:
                    (partition,) = _INDEX.unpack_from(body, position)
                    size, position = read_uvarint(body, position + _INDEX.size)
                    size -= 1
                else:
                    partition, size = _INDEX_AND_SIZE.unpack_from(body, position)
                    position += _INDEX_AND_SIZE.size
                if size < 0:
                    records = None
                else:
                    records, position = take(body, position, size)
                partitions.append(PartitionProduce(topic, partition, records))
                if flexible:
                    position = skip_tagged(body, position)
            if flexible:
                position = skip_tagged(body, position)
            if len(partitions) > MAX_ITEMS:
                raise MalformedRequest(f"there are more than {MAX_ITEMS} partitions")
        if flexible:
            skip_tagged(body, position)
    except struct.error:
        raise MalformedRequest("a Produce request ends early") from None
    return ProduceRequest(transactional_id, acks, timeout_ms, partitions)


_RESULT: Final = struct.Struct(">ihqq")
_RESULT_WITH_START: Final = struct.Struct(">ihqqq")
_NO_ERRORS: Final = b"\0\0\0\0\xff\xff"  # no record errors, no message
_NO_ERRORS_FLEXIBLE: Final = b"\1\0\0"  # the same, and no tagged fields
_END: Final = b"\0\0\0\0"  # not throttled
_END_FLEXIBLE: Final = b"\0\0\0\0\0"
_USUAL_END: Final = _NO_ERRORS_FLEXIBLE + b"\0" + _END_FLEXIBLE


def write_produce(
    version: int,
    topics: Sequence[tuple[str | bytes, Sequence[PartitionResult]]],
    endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """Return the body of a Produce response: the results of each topic's partitions, and where leaders are reached."""
    flexible = version >= FLEXIBLE
    if flexible and len(topics) == 1:
        [(topic, results)] = topics
        if len(results) == 1 and not results[0].error_code:  # nearly always
            name = topic if isinstance(topic, bytes) else encode_text(topic, flexible)
            return b"".join((b"\2", name, b"\2", _RESULT_WITH_START.pack(*results[0][:5]), _USUAL_END))
    parts: list[bytes] = [encode_count(len(topics), flexible)]
    for topic, results in topics:
        parts.append(topic if isinstance(topic, bytes) else encode_text(topic, flexible))
        parts.append(encode_count(len(results), flexible))
        for each in results:
            parts.append(_RESULT.pack(*each[:4]) if version < _LOG_START else _RESULT_WITH_START.pack(*each[:5]))
            if version >= _RECORD_ERRORS:
                if each.error_code == 0:
                    parts.append(_NO_ERRORS_FLEXIBLE if flexible else _NO_ERRORS)
                else:
                    _write_errors(parts, each, flexible)
        if flexible:
            parts.append(b"\0")
    parts.append(_END)
    if flexible:
        parts.append(endpoint_tags(endpoints))
    return b"".join(parts)


def _write_errors(parts: list[bytes], result: PartitionResult, flexible: bool) -> None:
    parts.append(encode_count(len(result.record_errors), flexible))
    for error in result.record_errors:
        parts.append(_INDEX.pack(error.record_index))
        parts.append(encode_text(error.message, flexible))
        if flexible:
            parts.append(b"\0")
    parts.append(encode_text(result.error_message, flexible))
    if result.current_leader != NO_LEADER:
        parts += (b"\1", leader_tag(0, result.current_leader))
    elif flexible:
        parts.append(b"\0")
