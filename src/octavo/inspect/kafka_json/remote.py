"""The texts of Kafka's tool for the records of `__remote_log_metadata`: what their classes in Java print.

The classes also check what they are made from, and refuse some records that can be read.
"""

from __future__ import annotations

from typing import Any, Final

from octavo.errors import FormatError
from octavo.inspect.kafka_json.framed import read_framed
from octavo.inspect.kafka_json.refusals import refused
from octavo.inspect.kafka_json.texts import Texts
from octavo.log.files.meta_properties import write_uuid
from octavo.schemas.remote_log_metadata import records as remote
from octavo.schemas.remote_log_metadata.serde import KINDS

_NULL_VALUE: Final = (
    'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
    '"org.apache.kafka.common.record.internal.Record.value()" is null'
)


def remote_log_metadata(offset: int, key: bytes | None, value: bytes | None) -> Texts:
    """Return the texts for a record of `__remote_log_metadata`, whose key is not looked at."""
    try:
        if value is None:
            raise refused(_NULL_VALUE)
        return Texts(None, _remote_text(read_framed(KINDS, value)[0]))
    except FormatError as error:
        return Texts(None, f"Error at offset {offset}, skipping. {error.rule}")


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
            raise refused(None)
        return (
            f"RemotePartitionDeleteMetadata{{topicPartition={_partition(record.topic_id_partition)}, "
            f"state={remote.RemotePartitionDeleteState(number).name}, "
            f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
        )
    assert isinstance(record, remote.RemoteLogSegmentMetadataSnapshotRecord)
    return _snapshot(record)


def _segment(record: remote.RemoteLogSegmentMetadataRecord) -> str:
    if record.start_offset < 0:
        raise refused(
            f"Unexpected start offset = {record.start_offset}. StartOffset for a remote segment cannot be negative"
        )
    if record.end_offset < record.start_offset:
        raise refused(
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
        raise refused("segmentLeaderEpochs can not be null or empty")
    offsets = {entry.leader_epoch: entry.offset for entry in entries}
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(offsets.items())) + "}"


def _custom(metadata: bytes | None) -> str:
    return "Optional.empty" if metadata is None else f"Optional[CustomMetadata{{{len(metadata)} bytes}}]"


def _state(states: type[remote.RemoteLogSegmentState], number: int) -> str:
    if number not in set(states):
        raise refused("state can not be null")
    return states(number).name
