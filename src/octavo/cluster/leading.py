"""Lead one partition: `LedPartition` knows who is in sync, and how far the high watermark goes.

    led = LedPartition(partition, cluster, min_isr=2)
    led.lead(record, now_ms, ...)                   # metadata make this broker the leader, or change the partition
    led.appended(end_offset, now_ms)                # records were appended here
    led.fetched(replica_id, ...)                    # a follower has asked for what follows `fetch_offset`
    led.settled(change, answer, now_ms)             # the controller has answered
    led.check(now_ms)                               # time has passed, or brokers have changed

Each returns an `Outcome`: the high watermark that the log and its readers have to be told of, and a change of the
replicas in sync that the controller has to be asked for. One change is pending at a time. Until it is known what has
become of it, the larger of both sets counts: the maximal ISR (KIP-497).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from octavo.cluster.messages import (
    NO_EPOCH,
    NO_OFFSET,
    NONE,
    AlteredPartition,
    AlterPartitionChange,
    BrokerState,
    TopicIdPartition,
)
from octavo.cluster.remote_replica import RemoteReplica
from octavo.errors import ErrorCode
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.schemas.metadata.topics import PartitionRecord

MAX_LAG_MS: Final = 30_000  # replica.lag.time.max.ms


@dataclass(slots=True)
class ClusterView:
    """What a leader knows of the cluster besides its partition. All partitions of a broker share one."""

    node_id: int
    broker_epoch: int  # of the registration of this broker
    brokers: Mapping[int, RegisterBrokerRecord]  # by the newest metadata
    max_lag_ms: int = MAX_LAG_MS


class IsrChange(NamedTuple):
    """A change of the replicas in sync that the controller is asked for. It is known by its identity."""

    partition: TopicIdPartition
    asked: AlterPartitionChange
    maximal_isr: frozenset[int]  # as long as it is not known what has become of it


class Outcome(NamedTuple):
    """What has to be done after something has happened."""

    high_watermark: int | None = None  # it was raised
    change: IsrChange | None = None


NOTHING: Final = Outcome()


class LedPartition:
    """A partition, from when this broker becomes its leader until it is its leader no more."""

    def __init__(self, partition: TopicIdPartition, cluster: ClusterView, *, min_isr: int) -> None:
        self.partition: Final = partition
        self.min_isr = min_isr  # min.insync.replicas
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.isr: frozenset[int] = frozenset()  # as the controller has it
        self.pending: IsrChange | None = None
        self.epoch_start = NO_OFFSET  # where the log ended when this leader epoch began
        self.end_offset = 0
        self.high_watermark = 0
        self.replicas: Final[dict[int, RemoteReplica]] = {}  # all but this broker
        self.is_deposed = False
        self._cluster: Final = cluster

    # ------------------------------------------------------------------------------------------------------- metadata

    def lead(
        self, record: PartitionRecord, now_ms: int, *, end_offset: int, high_watermark: int, epoch_start: int
    ) -> Outcome:
        """Lead the partition as its record says.

        epoch_start: what `Log.become_leader` has returned; it counts if the leader epoch is new

        A pending change is over: the record knows what has become of it, or it will be refused. A record that is not
        newer than what the controller has answered is ignored. If a change is pending then, it was asked for on top of
        this record, and may still be carried out. (Kafka forgets it, and its high watermark can pass a new member.)
        """
        if record.partition_epoch <= self.partition_epoch:
            return NOTHING
        is_first = self.leader_epoch == NO_EPOCH
        self.isr, self.pending = frozenset(record.isr), None
        self.end_offset = end_offset
        self.high_watermark = high_watermark if is_first else max(self.high_watermark, high_watermark)
        others = [replica for replica in record.replicas if replica != self._cluster.node_id]
        for gone in self.replicas.keys() - others:
            del self.replicas[gone]
        for number in others:
            self.replicas.setdefault(number, RemoteReplica())
        if record.leader_epoch > self.leader_epoch:
            self.epoch_start = epoch_start
            if record.leader_epoch != self.leader_epoch + 1:  # another may have led meanwhile: no position is known
                self.replicas.update((number, RemoteReplica()) for number in others)
            for number, replica in self.replicas.items():
                replica.begin_epoch(now_ms, epoch_start, is_in_sync=number in self.isr)
        self.leader_epoch, self.partition_epoch = record.leader_epoch, record.partition_epoch
        return Outcome(self._raise_high_watermark(now_ms))

    def depose(self) -> None:
        """Note that this broker is the leader no more: nothing is acknowledged from now on."""
        self.is_deposed = True
        self.pending = None

    # -------------------------------------------------------------------------------------------------------- progress

    def appended(self, end_offset: int, now_ms: int) -> Outcome:
        """Note where the log ends after an append."""
        self.end_offset = end_offset
        high_watermark = self._raise_high_watermark(now_ms)
        return NOTHING if high_watermark is None else Outcome(high_watermark)

    def refusal(self, replica_id: int, replica_epoch: int, current_leader_epoch: int) -> int:
        """Return the error for a Fetch of a follower, before anything is read for it; NONE if it is served."""
        if self.is_deposed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            is_old = current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        if replica_id not in self.replicas:  # it may know of a reassignment that is not known here yet
            has_epoch = current_leader_epoch != NO_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker = self._cluster.brokers.get(replica_id)
        if broker is not None and NO_EPOCH != replica_epoch < broker.broker_epoch:  # from before its restart (KIP-903)
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return NONE

    def fetched(
        self,
        replica_id: int,
        replica_epoch: int,
        *,
        fetch_offset: int,
        log_start_offset: int,
        end_offset: int,
        now_ms: int,
    ) -> Outcome:
        """Note that a follower has everything before `fetch_offset`.

        Call it when its Fetch is handled, before anything waits, and only if there was no `refusal` and its log does
        not diverge. `end_offset`: where this log ended before anything was read for the follower.
        """
        replica = self.replicas[replica_id]
        replica.settle()
        if (
            fetch_offset == replica.log_end_offset == end_offset == self.end_offset
            and log_start_offset == replica.log_start_offset
            and replica_epoch == replica.broker_epoch
            and replica_id in self.isr
        ):  # nothing is new but the time: nearly always, where a broker follows many partitions
            replica.caught_up_ms = replica.fetch_ms = max(replica.caught_up_ms, now_ms)
            replica.leader_end_offset = max(end_offset, replica.leader_end_offset)
            return NOTHING
        self.end_offset = max(self.end_offset, end_offset)
        if fetch_offset >= end_offset:
            replica.caught_up_ms = max(replica.caught_up_ms, now_ms)
        elif fetch_offset >= replica.leader_end_offset:
            replica.caught_up_ms = max(replica.caught_up_ms, replica.fetch_ms)
        replica.log_end_offset, replica.log_start_offset = fetch_offset, log_start_offset
        replica.leader_end_offset = max(end_offset, replica.leader_end_offset)
        replica.fetch_ms, replica.broker_epoch = now_ms, replica_epoch
        change = self._expand(replica_id, replica)
        return Outcome(self._raise_high_watermark(now_ms), change)

    def check(self, now_ms: int) -> Outcome:
        """Look who is out of sync, every `max_lag_ms` / 2, and how far the high watermark can go now."""
        return Outcome(self._raise_high_watermark(now_ms), self._shrink(now_ms))

    # ------------------------------------------------------------------------------------------------ replicas in sync

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The replicas that may be in sync for the controller, now or when a pending change is settled."""
        return self.isr if self.pending is None else self.pending.maximal_isr

    def settled(self, change: IsrChange, answer: AlteredPartition, now_ms: int) -> Outcome:
        """Take the controller's answer to a change. It does not count if metadata were faster."""
        if change is not self.pending:
            return NOTHING
        if answer.error_code in _NOT_DONE:
            self.pending = None
        elif (
            answer.error_code == NONE
            and answer.leader_epoch == self.leader_epoch
            and answer.partition_epoch >= self.partition_epoch
        ):
            self.isr, self.pending = frozenset(answer.isr), None
            self.partition_epoch = answer.partition_epoch
        # Otherwise it is open whether it was done. The maximal ISR stays until metadata tell.
        return Outcome(self._raise_high_watermark(now_ms))

    def _expand(self, replica_id: int, replica: RemoteReplica) -> IsrChange | None:
        if self.pending is not None or self.is_deposed or replica_id in self.isr:
            return None
        if replica.log_end_offset < max(self.high_watermark, self.epoch_start):
            return None
        if not self._is_eligible(replica_id, replica):
            return None
        isr = self.isr | {replica_id}
        return self._propose(isr, maximal_isr=isr)

    def _shrink(self, now_ms: int) -> IsrChange | None:
        if self.pending is not None or self.is_deposed:
            return None
        out = {number for number in self.isr - {self._cluster.node_id} if not self._is_in_sync(number, now_ms)}
        return self._propose(self.isr - out, maximal_isr=self.isr) if out else None

    def _is_in_sync(self, replica_id: int, now_ms: int) -> bool:
        replica = self.replicas.get(replica_id)
        return replica is not None and replica.is_caught_up(self.end_offset, now_ms, self._cluster.max_lag_ms)

    def _is_eligible(self, replica_id: int, replica: RemoteReplica) -> bool:
        """Return whether the controller would let a replica into the ISR."""
        broker = self._cluster.brokers.get(replica_id)
        if broker is None or broker.fenced or broker.in_controlled_shutdown:
            return False
        return replica.broker_epoch in (NO_EPOCH, broker.broker_epoch)

    def _propose(self, isr: Iterable[int], *, maximal_isr: frozenset[int]) -> IsrChange:
        asked = AlterPartitionChange(
            self.leader_epoch, self.partition_epoch, tuple(self._with_epoch(replica_id) for replica_id in sorted(isr))
        )
        self.pending = IsrChange(self.partition, asked, maximal_isr)
        return self.pending

    def _with_epoch(self, replica_id: int) -> BrokerState:
        if replica_id == self._cluster.node_id:
            return BrokerState(replica_id, self._cluster.broker_epoch)
        replica = self.replicas.get(replica_id)
        # One that is in sync and has not fetched yet: if it restarts now, the controller refuses the change anyway.
        epoch = NO_EPOCH if replica is None or replica.broker_epoch is None else replica.broker_epoch
        return BrokerState(replica_id, epoch)

    # -------------------------------------------------------------------------------------------------- high watermark

    @property
    def is_under_min_isr(self) -> bool:
        """Whether fewer replicas are in sync than `min.insync.replicas`, of which there may be fewer altogether."""
        return len(self.isr) < self._least_isr

    @property
    def _least_isr(self) -> int:
        return min(self.min_isr, len(self.replicas) + 1)

    def _raise_high_watermark(self, now_ms: int) -> int | None:
        """Return the new high watermark; None if it stays."""
        if self.is_deposed or self.is_under_min_isr:
            return None
        maximal_isr, offset = self.maximal_isr, self.end_offset
        for number, replica in self.replicas.items():
            # One that is about to join must not be left behind for ever by a high watermark that moves on.
            if replica.log_end_offset < offset and (
                number in maximal_isr
                or (
                    replica.is_caught_up(self.end_offset, now_ms, self._cluster.max_lag_ms)
                    and self._is_eligible(number, replica)
                )
            ):
                offset = replica.log_end_offset
        if offset <= self.high_watermark:
            return None
        self.high_watermark = offset
        return offset

    def is_old(self, high_watermark: int) -> bool:
        """Return whether a high watermark may be below what the last leader has shown.

        Then a client that asks for the latest offset is told OFFSET_NOT_AVAILABLE. Readers see the high watermark of
        the log, which may be raised a little later than the one here.
        """
        return high_watermark < self.epoch_start

    def low_watermark(self, log_start_offset: int) -> int:
        """Return the offset below which no live replica has records. DeleteRecords waits for it."""
        starts = [replica.log_start_offset for number, replica in self.replicas.items() if self._is_alive(number)]
        return min(log_start_offset, *starts) if starts else log_start_offset

    def _is_alive(self, replica_id: int) -> bool:
        broker = self._cluster.brokers.get(replica_id)
        return broker is not None and not broker.fenced

    # --------------------------------------------------------------------------------------------------------- acks=all

    def append_refusal(self) -> int:
        """Return the error for records with acks=all, before they are appended; NONE if they may be."""
        if self.is_deposed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NOT_ENOUGH_REPLICAS if self.is_under_min_isr else NONE

    def acknowledgement(self, end_offset: int) -> int | None:
        """Return what to answer for records with acks=all that end at `end_offset`; None if they have to wait."""
        if self.is_deposed:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < end_offset:
            return None
        is_enough = len(self.maximal_isr) >= self._least_isr
        return NONE if is_enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


_NOT_DONE: Final = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)  # and never will be
