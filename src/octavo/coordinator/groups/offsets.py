"""Committed offsets of groups: `CommittedOffsets`.

A commit is one record for each partition. A commit in a transaction is pending until the producer's marker is in the
partition of the log (KIP-98). Of several commits for one partition, the one whose record was written last counts, not
the one whose transaction ended last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from octavo.coordinator.groups.group import Group
from octavo.coordinator.groups.requests import (
    CommitAnswer,
    CommitRequest,
    CommittedOffset,
    DeleteAnswer,
    DeleteRequest,
    FetchAnswer,
    FetchedOffset,
    FetchRequest,
)
from octavo.coordinator.groups.utf_16 import utf_16_length
from octavo.coordinator.journal import Table
from octavo.coordinator.shard import Origin
from octavo.errors import ErrorCode
from octavo.schemas.consumer_offsets.offset_records import write_offset_records
from octavo.schemas.consumer_offsets.offsets import (
    LegacyOffsetCommitKey,
    LegacyOffsetCommitValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from octavo.schemas.primitives import NO_UUID

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

Partition = tuple[str, int]

_VERSION_WITH_EXPIRY: Final = 1  # the only one with a time at which an offset expires
_NEVER: Final = -1
_NONE: Final = ErrorCode.NONE  # faster than looking up the enum member for each offset
_LATEST_MS: Final = (1 << 63) - 1
_NOTHING: Final[dict[Any, Any]] = {}  # nobody changes it
_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call
_GROUP_NOT_FOUND_SINCE: Final = 9  # the version of OffsetCommit that can say so


class Stored(NamedTuple):
    """A committed offset, as it is in the log."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: UUID
    record_offset: int

    def is_of(self, topic_id: UUID) -> bool:
        """Return whether it may be for the topic of this id, and not for an earlier one of the same name."""
        return NO_UUID in (topic_id, self.topic_id) or self.topic_id == topic_id


class CommittedOffsets:
    """The committed offsets of all groups of a shard."""

    def __init__(self, shard: GroupShard) -> None:
        self._shard: Final = shard
        journal = shard.journal
        self._groups: Final[Table[str, Table[Partition, Stored]]] = Table(journal)
        # What waits for the end of a transaction, by group, partition and producer id; and where a producer has any.
        self._pending: Final[Table[str, Table[Partition, Mapping[int, Stored]]]] = Table(journal)
        self._open: Final[Table[int, Table[tuple[str, Partition], None]]] = Table(journal)

    # ------------------------------------------------------------------------------------------------------- requests

    def commit(self, request: CommitRequest) -> CommitAnswer:
        """Commit offsets of a group, which is created if it is missing and nobody claims to be a member."""
        group = self._shard.groups.get(request.group_id)
        if group is None:
            if request.generation_id_or_member_epoch >= 0:
                is_new = request.version >= _GROUP_NOT_FOUND_SINCE and request.producer is None
                return CommitAnswer(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
            group = self._shard.add_simple_group(request.group_id)
        error = group.commit_error(request)
        if error is not ErrorCode.NONE:
            is_stale = error is ErrorCode.STALE_MEMBER_EPOCH and request.producer is not None
            return CommitAnswer(ErrorCode.ILLEGAL_GENERATION if is_stale else error)
        if request.producer is None:
            self._shard.committed(group, request.member_id)
        else:
            self._shard.write_for(request.producer)
        return CommitAnswer(ErrorCode.NONE, self._commit(request))

    def _commit(self, request: CommitRequest) -> list[ErrorCode]:
        most = self._shard.config.offset_metadata_max_bytes
        fits = [not each.metadata or utf_16_length(each.metadata) <= most for each in request.offsets]
        offsets = request.offsets if all(fits) else list(compress(request.offsets, fits))
        if request.retention_time_ms != _NEVER and request.producer is None:
            self._write_expiring(request, offsets)
        elif offsets:
            self._write(request, offsets)
        return [ErrorCode.NONE if each else ErrorCode.OFFSET_METADATA_TOO_LARGE for each in fits]

    def _write(self, request: CommitRequest, offsets: Sequence[CommittedOffset]) -> None:
        """Write commits all at once, and apply them: very many partitions may be committed with one request."""
        now_ms, group_id = self._shard.now.wall_ms, request.group_id
        first = self._shard.write_all(write_offset_records(group_id, offsets, now_ms))
        stored = [
            _NEW(Stored, (offset, epoch, metadata, now_ms, _NEVER, topic_id, record_offset))
            for record_offset, (_, _, offset, epoch, metadata, topic_id) in enumerate(offsets, first)
        ]
        if request.producer is None:
            partitions = [each[:2] for each in offsets]
            self._groups.get_or_add(group_id, self._new_table).put_all(dict(zip(partitions, stored, strict=True)))
        else:
            for wanted, each in zip(offsets, stored, strict=True):
                self._add_pending(request.producer.id, group_id, wanted[:2], each)

    def _write_expiring(self, request: CommitRequest, offsets: Iterable[CommittedOffset]) -> None:
        """Write commits of old clients, which say how long they count. Their version has no leader epoch, nor an id."""
        now_ms = self._shard.now.wall_ms
        for wanted in offsets:
            value = OffsetCommitValue(
                offset=wanted.offset,
                metadata=wanted.metadata,
                commit_timestamp=now_ms,
                expire_timestamp=min(now_ms + request.retention_time_ms, _LATEST_MS),
            )
            key = OffsetCommitKey(group=request.group_id, topic=wanted.topic, partition=wanted.partition)
            self._shard.write(key, value, _VERSION_WITH_EXPIRY)

    def fetch(self, request: FetchRequest) -> FetchAnswer:
        """Tell what a group has committed: in some partitions, or everywhere."""
        group = self._shard.groups.get(request.group_id)
        if group is not None:
            error = group.fetch_error(request.member_id, request.member_epoch)
            if error is not ErrorCode.NONE:
                return FetchAnswer(error)
        offsets: Mapping[Partition, Stored] = (
            _NOTHING if group is None else self._groups.get(request.group_id, _NOTHING)
        )
        wanted = request.partitions
        if wanted is None:
            wanted = [(topic, partition, NO_UUID) for topic, partition in sorted(offsets)]
        unstable: Collection[Partition] = self._pending.get(request.group_id, ()) if request.require_stable else ()
        return FetchAnswer(ErrorCode.NONE, list(_fetched(offsets, unstable, wanted)))

    def delete(self, request: DeleteRequest) -> DeleteAnswer:
        """Forget offsets of a group in topics that no member subscribes to."""
        group = self._shard.groups.get(request.group_id)
        if group is None:
            return DeleteAnswer(ErrorCode.GROUP_ID_NOT_FOUND)
        error = group.offset_deletion_error()
        if error is not ErrorCode.NONE:
            return DeleteAnswer(error)
        codes = []
        for topic, partition in request.partitions:
            if group.subscribes_to(topic):
                codes.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            else:
                self._forget(request.group_id, (topic, partition))
                codes.append(ErrorCode.NONE)
        return DeleteAnswer(ErrorCode.NONE, codes)

    # ------------------------------------------------------------------------------------------- groups and topics go

    def forget_group(self, group_id: str) -> None:
        """Forget everything that a group has committed."""
        for partition in sorted({*self._groups.get(group_id, ()), *self._pending.get(group_id, ())}):
            self._forget(group_id, partition)

    def forget_topic(self, topic: str, topic_id: UUID) -> None:
        """Forget what was committed in a topic that is deleted."""
        gone = {
            (group_id, partition)
            for group_id, partition, stored in self._everything()
            if partition[0] == topic and stored.is_of(topic_id)
        }
        for group_id, partition in sorted(gone):
            self._forget(group_id, partition)

    def expire(self, group: Group) -> bool:
        """Forget the offsets of a group that have not been used for too long. Returns whether none are left."""
        offsets = self._groups.get(group.group_id, _NOTHING)
        pending = self._pending.get(group.group_id, _NOTHING)
        expired = [
            partition
            for partition, stored in offsets.items()
            if partition not in pending and not group.subscribes_to(partition[0]) and self._is_expired(group, stored)
        ]
        is_all = len(expired) == len(offsets) and not pending
        for partition in expired:
            self._forget(group.group_id, partition)
        return is_all

    def _is_expired(self, group: Group, stored: Stored) -> bool:
        now_ms = self._shard.now.wall_ms
        if stored.expire_timestamp_ms != _NEVER:
            return now_ms >= stored.expire_timestamp_ms
        since_ms = group.unused_since(stored.commit_timestamp_ms)
        return since_ms is not None and now_ms - since_ms >= self._shard.config.offsets_retention_ms

    def groups(self) -> list[str]:
        """Return the groups that have committed offsets."""
        return sorted(self._groups)

    def _forget(self, group_id: str, partition: Partition) -> None:
        """Write that an offset is forgotten, if there is one."""
        if partition in self._groups.get(group_id, _NOTHING) or partition in self._pending.get(group_id, _NOTHING):
            self._shard.write(OffsetCommitKey(group=group_id, topic=partition[0], partition=partition[1]), None)

    # -------------------------------------------------------------------------------------------------------- records

    def apply(
        self,
        key: OffsetCommitKey | LegacyOffsetCommitKey,
        value: OffsetCommitValue | LegacyOffsetCommitValue | None,
        origin: Origin,
    ) -> None:
        """Change the state as a record says."""
        group_id, partition = key.group, (key.topic, key.partition)
        if value is None:
            self._remove(group_id, partition)
            return
        leader_epoch, expire_ms, topic_id = -1, _NEVER, NO_UUID
        if isinstance(value, OffsetCommitValue):
            leader_epoch, expire_ms, topic_id = value.leader_epoch, value.expire_timestamp, value.topic_id
        stored = Stored(
            value.offset, leader_epoch, value.metadata, value.commit_timestamp, expire_ms, topic_id, origin.offset
        )
        if group_id not in self._shard.groups:
            self._shard.add_simple_group(group_id)
        if origin.producer is None:
            self._store(group_id, partition, stored)
        else:
            self._add_pending(origin.producer.id, group_id, partition, stored)

    def apply_marker(self, producer_id: int, *, commit: bool) -> None:
        """End the transaction of a producer: what it has committed counts now, or never."""
        for group_id, partition in sorted(self._open.get(producer_id, ())):
            stored = self._pending[group_id][partition][producer_id]
            self._drop_pending(producer_id, group_id, partition)
            known = self._groups.get(group_id, _NOTHING).get(partition)
            if commit and (known is None or known.record_offset < stored.record_offset):
                self._store(group_id, partition, stored)

    def _store(self, group_id: str, partition: Partition, stored: Stored) -> None:
        self._groups.get_or_add(group_id, self._new_table)[partition] = stored

    def _remove(self, group_id: str, partition: Partition) -> None:
        if partition in self._groups.get(group_id, _NOTHING):
            del self._groups[group_id][partition]
            if not self._groups[group_id]:
                del self._groups[group_id]
        for producer_id in self._pending.get(group_id, _NOTHING).get(partition, _NOTHING):
            self._drop_pending(producer_id, group_id, partition)

    def _add_pending(self, producer_id: int, group_id: str, partition: Partition, stored: Stored) -> None:
        by_partition = self._pending.get_or_add(group_id, self._new_table)
        by_partition[partition] = {**by_partition.get(partition, _NOTHING), producer_id: stored}
        self._open.get_or_add(producer_id, self._new_set)[group_id, partition] = None

    def _drop_pending(self, producer_id: int, group_id: str, partition: Partition) -> None:
        by_partition = self._pending[group_id]
        left = {each: stored for each, stored in by_partition[partition].items() if each != producer_id}
        if left:
            by_partition[partition] = left
        else:
            del by_partition[partition]
        if not by_partition:
            del self._pending[group_id]
        is_open = self._open[producer_id]
        del is_open[group_id, partition]
        if not is_open:
            del self._open[producer_id]

    def _new_table(self) -> Table[Partition, Any]:
        return Table(self._shard.journal)

    def _new_set(self) -> Table[tuple[str, Partition], None]:
        return Table(self._shard.journal)

    def _everything(self) -> Iterator[tuple[str, Partition, Stored]]:
        for group_id, offsets in self._groups.items():
            for partition, stored in offsets.items():
                yield group_id, partition, stored
        for group_id, by_partition in self._pending.items():
            for partition, pending in by_partition.items():
                for stored in pending.values():
                    yield group_id, partition, stored


def _fetched(
    offsets: Mapping[Partition, Stored], unstable: Collection[Partition], wanted: Iterable[tuple[str, int, UUID]]
) -> Iterator[FetchedOffset]:
    for topic, partition, topic_id in wanted:
        if unstable and (topic, partition) in unstable:
            yield FetchedOffset(topic, partition, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
            continue
        stored = offsets.get((topic, partition))
        if stored is None or not (topic_id is NO_UUID or stored.is_of(topic_id)):
            yield FetchedOffset(topic, partition)
            continue
        offset, leader_epoch, metadata, _, _, stored_id, _ = stored
        yield _NEW(FetchedOffset, (topic, partition, offset, leader_epoch, metadata, _NONE, stored_id))
