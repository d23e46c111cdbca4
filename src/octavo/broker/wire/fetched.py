"""Write the answers to Fetch, versions 4 to 18, by hand. See `fetch` for what the versions bring."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from octavo.broker.wire.fetch import FLEXIBLE, LOG_START, NO_SESSION, RACK, SESSIONS, TopicKey
from octavo.broker.wire.leader_tags import NO_LEADER, CurrentLeader, NodeEndpoint, endpoint_tags, leader_tag
from octavo.broker.wire.primitives import encode_count, encode_text
from octavo.log.reading.read_view import FileSlice

LEADERS: Final = 16  # the first version that tells who leads
NO_REPLICA: Final = -1  # none is preferred

Part = bytes | FileSlice


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
    current_leader: CurrentLeader = NO_LEADER  # if it is another one
    preferred_read_replica: int = NO_REPLICA


_INDEX: Final = struct.Struct(">i")
_RESULT: Final = {False: struct.Struct(">ihqq"), True: struct.Struct(">ihqqq")}
_DIVERGING: Final = struct.Struct(">iq")
_ABORTED: Final = struct.Struct(">qq")
_NOT_THROTTLED: Final = b"\0\0\0\0"
_NO_REPLICA: Final = b"\xff\xff\xff\xff"  # no preferred one
_ERROR_AND_SESSION: Final = struct.Struct(">hi")


def write_fetch(
    version: int,
    partitions: Sequence[FetchedPartition],
    *,
    error_code: int = 0,
    session_id: int = NO_SESSION,
    endpoints: Sequence[NodeEndpoint] = (),
) -> list[Part]:
    """Return the parts of a Fetch response's body. Partitions of one topic must stand together.

    endpoints: where leaders are reached
    """
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
                is_usual = each.diverging is None and each.current_leader is NO_LEADER
                head.append(b"\0" if is_usual else _tags(each))
        if flexible:
            head.append(b"\0")
    if flexible:
        head.append(endpoint_tags(endpoints) if endpoints else b"\0")
    parts.append(b"".join(head))
    return parts


def _tags(each: FetchedPartition) -> bytes:
    """Return the tagged fields of a partition whose records differ from the client's, or that another broker leads."""
    tags = []
    if each.diverging is not None:
        tags.append(b"\0%c%b\0" % (_DIVERGING.size + 1, _DIVERGING.pack(*each.diverging)))
    if each.current_leader != NO_LEADER:
        tags.append(leader_tag(1, each.current_leader))
    return b"".join((bytes((len(tags),)), *tags))


def _write_partition(head: list[bytes], each: FetchedPartition, version: int) -> None:
    has_start = version >= LOG_START
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
    if version >= RACK:
        preferred = each.preferred_read_replica
        head.append(_NO_REPLICA if preferred == NO_REPLICA else _INDEX.pack(preferred))
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
