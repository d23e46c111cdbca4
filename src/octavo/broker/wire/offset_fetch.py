"""Write OffsetFetch responses, versions 1 to 10, by hand: they may tell of very many partitions.

A test holds this equal to the codec for all messages. Versions: 2 has an error for the whole, 3 can throttle, 5 has
leader epochs, 6 is flexible, 8 is for several groups, 10 names topics by their id.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from octavo.broker.wire.primitives import encode_count, encode_text

WHOLE_ERROR: Final = 2  # the first version with an error for the whole
_THROTTLE: Final = 3
_LEADER_EPOCH: Final = 5
_FLEXIBLE: Final = 6
GROUPS: Final = 8  # the first version for several groups
TOPIC_IDS: Final = 10  # the first version that names topics by their ids

_OFFSET: Final = struct.Struct(">iq")  # partition, offset
_OFFSET_AND_EPOCH: Final = struct.Struct(">iqi")
_CODE: Final = struct.Struct(">h")
_WITHOUT_METADATA: Final = struct.Struct(">iqiBhx")  # with the length of the metadata, the code, and no tagged fields
_EMPTY: Final = 1  # lengths are one more than they say
_NOT_THROTTLED: Final = bytes(4)

TopicKey = str | bytes  # the name of a topic, or its id from version 10 on
PartitionOffset = tuple[int, int, int, str | None, int]  # partition, offset, leader epoch, metadata, error code


class GroupOffsets(NamedTuple):
    """What a group has committed."""

    group_id: str
    error_code: int
    topics: Sequence[tuple[TopicKey, Sequence[PartitionOffset]]]


def write_offset_fetch(version: int, groups: Sequence[GroupOffsets]) -> bytes:
    """Return the body of an OffsetFetch response. Before version 8 it tells of one group."""
    flexible = version >= _FLEXIBLE
    parts = [_NOT_THROTTLED] if version >= _THROTTLE else []
    if version >= GROUPS:
        parts.append(encode_count(len(groups), flexible))
    for group in groups:
        if version >= GROUPS:
            parts.append(encode_text(group.group_id, flexible))
        _write_topics(parts, version, group.topics)
        if version >= WHOLE_ERROR:
            parts.append(_CODE.pack(group.error_code))
        if version >= GROUPS:
            parts.append(b"\0")
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)


def _write_topics(
    parts: list[bytes], version: int, topics: Sequence[tuple[TopicKey, Sequence[PartitionOffset]]]
) -> None:
    flexible = version >= _FLEXIBLE
    parts.append(encode_count(len(topics), flexible))
    for topic, partitions in topics:
        parts.append(topic if isinstance(topic, bytes) else encode_text(topic, flexible))
        parts.append(encode_count(len(partitions), flexible))
        if flexible:
            pack = _WITHOUT_METADATA.pack  # nearly always
            parts += [
                _flexible(*each) if each[3] != "" else pack(each[0], each[1], each[2], _EMPTY, each[4])
                for each in partitions
            ]
            parts.append(b"\0")
        elif version >= _LEADER_EPOCH:
            parts += [_old_with_epoch(*each) for each in partitions]
        else:
            parts += [_old(*each) for each in partitions]


def _flexible(partition: int, offset: int, leader_epoch: int, metadata: str | None, code: int) -> bytes:
    return (
        _OFFSET_AND_EPOCH.pack(partition, offset, leader_epoch) + encode_text(metadata, True) + _CODE.pack(code) + b"\0"
    )


def _old_with_epoch(partition: int, offset: int, leader_epoch: int, metadata: str | None, code: int) -> bytes:
    return _OFFSET_AND_EPOCH.pack(partition, offset, leader_epoch) + encode_text(metadata, False) + _CODE.pack(code)


def _old(partition: int, offset: int, _: int, metadata: str | None, code: int) -> bytes:
    return _OFFSET.pack(partition, offset) + encode_text(metadata, False) + _CODE.pack(code)
