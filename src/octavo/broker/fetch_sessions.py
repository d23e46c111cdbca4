"""Incremental fetch sessions (KIP-227): a client names its partitions once, and then only what changes.

A session remembers what it last told the client of each partition. Its epoch moves on when a request is read. A
partition that returned records goes to the end of the order, so that a limit on the bytes starves nobody.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from octavo.broker.member.replica_session import Key, ReplicaSession
from octavo.broker.wire.fetch import TOPIC_IDS, FetchRequest, PartitionFetch
from octavo.broker.wire.fetched import NO_REPLICA, FetchedPartition
from octavo.errors import ErrorCode

FINAL_EPOCH: Final = -1  # of a request without a session, or one that closes it
INITIAL_EPOCH: Final = 0
_MAX_EPOCH: Final = 0x7FFFFFFF
_UNUSED_S: Final = 120  # a session that was not used for so long may make room for another
MAX_PARTITIONS: Final = 500_000  # of all sessions together. Kafka has no limit


@dataclass(slots=True)
class Session:
    """One session: its partitions, and what was last told of each."""

    id: int
    uses_ids: bool
    partitions: dict[Key, PartitionFetch]
    replica: ReplicaSession | None = None  # another broker follows in it; it does not make room for a consumer's
    told: dict[Key, tuple[int, int]] = field(default_factory=dict)  # high watermark and log start offset
    epoch: int = 1  # of the next request
    used_at: float = 0

    def update(self, request: FetchRequest) -> None:
        """Add and change the partitions that a request names, and remove those that it forgets."""
        replica = self.replica
        for each in request.partitions:
            key = (each.topic, each.partition)
            self.partitions[key] = each
            if replica is not None:
                replica.update(key, each)
        for key in request.forgotten:
            self.partitions.pop(key, None)
            self.told.pop(key, None)
            if replica is not None:
                replica.forget(key)

    def changed(self, results: Iterable[FetchedPartition], *, is_full: bool) -> list[FetchedPartition]:
        """Return the results that the client does not know yet, and remember them."""
        news = []
        for each in results:
            key = each.topic, each.partition
            state = (each.high_watermark, each.log_start_offset)
            has_records = each.records is not None
            is_elsewhere = each.preferred_read_replica != NO_REPLICA
            is_news = has_records or each.error_code or each.diverging or is_elsewhere or self.told.get(key) != state
            if is_full or is_news:
                news.append(each)
            self.told[key] = (-1, each.log_start_offset) if each.error_code else state
            if has_records or is_full:  # the order of the first answer is that of the session
                wanted = self.partitions.pop(key, None)
                if wanted is not None:
                    self.partitions[key] = wanted
                if self.replica is not None:
                    self.replica.move_last(key)
        return news


class FetchSessions:
    """All sessions of a broker, at most `slots` of them."""

    def __init__(self, slots: int, clock: Callable[[], float]) -> None:
        self._slots: Final = slots
        self._clock: Final = clock
        self._sessions: Final[dict[int, Session]] = {}  # the one that was unused for longest is first
        self._partitions = 0  # of all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def close(self, session_id: int) -> None:
        """Forget a session, if there is one with this id."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)
            if session.replica is not None:
                session.replica.close()

    def open(self, request: FetchRequest, version: int) -> Session | None:
        """Begin a session with the partitions of a request, if there is room."""
        now = self._clock()
        if not self._has_room(len(request.partitions), now, is_replicas=request.is_from_replica):
            return None
        session_id = random.randint(1, _MAX_EPOCH)
        while session_id in self._sessions:
            session_id = random.randint(1, _MAX_EPOCH)
        partitions = {(each.topic, each.partition): each for each in request.partitions}
        replica = ReplicaSession(partitions) if request.is_from_replica else None
        session = Session(session_id, version >= TOPIC_IDS, partitions, replica, used_at=now)
        self._sessions[session_id] = session
        self._partitions += len(partitions)
        return session

    def go_on(self, request: FetchRequest, version: int) -> Session | int:
        """Return the session of an incremental request, updated and one epoch further, or an error code."""
        session = self._sessions.get(request.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_ids != (version >= TOPIC_IDS):
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        before = len(session.partitions)
        session.update(request)
        self._partitions += len(session.partitions) - before
        if self._partitions > MAX_PARTITIONS and len(session.partitions) > before:
            self.close(session.id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND  # the client goes on with full requests
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        session.used_at = self._clock()
        self._sessions[session.id] = self._sessions.pop(session.id)  # now the one that was used last
        return session

    def _has_room(self, partitions: int, now: float, *, is_replicas: bool) -> bool:
        if self._partitions + partitions > MAX_PARTITIONS:
            return False
        if len(self._sessions) < self._slots:
            return True
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now - oldest.used_at <= _UNUSED_S:
            consumers = next((each for each in self._sessions.values() if each.replica is None), None)
            if not is_replicas or consumers is None:
                return False
            oldest = consumers
        self.close(oldest.id)
        return True
