"""The partitions that a member leads: `Leaders` carries out on logs what `octavo.cluster.leading` decides.

All methods are called by the thread of the handlers. Other threads append to logs, too; `log_changed` is how that
thread learns of it. An answer to acks=all waits as `Committed` until readers can see what was appended.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from octavo.broker.answers import Answer, Change, Wait
from octavo.broker.cluster_image import ClusterImage
from octavo.broker.member.quota import ReplicationQuota
from octavo.broker.member.replica_session import Key, ReplicaSession
from octavo.cluster.leading import ClusterView, IsrChange, LedPartition, Outcome
from octavo.cluster.messages import AlteredPartition, TopicIdPartition
from octavo.cluster.replicas import Changed
from octavo.errors import ErrorCode
from octavo.log.log import Log
from octavo.log.reading.read_view import ReadResult, read_appended
from octavo.log.view import Isolation, View

_MIN_ISR: Final = "min.insync.replicas"
_MAX_VERIFYING: Final = 10_000
_NOT_ATTEMPTED: Final = AlteredPartition(ErrorCode.OPERATION_NOT_ATTEMPTED)


def monotonic_ms() -> int:
    """Return the time in milliseconds by a clock that never goes back."""
    return time.monotonic_ns() // 1_000_000


def min_isr(image: ClusterImage, topic_id: UUID, inherited: Mapping[str, str]) -> int:
    """Return `min.insync.replicas` of a topic.

    inherited: what topics inherit from the settings of this broker. Where controllers know replicas that may be elected
        (KIP-966), there is always a setting of the whole cluster, before that of a broker's own file
    """
    topic = image.by_id.get(topic_id.bytes)
    value = inherited.get(_MIN_ISR, "1")
    if topic is not None:
        value = topic.config.get(_MIN_ISR, value)
    return int(value) if value.isdecimal() else 1


class Led:
    """A partition that this broker leads, its log, and the answers that wait for its high watermark."""

    __slots__ = ("_before", "_last_read", "_seen", "_view", "_waiting", "log", "sessions", "state", "verifying")

    def __init__(self, state: LedPartition, log: Log) -> None:
        self.state: Final = state
        self.log: Final = log
        self.verifying: Final[dict[int, object]] = {}  # tokens, by producers whose transactions are being verified
        self.sessions: Final[dict[ReplicaSession, Key]] = {}  # of replicas that follow, with its name in each
        self._waiting: list[tuple[int, int, Committed]] = []  # a heap, by the offset that each waits for
        self._seen = (-1, -1, -1, -1)  # the log, when it was last looked at
        self._view: View | None = None  # likewise
        self._before: View | None = None  # the log before the last records were appended
        self._last_read: tuple[View, int, int, bool, ReadResult] | None = None

    def acknowledgement(self, end_offset: int) -> int | None:
        """Return what to answer for records with acks=all that end at `end_offset`; None if they have to wait.

        Readers see the records before their producer is told: somebody else may have to do that (`Leaders`).
        """
        code = self.state.acknowledgement(end_offset)
        is_early = code == ErrorCode.NONE and self.log.high_watermark < end_offset
        return None if is_early else code

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> ReadResult:
        """Read for a replica, as `Log.read` does. Several followers mostly ask for the same, one after the other."""
        view, last = self.log.view, self._last_read
        if last is not None and last[0] is view and last[1:4] == (offset, max_bytes, at_least_one):
            return last[4]
        result = None if self._before is None else read_appended(self.log, self._before, view, offset, max_bytes)
        if result is None:
            result = self.log.read(offset, max_bytes, isolation=Isolation.LOG_END, at_least_one=at_least_one)
        self._last_read = (view, offset, max_bytes, at_least_one, result)
        return result

    def take_change(self) -> Change:
        """Return what has changed in the log since this was last called."""
        log, before = self.log, self._seen
        if log.end_offset != before[0]:
            self._before = self._view
        self._view = log.view
        now = self._seen = (log.end_offset, log.high_watermark, log.start_offset, log.leader_epoch)
        if now[2:] != before[2:] or self.state.is_deposed:
            return Change.ANY
        if now[1] == before[1]:
            return Change.ANY if now[0] == before[0] else Change.END
        return Change.HIGH_WATERMARK if now[0] == before[0] else Change.ANY

    def stir(self, change: Change) -> Iterator[Wait]:
        """Have replicas be told of a change when they ask. Yields the answers that wait for it."""
        for session, key in self.sessions.items():
            session.stir(key)
            wait = session.wait
            if wait is not None and not wait.is_over and (change is Change.ANY or wait.needs in (Change.ANY, change)):
                yield wait

    def begin_verification(self, producer_id: int) -> object:
        """Return a token that is in `verifying` until the transaction of the producer ends."""
        while len(self.verifying) >= _MAX_VERIFYING:  # the records of the oldest never came
            self.verifying.pop(next(iter(self.verifying)))
        return self.verifying.setdefault(producer_id, object())

    def end_verification(self, producer_id: int) -> None:
        """Have records be refused that were verified before. Call this with the lock of the log."""
        self.verifying.pop(producer_id, None)

    def watch(self, wait: Committed, end_offset: int) -> bool:
        """Have `wait` be tried again when the high watermark is there. Returns False if it has to be tried now."""
        if self.acknowledgement(end_offset) is not None:
            return False
        heapq.heappush(self._waiting, (end_offset, id(wait), wait))
        return True

    def take_committed(self, high_watermark: int) -> Iterator[Committed]:
        """Yield the waits that need not wait for a higher high watermark."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= high_watermark:
            yield heapq.heappop(waiting)[2]

    def take_all(self) -> list[Committed]:
        """Return all waits, which are forgotten here."""
        waiting, self._waiting = self._waiting, []
        return [wait for _, _, wait in waiting]

    def forget_old(self) -> None:
        """Forget the waits that are over: they were answered for another reason, or nobody waits any more."""
        self._last_read = self._before = self._view = None  # they may keep files open that were deleted
        if any(wait.is_over for _, _, wait in self._waiting):
            self._waiting = [each for each in self._waiting if not each[2].is_over]
            heapq.heapify(self._waiting)


class Committed(Wait):
    """An answer that waits until records are committed.

    partitions: those that have to be waited for, with the end of the records in each
    """

    __slots__ = ("partitions",)
    keeps_request = False  # it has the records

    def __init__(self, deadline: float, partitions: Sequence[tuple[Led, int]], retry: Callable[[bool], Answer]) -> None:
        super().__init__(deadline, (), retry)
        self.partitions: Final = partitions


class Leaders:
    """All partitions that this broker leads."""

    def __init__(
        self,
        cluster: ClusterView,
        *,
        min_isr: Callable[[UUID], int],
        submit: Callable[[IsrChange], bool],
        wake: Callable[[Wait], object],
        changed: Callable[[Log], object],
        elsewhere: Callable[[Callable[[], None]], object],
        clock_ms: Callable[[], int] = monotonic_ms,
        quota: ReplicationQuota | None = None,
        is_rack_aware: bool = False,
    ) -> None:
        """Begin without partitions.

        min_isr: returns `min.insync.replicas` of a topic
        submit: asks the controller for a change (`IsrChanges.submit`)
        wake: has a wait be tried again soon (`Broker.wake`)
        changed: has everything be tried again that waits for a log (`Broker.log_changed`)
        elsewhere: has another thread call a function, because it may take long
        quota: holds replicas back that are not in sync
        is_rack_aware: consumers are sent to replicas in their racks
        """
        self.quota = quota
        self.is_rack_aware = is_rack_aware
        self._cluster: Final = cluster
        self._min_isr: Final = min_isr
        self._submit: Final = submit
        self._wake: Final = wake
        self._changed: Final = changed
        self._elsewhere: Final = elsewhere
        self._clock_ms: Final = clock_ms
        self._by_id: Final[dict[tuple[bytes, int], Led]] = {}
        self._by_log: Final[dict[Log, Led]] = {}

    def now_ms(self) -> int:
        """Return the time."""
        return self._clock_ms()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Led]:
        return iter(self._by_id.values())

    def get(self, topic_id: bytes, partition: int) -> Led | None:
        """Return a partition that this broker leads; None if it does not. Any thread may call this."""
        return self._by_id.get((topic_id, partition))

    # ------------------------------------------------------------------------------------------------------- metadata

    def lead(self, change: Changed, log: Log, *, epoch_start: int | None = None) -> None:
        """Lead a partition as the metadata say, or take note of a change.

        epoch_start: what `Log.become_leader` has returned, if it was called for this change already: it waits for the
            disk. Raises `LogError` and `OSError` as that does
        """
        partition, record = change.partition, change.record
        key = (partition.topic_id.bytes, partition.partition)
        led = self._by_id.get(key)
        if led is not None and led.log is not log:
            self.depose(partition)
            led = None
        if led is None or record.leader_epoch > led.state.leader_epoch:
            epoch_start = log.become_leader(record.leader_epoch) if epoch_start is None else epoch_start
        if led is None:
            state = LedPartition(partition, self._cluster, min_isr=self._min_isr(partition.topic_id))
            self._by_id[key] = self._by_log[log] = led = Led(state, log)
        start = led.state.epoch_start if epoch_start is None else epoch_start
        outcome = led.state.lead(
            record,
            self._clock_ms(),
            end_offset=log.end_offset,
            high_watermark=log.high_watermark,
            epoch_start=start,
        )
        self._take(led, outcome)
        self._changed(log)

    def depose(self, partition: TopicIdPartition) -> None:
        """Lead a partition no more: another does, or it was deleted. Who waits is told so."""
        led = self._by_id.pop((partition.topic_id.bytes, partition.partition), None)
        if led is None:
            return
        del self._by_log[led.log]
        led.state.depose()
        for wait in (*led.take_all(), *led.stir(Change.ANY)):
            self._wake(wait)
        self._changed(led.log)

    def settings_changed(self) -> None:
        """Take over changed settings of topics, or of the cluster."""
        for led in self._by_id.values():
            led.state.min_isr = self._min_isr(led.state.partition.topic_id)
        self.check(self._clock_ms())

    # ------------------------------------------------------------------------------------------------------- progress

    def log_changed(self, log: Log) -> Change:
        """Note that somebody has appended to a log, or that its high watermark has moved. Returns what it is."""
        led = self._by_log.get(log)
        if led is None:
            return Change.ANY
        if log.end_offset != led.state.end_offset:
            self.appended(led)
        for wait in led.take_committed(log.high_watermark):
            if not wait.is_over:
                self._wake(wait)
        change = led.take_change()
        for waiting in led.stir(change):
            self._wake(waiting)
        return change

    def appended(self, led: Led) -> None:
        """Note where a log ends now. Where no other replica counts, what was appended is committed."""
        self._take(led, led.state.appended(led.log.end_offset, self._clock_ms()))

    def fetched(
        self, led: Led, replica_id: int, replica_epoch: int, *, offset: int, start_offset: int, end_offset: int
    ) -> None:
        """Note the position of a follower; see `LedPartition.fetched`."""
        if led.state.replicas[replica_id].log_start_offset != start_offset:
            self._changed(led.log)  # somebody may wait until it has deleted records
        outcome = led.state.fetched(
            replica_id,
            replica_epoch,
            fetch_offset=offset,
            log_start_offset=start_offset,
            end_offset=end_offset,
            now_ms=self._clock_ms(),
        )
        self._take(led, outcome)

    def check(self, now_ms: int) -> None:
        """Look who is out of sync; time has passed, or brokers have changed."""
        for led in list(self._by_id.values()):
            self._take(led, led.state.check(now_ms))
            led.forget_old()

    def settled(self, change: IsrChange, answer: AlteredPartition) -> None:
        """Take the answer of the controller to a change."""
        led = self._by_id.get((change.partition.topic_id.bytes, change.partition.partition))
        if led is not None:
            self._take(led, led.state.settled(change, answer, self._clock_ms()))

    def watch(self, wait: Committed) -> None:
        """Have a wait be tried again when one of its partitions has what it waits for."""
        for led, end_offset in wait.partitions:
            if not led.watch(wait, end_offset):
                self._wake(wait)

    def _take(self, led: Led, outcome: Outcome) -> None:
        high_watermark, change = outcome
        if high_watermark is not None and not led.log.advance_high_watermark_at_once(high_watermark):
            self._elsewhere(lambda: _raise_high_watermark(led, high_watermark))
        if change is not None and not self._submit(change):
            self._take(led, led.state.settled(change, _NOT_ATTEMPTED, self._clock_ms()))


def _raise_high_watermark(led: Led, high_watermark: int) -> None:
    """Raise the high watermark of a log that another thread was changing."""
    with led.log.lock:
        if not led.state.is_deposed and high_watermark > led.log.high_watermark:
            led.log.advance_high_watermark(high_watermark)
