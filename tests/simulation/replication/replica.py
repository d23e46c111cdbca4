"""One replica of the simulation in memory: a log, and what `LedPartition` decides if it leads (`HostedReplica`)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.cluster.follower_effects import Append, Effect, Restart, TruncateTo, TruncateToEpoch
from octavo.cluster.following import Fetcher
from octavo.cluster.leading import LedPartition, Outcome
from octavo.cluster.messages import (
    LATEST,
    NONE,
    AlteredPartition,
    EpochEndOffset,
    FetchedPartition,
    FetchPartition,
    ListedOffset,
    ListOffsetsPartition,
    TopicIdPartition,
)
from octavo.cluster.replicas import Changed
from octavo.errors import ErrorCode
from tests.simulation.replication.checks import Checks
from tests.simulation.replication.memory_log import Entry, MemoryLog

if TYPE_CHECKING:
    from tests.simulation.replication.member import Member


class Waiting(NamedTuple):
    """Records whose producer waits."""

    first_offset: int
    entries: list[Entry]


class HostedReplica:
    """A replica in one life of its broker. The log is older."""

    def __init__(self, member: Member, partition: TopicIdPartition, log: MemoryLog) -> None:
        self.partition: Final = partition
        self.log: Final = log
        self.led: LedPartition | None = None
        self.waiting: Final[deque[Waiting]] = deque()
        self.has_role = False
        self.role_epoch = -1  # the leader epoch in which it leads or follows
        self._member: Final = member
        self._checks: Final[Checks] = member.world.checks[partition]

    @property
    def _now_ms(self) -> int:
        return self._member.world.now_ms

    # ----------------------------------------------------------------------------------------------------------- roles

    def lead(self, change: Changed) -> None:
        """Lead, or take note of a change."""
        record, log, member = change.record, self.log, self._member
        self._take_role(record.leader_epoch)
        epoch_start = log.end_offset
        if change.is_new_epoch:
            self._checks.led(member.number, record.leader_epoch, log)
            epoch_start = log.become_leader(record.leader_epoch)
        if self.led is None:
            self.led = LedPartition(self.partition, member.cluster, min_isr=member.world.controller.min_isr)
        outcome = self.led.lead(
            record,
            self._now_ms,
            end_offset=log.end_offset,
            high_watermark=log.high_watermark,
            epoch_start=epoch_start,
        )
        self.take(outcome)

    def depose(self) -> None:
        """Lead no more."""
        if self.led is not None:
            self.led.depose()
            self._acknowledge()
            self.led = None

    def follow(self, change: Changed) -> None:
        """Lead no more, and be in a new epoch, perhaps."""
        self.depose()
        self._take_role(change.record.leader_epoch)

    def _take_role(self, epoch: int) -> None:
        self.has_role, self.role_epoch = True, epoch
        self._checks.took_role(self._member.number, self._member.life_number, epoch)

    # ------------------------------------------------------------------------------------------------------- following

    def position(self, leader_epoch: int) -> FetchPartition:
        """Return where the log ends."""
        log = self.log
        return FetchPartition(leader_epoch, log.end_offset, log.last_epoch, log.start_offset)

    def carry_out(self, fetcher: Fetcher, effect: Effect) -> None:
        """Change the log as a leader's answer says."""
        log, before = self.log, self.log.high_watermark
        if isinstance(effect, TruncateToEpoch):
            log.truncate_to_epoch(effect.epoch, effect.end_offset)
        elif isinstance(effect, TruncateTo):
            log.truncate_to(effect.offset)
        elif isinstance(effect, Restart):
            log.restart_at(effect.offset)
        elif isinstance(effect, Append):
            if effect.restart_at is not None:
                log.restart_at(effect.restart_at)
            if effect.records:
                log.append_as_follower(bytes(effect.records), effect.leader_epoch)
            log.advance_high_watermark(effect.high_watermark)
            log.follow_start(effect.log_start_offset)
        self._checks.cut(self._member.number, before, log)
        fetcher.moved(
            self.partition,
            end_offset=log.end_offset,
            last_fetched_epoch=log.last_epoch,
            log_start_offset=log.start_offset,
        )

    # --------------------------------------------------------------------------------------------------------- leading

    def serve_fetch(self, replica: int, replica_epoch: int, asked: FetchPartition) -> FetchedPartition:
        """Fetch, of a follower."""
        led, log, random = self.led, self.log, self._member.world.random
        if led is None:
            return FetchedPartition(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        error = led.refusal(replica, replica_epoch, asked.current_leader_epoch)
        if error != NONE:
            return FetchedPartition(error)
        end_offset = log.end_offset
        if not log.start_offset <= asked.fetch_offset:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        if asked.last_fetched_epoch >= 0:
            own = log.end_offset_for_epoch(asked.last_fetched_epoch)
            if own.epoch < 0:
                return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
            if own.epoch < asked.last_fetched_epoch or own.end_offset < asked.fetch_offset:
                return FetchedPartition(diverging_epoch=EpochEndOffset(*own))
        if asked.fetch_offset > end_offset:
            return FetchedPartition(ErrorCode.OFFSET_OUT_OF_RANGE)
        outcome = led.fetched(
            replica,
            replica_epoch,
            fetch_offset=asked.fetch_offset,
            log_start_offset=asked.log_start_offset,
            end_offset=end_offset,
            now_ms=self._now_ms,
        )
        self.take(outcome)
        records = log.read(asked.fetch_offset, random.choice(self._member.world.fetch_sizes), end_offset)
        return FetchedPartition(0, log.high_watermark, log.start_offset, records)

    def serve_offset(self, asked: ListOffsetsPartition) -> ListedOffset:
        """ListOffsets, of a follower."""
        if self.led is None or self.led.leader_epoch != asked.current_leader_epoch:
            return ListedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return ListedOffset(0, self.log.end_offset if asked.timestamp == LATEST else self.log.start_offset)

    def produce(self, values: list[int]) -> None:
        """Append records with acks=all."""
        led, log = self.led, self.log
        if led is None or led.append_refusal() != NONE:
            return
        self._checks.appended(self._member.number, led.leader_epoch, log)
        first = log.end_offset
        for value in values:
            log.append(value)
        self.waiting.append(Waiting(first, log.entries[first - log.start_offset :]))
        self.take(led.appended(log.end_offset, self._now_ms))

    def take(self, outcome: Outcome) -> None:
        """Do what has to be done after something has happened."""
        led, member = self.led, self._member
        if led is None:
            return
        if outcome.high_watermark is not None:
            self.log.advance_high_watermark(outcome.high_watermark)
            member.world.raised(member, led, outcome.high_watermark)
        if outcome.change is not None and not member.changes.submit(outcome.change):
            refused = AlteredPartition(ErrorCode.OPERATION_NOT_ATTEMPTED)
            self.take(led.settled(outcome.change, refused, self._now_ms))
        self._acknowledge()

    def _acknowledge(self) -> None:
        led = self.led
        if led is None or not self.waiting:
            return
        waiting = self.waiting
        while waiting:
            each = waiting[0]
            answer = led.acknowledgement(each.first_offset + len(each.entries))
            if answer is None:  # then those after it wait, too
                return
            waiting.popleft()
            if answer == NONE:
                number, record = self._member.number, self._member.record_of(self.partition)
                self._checks.acknowledge(number, led.leader_epoch, each.first_offset, each.entries, record)

    def consume(self) -> None:
        """Show a consumer everything that it may see."""
        if self.has_role:
            log = self.log
            shown = log.entries[: log.high_watermark - log.start_offset]
            self._checks.know(log.start_offset, shown, self.role_epoch)
