"""Committed offsets of groups, kept in `__consumer_offsets` in Kafka's records.

A commit is one record for each partition. A commit in a transaction is in a transactional batch of its producer, and
counts once the producer's commit marker is in that partition of `__consumer_offsets` (KIP-98). Of several commits for
one partition, the one written last counts, not the one whose transaction ended last.

Offsets do not expire here (`offsets.retention.minutes`). Kafka's coordinator sees to that when it has the directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from octavo.errors import InvalidInput, MetadataTooLarge, OctavoError, WrongGroup
from octavo.log.coordinator.internal_topic import InternalTopic, replay
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
from octavo.log.names import CONSUMER_OFFSETS, TopicPartition
from octavo.log.origin import Origin
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.reading.readable_log import ReadableLog
from octavo.records import Batch, BatchBuilder, Record
from octavo.records.control import ControlType, EndTransactionMarker, read_control
from octavo.records.layout import MAX_INT64
from octavo.records.text import write_text
from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey, OffsetCommitValue, read_offset_key
from octavo.schemas.primitives import MAX_STRING, NO_UUID
from octavo.schemas.versioned import read_value, write_key, write_value

if TYPE_CHECKING:
    from octavo.log.coordinator.transaction_log import ProducerIdentity
    from octavo.log.directory.data_directory import DataDirectory

MAX_METADATA: Final = 4096  # bytes: offset.metadata.max.bytes
_VALUE_VERSION: Final = 4  # version that Kafka 4.x writes; all of 4.x and the later 3.x read it
_MAX_BATCH: Final = 512 << 10


class _Stored(NamedTuple):
    position: OffsetAndMetadata
    topic_id: UUID
    record_offset: int  # offset of the record in `__consumer_offsets`


_Key = tuple[str, TopicPartition]


class OffsetState:
    """The committed offsets of all groups, built by reading the records of `__consumer_offsets` in order."""

    def __init__(self) -> None:
        self._groups: Final[dict[str, dict[TopicPartition, _Stored]]] = {}
        self._pending: Final[dict[int, dict[_Key, _Stored]]] = {}  # of open transactions, by producer id
        self._next_offsets: Final[dict[TopicPartition, int]] = {}

    def read(self, partition: TopicPartition, log: ReadableLog) -> None:
        """Read what was added to a partition of the topic since the last call."""
        self._next_offsets[partition] = replay(log, self._next_offsets.get(partition, 0), self.take)

    def take(self, batch: Batch) -> None:
        """Apply the next batch. Raises a `FormatError`."""
        for record in batch:
            if batch.is_control:
                control = read_control(record, position=batch.position)
                if isinstance(control, EndTransactionMarker):
                    self.end_transaction(batch.producer_id, commit=control.type is ControlType.COMMIT)
            elif record.key is not None:
                key = read_offset_key(record.key)
                if key is not None:
                    self._take(key, record, batch.producer_id if batch.is_transactional else None)

    def _take(self, key: OffsetCommitKey, record: Record, producer_id: int | None) -> None:
        partition = TopicPartition(key.topic, key.partition)
        if record.value is None:
            self.forget(key.group, partition)
            return
        value = read_value(OffsetCommitValue, record.value)
        position = OffsetAndMetadata(value.offset, value.metadata, value.leader_epoch)
        stored = _Stored(position, value.topic_id, record.offset)
        if producer_id is None:
            self._groups.setdefault(key.group, {})[partition] = stored
        else:
            self._pending.setdefault(producer_id, {})[key.group, partition] = stored

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Apply the offsets that the producer committed in its transaction, or drop them if it was aborted."""
        for (group, partition), stored in self._pending.pop(producer_id, {}).items():
            offsets = self._groups.setdefault(group, {})
            known = offsets.get(partition)
            if commit and (known is None or known.record_offset < stored.record_offset):
                offsets[partition] = stored
            if not offsets:
                del self._groups[group]

    def forget(self, group: str, partition: TopicPartition) -> None:
        """Remove a group's committed offset, and those that wait for the end of a transaction."""
        offsets = self._groups.get(group, {})
        offsets.pop(partition, None)
        if not offsets:
            self._groups.pop(group, None)
        for pending in self._pending.values():
            pending.pop((group, partition), None)

    def position(self, group: str, partition: TopicPartition, topic_id: UUID | None) -> OffsetAndMetadata | None:
        """The committed offset of a group; None if there is none, or if it is for an earlier topic of that name."""
        stored = self._groups.get(group, {}).get(partition)
        if stored is None or (topic_id is not None and stored.topic_id not in (NO_UUID, topic_id)):
            return None
        return stored.position

    def groups(self) -> list[str]:
        """The groups that have a committed offset."""
        return sorted(self._groups)

    def partitions(self, group: str) -> list[TopicPartition]:
        """The partitions in which a group has a committed offset."""
        return sorted(self._groups.get(group, {}))


class Offsets:
    """The committed offsets of a directory that is open for writing. Any thread may use it."""

    def __init__(self, data: DataDirectory) -> None:
        self._data = data
        self._topic = InternalTopic(data, CONSUMER_OFFSETS)
        self._lock = make_rlock()
        self._state: OffsetState | None = None  # read when first needed
        self._read_from: UUID | None = None  # id of the topic that the state was read from

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """A group's committed offset in each partition, or None; without `partitions`, all that the group has."""
        with self._lock:
            state = self._read()
            wanted = state.partitions(group_id) if partitions is None else partitions
            return {partition: state.position(group_id, partition, self._topic_id(partition)) for partition in wanted}

    def groups(self) -> list[str]:
        """The groups that have committed offsets."""
        with self._lock:
            return self._read().groups()

    def partition_for(self, group_id: str) -> TopicPartition:
        """The partition of `__consumer_offsets` for a group's records. Creates the topic if needed."""
        return self._topic.partition_for(group_id)

    def commit(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        producer: ProducerIdentity | None = None,
    ) -> None:
        """Write committed offsets; with `producer`, as part of its transaction. Raises `UnknownPartition`."""
        check_commit(group_id, offsets)
        for partition in offsets:
            self._data.log(*partition)  # raises if missing: a later topic of that name would start from this offset
        now_ms = self._data.now_ms()
        records: list[tuple[bytes, bytes | None]] = []
        for partition, position in offsets.items():
            value = OffsetCommitValue(
                offset=position.offset,
                leader_epoch=position.leader_epoch,
                metadata=position.metadata,
                commit_timestamp=now_ms,
                topic_id=self._topic_id(partition) or NO_UUID,
            )
            records.append((_key(group_id, partition), write_value(value, _VALUE_VERSION)))
        self._append(group_id, records, now_ms, producer)

    def forget_topic(self, topic: str) -> None:
        """Remove all committed offsets in a topic that was deleted, as Kafka does."""
        with self._lock:
            state = self._read()
            for group_id in state.groups():
                gone = [partition for partition in state.partitions(group_id) if partition.topic == topic]
                self._append(group_id, [(_key(group_id, each), None) for each in gone], self._data.now_ms(), None)

    def note_marker(self, partition: TopicPartition) -> None:
        """Apply a marker that was written to a partition of `__consumer_offsets`."""
        with self._lock:
            if self._state is not None:  # if it is None, reading everything will find the marker
                self._catch_up(self._read(), partition)

    def _append(
        self,
        group_id: str,
        records: list[tuple[bytes, bytes | None]],
        now_ms: int,
        producer: ProducerIdentity | None,
    ) -> None:
        if not records:
            return
        with self._lock:
            log = self._topic.log_for(group_id)
            state = self._read()
            batches = _batches(records, now_ms, producer)
            self._state = None  # if an exception comes during the write or the update, everything is read again
            try:
                log.append(batches, origin=Origin.COORDINATOR)
            except (OctavoError, OSError):
                self._state = state
                raise
            self._catch_up(state, log.partition)

    def _catch_up(self, state: OffsetState, partition: TopicPartition) -> None:
        self._state = None
        state.read(partition, self._data.log(*partition))
        self._state = state

    def _read(self) -> OffsetState:
        topic_id = self._topic.id
        if self._state is None or self._read_from != topic_id:
            state = OffsetState()
            for log in self._topic.logs():
                state.read(log.partition, log)
            self._state, self._read_from = state, topic_id
        return self._state

    def _topic_id(self, partition: TopicPartition) -> UUID | None:
        topic = self._data.topics.get(partition.topic)
        return None if topic is None else topic.id


def check_commit(group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    """Check a commit as Kafka does. Raises `CoordinatorRefused` and `InvalidInput`."""
    if not group_id or len(write_text(group_id)) > MAX_STRING:
        raise WrongGroup(f"a group needs an id of at most {MAX_STRING} bytes, not {group_id[:80]!r}")
    for partition, position in offsets.items():
        if not 0 <= position.offset <= MAX_INT64:
            raise InvalidInput(f"a group cannot be at offset {position.offset} of {partition}")
        size = len(write_text(position.metadata))
        if size > MAX_METADATA:
            raise MetadataTooLarge(f"the metadata of {partition} take {size} bytes, more than {MAX_METADATA}")


def _key(group_id: str, partition: TopicPartition) -> bytes:
    return write_key(OffsetCommitKey(group=group_id, topic=partition.topic, partition=partition.partition))


def _batches(
    records: Iterable[tuple[bytes, bytes | None]], timestamp_ms: int, producer: ProducerIdentity | None
) -> bytes:
    """Build batches as Kafka's group coordinator does: in a transaction, always with sequence number 0."""
    built: list[bytes] = []
    builder = _builder(producer)
    for key, value in records:
        if builder.append(key, value, timestamp_ms=timestamp_ms) is None:
            built.append(builder.build())
            builder = _builder(producer)
            builder.append(key, value, timestamp_ms=timestamp_ms)
    built.append(builder.build())
    return b"".join(built)


def _builder(producer: ProducerIdentity | None) -> BatchBuilder:
    if producer is None:
        return BatchBuilder(max_size=_MAX_BATCH)
    return BatchBuilder(
        max_size=_MAX_BATCH,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        transactional=True,
    )
