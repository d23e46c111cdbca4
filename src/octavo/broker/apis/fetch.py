"""Fetch (1): read records of partitions, and wait for them if there are not enough yet.

The answer has slices of segment files, which are sent without being read. The first batch of the first partition that
has any is sent whole, however large it is; all else is cut by the limits. In a cluster, replicas read up to the end of
logs: that they ask for an offset says that they have everything before it. Consumers may also read from followers, from
version 11 on. Versions: 7 brings sessions, 9 leader epochs, 12 is flexible, 13 names topics by id, 16 tells who leads.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Change, Parts, Wait
from octavo.broker.apis.list_offsets import ISOLATIONS, isolation_for
from octavo.broker.cluster_image import NO_LISTENER
from octavo.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, Session
from octavo.broker.leader_epochs import EpochEnd, epoch_end, followed_epoch_end
from octavo.broker.member.current_leaders import current_leader, endpoints
from octavo.broker.member.nearest_replica import nearest_replica
from octavo.broker.member.replica_fetch import ReplicaFetch
from octavo.broker.request import Request
from octavo.broker.wire.fetch import NO_HIGH_WATERMARK, NO_SESSION, FetchRequest, PartitionFetch, read_fetch
from octavo.broker.wire.fetched import LEADERS, NO_REPLICA, FetchedPartition, write_fetch
from octavo.broker.wire.leader_tags import NodeEndpoint
from octavo.errors import ErrorCode, FormatError, LogError
from octavo.log.log import Log
from octavo.log.reading.read_view import ReadResult
from octavo.log.view import Isolation

if TYPE_CHECKING:
    from octavo.broker.broker import Broker, LedLog

_FROM_FOLLOWERS: Final = 11  # the first version whose consumers may read from followers
_MOVED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_OF_REPLICA: Final = (*_MOVED, ErrorCode.UNKNOWN_LEADER_EPOCH)


def fetch(broker: Broker, request: Request) -> Parts | Wait:
    """Answer a Fetch request."""
    asked = read_fetch(request.body, request.version)
    session: Session | None = None
    is_full = True
    wanted: Iterable[PartitionFetch]
    if asked.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        broker.sessions.close(asked.session_id)
        wanted = _named(asked)
        isolation = _isolation(broker, asked, wanted)
        if asked.session_epoch == INITIAL_EPOCH:
            session = broker.sessions.open(asked, request.version)
    else:
        found = broker.sessions.go_on(asked, request.version)
        if isinstance(found, int):
            return write_fetch(request.version, [], error_code=found)
        if found.partitions:
            session, is_full, wanted = found, False, found.partitions.values()
        else:  # a session of nothing is closed, and the request is answered without one
            broker.sessions.close(found.id)
            wanted = _named(asked)
        isolation = _isolation(broker, asked, wanted)
    return _Fetch(broker, request, asked, list(wanted), session, isolation, is_full=is_full).begin()


def _named(asked: FetchRequest) -> Iterable[PartitionFetch]:
    """Return the partitions that a request names itself. If it names one twice, the last counts."""
    return {(each.topic, each.partition): each for each in asked.partitions}.values()


def _isolation(broker: Broker, asked: FetchRequest, wanted: Iterable[PartitionFetch]) -> Isolation:
    """Return the isolation of a fetch. One that does not exist matters only if there is anything to read."""
    if asked.is_from_replica and broker.leaders is not None:
        return Isolation.LOG_END
    if asked.isolation_level not in ISOLATIONS and not any(_exists(broker, each) for each in wanted):
        return Isolation.HIGH_WATERMARK
    return isolation_for(asked.isolation_level)


def _exists(broker: Broker, wanted: PartitionFetch) -> bool:
    topic = broker.image.topic(wanted.topic)
    return topic is not None and wanted.partition in topic.partitions


class _Fetch:
    """One fetch, which may have to be tried again."""

    def __init__(
        self,
        broker: Broker,
        request: Request,
        asked: FetchRequest,
        wanted: Sequence[PartitionFetch],
        session: Session | None,
        isolation: Isolation,
        *,
        is_full: bool,
    ) -> None:
        self._broker: Final = broker
        self._version: Final = request.version
        self._client: Final = request.client
        self._asked: Final = asked
        self._wanted: Final = wanted
        self._session: Final = session
        self._epoch: Final = None if session is None else session.epoch
        self._is_full: Final = is_full
        self._isolation: Final = isolation
        self._max_bytes: Final = min(asked.max_bytes, broker.config.fetch_max_bytes)
        self._min_bytes: Final = min(asked.min_bytes, self._max_bytes)
        self._logs: list[Log] = []
        self._must_answer = False  # something happened that the client has to know at once
        self._replica: ReplicaFetch | None = None
        if broker.leaders is not None and asked.is_from_replica:
            self._replica = ReplicaFetch(broker, broker.leaders, asked, session, is_full=is_full)
        self._following: Final = None if self._replica is None else self._replica.session
        may_follow = broker.leaders is not None and request.version >= _FROM_FOLLOWERS and not asked.is_from_replica
        self._find: Final = broker.readable_log if may_follow else broker.led_log
        self._is_rack_aware: Final = may_follow and broker.leaders is not None and broker.leaders.is_rack_aware

    def begin(self) -> Parts | Wait:
        """Read, and return the answer if there is enough, or a wait."""
        results = self._read()
        following = self._following
        if self._replica is not None:
            self._replica.is_first = False
        is_nothing_there = not self._logs and (following is None or not following.has_quiet)
        if self._asked.max_wait_ms <= 0 or self._is_enough(results) or is_nothing_there:
            return self._answer(results)
        deadline = time.monotonic() + self._asked.max_wait_ms / 1000
        wait = Wait(deadline, tuple(self._logs) if following is None else (), self._retry)
        if following is not None:
            following.wait = wait
        if self._replica is None:
            wait.needs = Change.HIGH_WATERMARK
        elif all(each.high_watermark == NO_HIGH_WATERMARK for each in self._looked_at):
            wait.needs = Change.END
        return wait

    def _retry(self, is_over: bool) -> Parts | None:
        before = self._logs.copy()
        results = self._read()
        # Also if there is another one by that name: nobody watches it. A replica's session hears of its partitions.
        is_one_gone = self._following is None and self._logs != before
        return self._answer(results) if is_over or is_one_gone or self._is_enough(results) else None

    def _is_enough(self, results: Iterable[FetchedPartition]) -> bool:
        if self._must_answer:
            return True
        return sum(each.records.size for each in results if each.records is not None) >= self._min_bytes

    def _read(self) -> list[FetchedPartition]:
        """Read all partitions, up to the limit of the whole."""
        self._logs.clear()
        left = self._max_bytes
        results: list[FetchedPartition] = []
        missing: list[FetchedPartition] = []  # they come last in the answer, as in Kafka's
        at_least_one = True
        replica = self._replica
        for each in self._looked_at:
            found = self._find(each.topic, each.partition, max(-1, each.leader_epoch))
            if isinstance(found, int) and found not in _OF_REPLICA:
                missing.append(FetchedPartition(each.topic, each.partition, found, aborted=()))
                continue
            if isinstance(found, int):
                results.append(self._failed(each, found))
                continue
            if replica is not None and (refusal := replica.refusal(each, found)):
                results.append(self._failed(each, refusal))
                continue
            if self._is_rack_aware and (preferred := self._preferred(each, found)) != NO_REPLICA:
                results.append(_moved(each, found.log, preferred))
                self._must_answer = True
                continue
            if replica is not None and replica.has_all(each, found):
                self._logs.append(found.log)
                continue
            result = self._read_one(each, found, min(left, each.max_bytes), at_least_one)
            if replica is not None and replica.is_held_back(each, found):
                result = result._replace(records=None)
            left = max(0, left - (0 if result.records is None else result.records.size))
            at_least_one = at_least_one and result.records is None
            results.append(result)
        return results + missing

    @property
    def _looked_at(self) -> Sequence[PartitionFetch]:
        """The partitions that may have something new: all, except for those that are quiet in a replica's session."""
        return self._wanted if self._following is None else tuple(self._following.active.values())

    def _preferred(self, each: PartitionFetch, found: LedLog) -> int:
        """Return the replica that the consumer had better read from; `NO_REPLICA` if it is this one."""
        if found.led is None:
            return NO_REPLICA
        nodes = self._broker.image.listeners.get(self._client.listener_name, NO_LISTENER).nodes
        return nearest_replica(found.led.state, self._broker.node_id, nodes, self._asked.rack, each.offset)

    def _read_one(self, each: PartitionFetch, found: LedLog, max_bytes: int, at_least_one: bool) -> FetchedPartition:
        log = found.log
        self._logs.append(log)
        end_offset = log.end_offset  # before anything is read: what is appended meanwhile puts no replica behind
        if each.last_fetched_epoch >= 0:
            # A follower does not know its leader's epoch before it has records of it.
            is_followed = found.led is None and self._broker.leaders is not None
            ask = followed_epoch_end if is_followed else epoch_end
            end = ask(log, each.last_fetched_epoch)
            if end.epoch < 0 or each.offset < log.start_offset:
                self._broker.tell_remote(log, each.offset)
                return self._failed(each, ErrorCode.OFFSET_OUT_OF_RANGE)
            if end.epoch < each.last_fetched_epoch or end.end_offset < each.offset:
                self._must_answer = True
                return _told(each, log, end)
        try:
            part = self._read_log(found, each.offset, max(0, max_bytes), at_least_one=at_least_one)
        except LogError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._broker.tell_remote(log, each.offset)
            return self._failed(each, error.code)
        except (FormatError, OSError) as error:
            if not log.is_open:  # its topic was deleted a moment ago
                return self._failed(each, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self._broker.troubles.failed(f"records of {log.partition} cannot be read", error)
            is_damage = isinstance(error, FormatError)
            return self._failed(each, ErrorCode.CORRUPT_MESSAGE if is_damage else ErrorCode.KAFKA_STORAGE_ERROR)
        if max_bytes < 0 and each.offset < self._bound(part):  # Kafka does not expect that
            return self._failed(each, ErrorCode.UNKNOWN_SERVER_ERROR)
        high_watermark = part.high_watermark
        if self._replica is not None:
            self._replica.note_position(each, found, end_offset)
            high_watermark = log.high_watermark
            self._must_answer |= high_watermark > each.high_watermark  # the replica wants to know
        return FetchedPartition(
            each.topic,
            each.partition,
            0,
            high_watermark,
            part.last_stable_offset,
            part.log_start_offset,
            part.aborted_transactions if not part.is_first_cut else None,
            part.file_slice if part.size and not part.is_first_cut else None,
        )

    def _read_log(self, found: LedLog, offset: int, max_bytes: int, *, at_least_one: bool) -> ReadResult:
        if self._replica is not None and found.led is not None:
            return found.led.read(offset, max_bytes, at_least_one=at_least_one)
        return found.log.read(offset, max_bytes, isolation=self._isolation, at_least_one=at_least_one)

    def _bound(self, part: ReadResult) -> int:
        """Return the offset before which the client may read."""
        is_committed = self._isolation is Isolation.READ_COMMITTED
        return part.last_stable_offset if is_committed else part.high_watermark

    def _failed(self, each: PartitionFetch, error: int) -> FetchedPartition:
        self._must_answer = True
        return FetchedPartition(each.topic, each.partition, error)

    def _answer(self, results: Sequence[FetchedPartition]) -> Parts:
        session = self._session
        if session is not None and session.epoch != self._epoch:
            return write_fetch(self._version, [], error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if self._replica is not None:
            self._replica.count(results)
        session_id = NO_SESSION
        if session is not None:
            session_id, results = session.id, session.changed(results, is_full=self._is_full)
        if self._version >= LEADERS and self._must_answer and self._broker.leaders is not None:
            return self._with_leaders(results, session_id)
        return write_fetch(self._version, results, session_id=session_id)

    def _with_leaders(self, results: Sequence[FetchedPartition], session_id: int) -> Parts:
        """Return the answer, with the leaders of partitions that this broker does not lead, or not in that epoch."""
        told = [
            each._replace(current_leader=current_leader(self._broker, each.topic, each.partition))
            if each.error_code in _MOVED
            else each
            for each in results
        ]
        nodes: list[NodeEndpoint] = []
        if not self._asked.is_from_replica:  # brokers know each other by the metadata
            nodes = endpoints(self._broker, self._client, [each.current_leader for each in told])
        return write_fetch(self._version, told, session_id=session_id, endpoints=nodes)


def _moved(each: PartitionFetch, log: Log, replica: int) -> FetchedPartition:
    """Return a partition without records: the client finds them at another replica."""
    bounds = (log.high_watermark, log.last_stable_offset, log.start_offset)
    return FetchedPartition(each.topic, each.partition, 0, *bounds, preferred_read_replica=replica)


def _told(each: PartitionFetch, log: Log, diverging: EpochEnd) -> FetchedPartition:
    """Return a partition without records: the client has others than this log."""
    bounds = (log.high_watermark, log.last_stable_offset, log.start_offset)
    return FetchedPartition(each.topic, each.partition, 0, *bounds, None, None, diverging)
