"""The texts of Kafka's tool for the records of `__cluster_metadata` and `__remote_log_metadata`, which have no key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from octavo.errors import BadLength, BadVarint
from octavo.inspect.kafka_json.jackson import to_text
from octavo.inspect.kafka_json.nodes import message_json
from octavo.inspect.kafka_json.refusals import Refused, read_as_kafka
from octavo.inspect.kafka_json.texts import Texts
from octavo.log.files.meta_properties import write_uuid
from octavo.schemas.framed import FRAME_VERSION, FramedRecord
from octavo.schemas.lengths import as_int32, read_varint
from octavo.schemas.metadata.serde import KINDS as METADATA_KINDS
from octavo.schemas.remote_log_metadata import records as remote
from octavo.schemas.remote_log_metadata.serde import KINDS as REMOTE_KINDS

_MAX_NUMBER: Final = 0x7FFF
_INNER_CAPITAL: Final = re.compile(r"(?<!^)([A-Z])")
_NULL_VALUE: Final = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
    '"org.apache.kafka.common.record.internal.Record.value()" is null'
)


def cluster_metadata(offset: int, key: bytes | None, value: bytes | None) -> Texts:
    """Return the texts for a record of `__cluster_metadata`, whose key is not looked at."""
    try:
        message, version = _read(METADATA_KINDS, value)
    except Refused as refused:
        return Texts(None, f"Error at {offset}, skipping. {refused.message}")
    name = _INNER_CAPITAL.sub(r"_\1", type(message).__name__).upper()
    return Texts(None, to_text({"type": name, "version": version, "data": message_json(message, version)}))


def remote_log_metadata(offset: int, key: bytes | None, value: bytes | None) -> Texts:
    """Return the texts for a record of `__remote_log_metadata`, whose key is not looked at."""
    try:
        if value is None:
            raise Refused(_NULL_VALUE)
        return Texts(None, _remote_text(_read(REMOTE_KINDS, value)[0]))
    except Refused as refused:
        return Texts(None, f"Error at offset {offset}, skipping. {refused.message}")


def _read(kinds: Mapping[int, type[FramedRecord]], value: bytes | None) -> tuple[FramedRecord, int]:
    frame, position = _number(value, 0, "frame version")
    if frame == 0:
        raise Refused(
            "Could not deserialize metadata record with frame version 0. "
            "Note that upgrades from the preview release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame != FRAME_VERSION:
        raise Refused(
            f"Could not deserialize metadata record due to unknown frame version {frame}"
            f"(only frame version {FRAME_VERSION} is supported)"
        )
    number, position = _number(value, position, "type")
    version, position = _number(value, position, "version")
    assert value is not None
    kind = kinds.get(number)
    if kind is None:
        raise Refused(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {number}")
    try:
        message, position = read_as_kafka(kind, value, position, version, versions=kind.VERSIONS, first_flexible=0)
    except Refused:
        raise Refused(f"Failed to deserialize record with type {number}") from None
    if position < len(value):
        raise Refused(f"Found {len(value) - position} byte(s) of garbage after {number}")
    return message, version


def _number(value: bytes | None, position: int, what: str) -> tuple[int, int]:
    try:
        if value is None:
            raise BadLength(position, "there is no value")
        number, position = read_varint(value, position)
    except (BadLength, BadVarint):
        raise Refused(f"Error while reading {what}") from None
    number = as_int32(number)
    if number > _MAX_NUMBER:
        raise Refused(f"Value for {what} was too large.")
    return (number + 0x8000 & 0xFFFF) - 0x8000, position  # cast to Java's short


# Records of remote storage, as their classes print themselves


def _remote_text(record: Any) -> str:
    if isinstance(record, remote.RemoteLogSegmentMetadataRecord):
        return _segment(record)
    if isinstance(record, remote.RemoteLogSegmentMetadataUpdateRecord):
        state = _state(remote.RemoteLogSegmentState, record.remote_log_segment_state)
        return (
            f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}, "
            f"customMetadata={_custom(record.custom_metadata)}, state={state}, "
            f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
        )
    if isinstance(record, remote.RemotePartitionDeleteMetadataRecord):
        number = record.remote_partition_delete_state
        if number not in set(remote.RemotePartitionDeleteState):
            raise Refused(None)
        return (
            f"RemotePartitionDeleteMetadata{{topicPartition={_partition(record.topic_id_partition)}, "
            f"state={remote.RemotePartitionDeleteState(number).name}, "
            f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
        )
    assert isinstance(record, remote.RemoteLogSegmentMetadataSnapshotRecord)
    return _snapshot(record)


def _segment(record: remote.RemoteLogSegmentMetadataRecord) -> str:
    if record.start_offset < 0:
        raise Refused(
            f"Unexpected start offset = {record.start_offset}. StartOffset for a remote segment cannot be negative"
        )
    if record.end_offset < record.start_offset:
        raise Refused(
            f"Unexpected end offset = {record.end_offset}. "
            f"EndOffset for a remote segment cannot be less than startOffset = {record.start_offset}"
        )
    epochs = _epochs(record.segment_leader_epochs)
    state = _state(remote.RemoteLogSegmentState, record.remote_log_segment_state)
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}, "
        f"startOffset={record.start_offset}, endOffset={record.end_offset}, brokerId={record.broker_id}, "
        f"maxTimestampMs={record.max_timestamp_ms}, eventTimestampMs={record.event_timestamp_ms}, "
        f"segmentLeaderEpochs={epochs}, segmentSizeInBytes={record.segment_size_in_bytes}, "
        f"customMetadata={_custom(record.custom_metadata)}, state={state}, "
        f"txnIdxEmpty={str(record.txn_index_empty).lower()}}}"
    )


def _snapshot(record: remote.RemoteLogSegmentMetadataSnapshotRecord) -> str:
    state = _state(remote.RemoteLogSegmentState, record.remote_log_segment_state)
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={write_uuid(record.segment_id)}, "
        f"startOffset={record.start_offset}, endOffset={record.end_offset}, maxTimestampMs={record.max_timestamp_ms}, "
        f"segmentLeaderEpochs={_epochs(record.segment_leader_epochs)}, "
        f"segmentSizeInBytes={record.segment_size_in_bytes}, customMetadata={_custom(record.custom_metadata)}, "
        f"state={state}, txnIdxEmpty={str(record.txn_index_empty).lower()}}}"
    )


def _segment_id(entry: remote.RemoteLogSegmentIdEntry) -> str:
    return f"RemoteLogSegmentId{{topicIdPartition={_partition(entry.topic_id_partition)}, id={write_uuid(entry.id)}}}"


def _partition(entry: remote.TopicIdPartitionEntry) -> str:
    return f"{write_uuid(entry.id)}:{entry.name}-{entry.partition}"


def _epochs(entries: tuple[remote.SegmentLeaderEpochEntry, ...]) -> str:
    if not entries:
        raise Refused("segmentLeaderEpochs can not be null or empty")
    offsets = {entry.leader_epoch: entry.offset for entry in entries}
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(offsets.items())) + "}"


def _custom(metadata: bytes | None) -> str:
    return "Optional.empty" if metadata is None else f"Optional[CustomMetadata{{{len(metadata)} bytes}}]"


def _state(states: type[remote.RemoteLogSegmentState], number: int) -> str:
    if number not in set(states):
        raise Refused("state can not be null")
    return states(number).name
