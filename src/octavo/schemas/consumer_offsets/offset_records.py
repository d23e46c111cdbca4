"""Write the records of committed offsets by hand: a consumer of very many partitions commits all of them at once.

Their fields are declared in `offsets`. A test holds the bytes equal to what `write_key` and `write_value` make of that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from uuid import UUID

from octavo.errors import InvalidInput
from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey
from octavo.schemas.primitives import NO_UUID, primitive

VERSION: Final = 4  # of the values that Kafka 4.x writes

_TYPE: Final = struct.Struct(">h")
_PARTITION: Final = struct.Struct(">i")
_START: Final = struct.Struct(">hqi")  # version, offset, leader epoch
_TIMESTAMP: Final = struct.Struct(">q")
_WITHOUT_METADATA: Final = struct.Struct(">hqiBq")
_EMPTY: Final = 1  # lengths are one more than they say
_ONE_TAG: Final = b"\1\0\x10"  # one tagged field: its number is 0, and it has 16 bytes
_NO_TAGS: Final = b"\0"
_write_name: Final = primitive("string", flexible=False, nullable=False)[1]
_write_metadata: Final = primitive("string", flexible=True, nullable=False)[1]

Offset = tuple[str, int, int, int, str, UUID]  # topic, partition, offset, leader epoch, metadata, and the topic's id


def write_offset_records(group: str, offsets: Iterable[Offset], commit_timestamp: int) -> list[tuple[bytes, bytes]]:
    """Return the keys and values of offsets that a group commits. Raises `InvalidInput` as `write_value` does."""
    pack_partition, pack = _PARTITION.pack, _WITHOUT_METADATA.pack
    of_topic, of_id, key_start, tags = "", NO_UUID, _key_start(group, ""), _NO_TAGS
    records = []
    try:
        for topic, partition, offset, leader_epoch, metadata, topic_id in offsets:
            if topic is not of_topic:  # most are of the same topic as the one before
                of_topic, key_start = topic, _key_start(group, topic)
            if topic_id is not of_id:
                of_id, tags = topic_id, _tags(topic_id)
            if metadata:
                start = _START.pack(VERSION, offset, leader_epoch)
                value = start + _write_metadata(metadata) + _TIMESTAMP.pack(commit_timestamp) + tags
            else:
                value = pack(VERSION, offset, leader_epoch, _EMPTY, commit_timestamp) + tags
            records.append((key_start + pack_partition(partition), value))
    except struct.error as error:
        raise InvalidInput(f"an offset of group {group!r} cannot be written: {error}") from None
    return records


@lru_cache(1024)
def _key_start(group: str, topic: str) -> bytes:
    """Return what comes before the partition in a key."""
    return _TYPE.pack(OffsetCommitKey.TYPE) + _write_name(group) + _write_name(topic)


def _tags(topic_id: UUID) -> bytes:
    return _NO_TAGS if topic_id == NO_UUID else _ONE_TAG + topic_id.bytes
