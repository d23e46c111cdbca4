"""Fetch (1): read records of partitions, and wait for them if there are not enough yet.

The answer has slices of segment files, which are sent without being read. The first batch of the first partition that
has any is sent whole, however large it is; all else is cut by the limits. Versions: 7 brings sessions, 9 leader epochs,
12 is flexible, 13 names topics by id.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from octavo.broker.answers import Parts, Wait
from octavo.broker.apis.list_offsets import ISOLATIONS, isolation_for
from octavo.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, Session
from octavo.broker.leader_epochs import EpochEnd, epoch_end
from octavo.broker.request import Request
from octavo.broker.wire.fetch import (
    NO_SESSION,
    FetchedPartition,
    FetchRequest,
    PartitionFetch,
    read_fetch,
    write_fetch,
)
from octavo.errors import ErrorCode, FormatError, LogError
from octavo.log.log import Log
from octavo.log.reading.read_view import ReadResult
from octavo.log.view import Isolation

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_OF_EPOCH: Final = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)


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
    return _Fetch(broker, request.version, asked, list(wanted), session, isolation, is_full=is_full).begin()


def _named(asked: FetchRequest) -> Iterable[PartitionFetch]:
    """Return the partitions that a request names itself. If it names one twice, the last counts."""
    return {(each.topic, each.partition): each for each in asked.partitions}.values()


def _isolation(broker: Broker, asked: FetchRequest, wanted: Iterable[PartitionFetch]) -> Isolation:
    """Return the isolation of a fetch. One that does not exist matters only if there is anything to read."""
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
        version: int,
        asked: FetchRequest,
        wanted: Sequence[PartitionFetch],
        session: Session | None,
        isolation: Isolation,
        *,
        is_full: bool,
    ) -> None:
        self._broker: Final = broker
        self._version: Final = version
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

    def begin(self) -> Parts | Wait:
        """Read, and return the answer if there is enough, or a wait."""
        results = self._read()
        if self._asked.max_wait_ms <= 0 or self._is_enough(results) or not self._logs:
            return self._answer(results)
        deadline = time.monotonic() + self._asked.max_wait_ms / 1000
        return Wait(deadline, tuple(self._logs), self._retry)

    def _retry(self, is_over: bool) -> Parts | None:
        before = self._logs.copy()
        results = self._read()
        is_one_gone = self._logs != before  # also if there is another one by that name: nobody watches it
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
        for each in self._wanted:
            found = self._broker.led_log(each.topic, each.partition, max(-1, each.leader_epoch))
            if isinstance(found, int) and found not in _OF_EPOCH:
                missing.append(FetchedPartition(each.topic, each.partition, found, aborted=()))
                continue
            if isinstance(found, int):
                results.append(self._failed(each, found))
                continue
            result = self._read_one(each, found.log, min(left, each.max_bytes), at_least_one)
            left = max(0, left - (0 if result.records is None else result.records.size))
            at_least_one = at_least_one and result.records is None
            results.append(result)
        return results + missing

    def _read_one(self, each: PartitionFetch, log: Log, max_bytes: int, at_least_one: bool) -> FetchedPartition:
        self._logs.append(log)
        if each.last_fetched_epoch >= 0:
            end = epoch_end(log, each.last_fetched_epoch)
            if end.epoch < 0:
                return self._failed(each, ErrorCode.OFFSET_OUT_OF_RANGE)
            if end.epoch < each.last_fetched_epoch or end.end_offset < each.offset:
                self._must_answer = True
                return _told(each, log, end)
        try:
            part = log.read(each.offset, max(0, max_bytes), isolation=self._isolation, at_least_one=at_least_one)
        except LogError as error:
            return self._failed(each, error.code)
        except (FormatError, OSError) as error:
            if not log.is_open:  # its topic was deleted a moment ago
                return self._failed(each, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self._broker.troubles.failed(f"records of {log.partition} cannot be read", error)
            return self._failed(each, ErrorCode.KAFKA_STORAGE_ERROR)
        if max_bytes < 0 and each.offset < self._bound(part):  # Kafka does not expect that
            return self._failed(each, ErrorCode.UNKNOWN_SERVER_ERROR)
        return FetchedPartition(
            each.topic,
            each.partition,
            0,
            part.high_watermark,
            part.last_stable_offset,
            part.log_start_offset,
            part.aborted_transactions if not part.is_first_cut else None,
            part.file_slice if part.size and not part.is_first_cut else None,
        )

    def _bound(self, part: ReadResult) -> int:
        """Return the offset before which the client may read."""
        is_committed = self._isolation is Isolation.READ_COMMITTED
        return part.last_stable_offset if is_committed else part.high_watermark

    def _failed(self, each: PartitionFetch, error: int) -> FetchedPartition:
        self._must_answer = True
        return FetchedPartition(each.topic, each.partition, error)

    def _answer(self, results: Sequence[FetchedPartition]) -> Parts:
        session = self._session
        if session is None:
            return write_fetch(self._version, results, session_id=NO_SESSION)
        if session.epoch != self._epoch:
            return write_fetch(self._version, [], error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        return write_fetch(self._version, session.changed(results, is_full=self._is_full), session_id=session.id)


def _told(each: PartitionFetch, log: Log, diverging: EpochEnd) -> FetchedPartition:
    """Return a partition without records: the client has others than this log."""
    bounds = (log.high_watermark, log.last_stable_offset, log.start_offset)
    return FetchedPartition(each.topic, each.partition, 0, *bounds, None, None, diverging)
