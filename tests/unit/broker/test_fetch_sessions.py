"""Fetch sessions are bounded in their number, and in what they remember."""

from __future__ import annotations

import pytest

from octavo.broker import fetch_sessions
from octavo.broker.fetch_sessions import FetchSessions, Session
from octavo.broker.wire.fetch import FetchRequest, PartitionFetch
from octavo.errors import ErrorCode

_VERSION = 12


def request(partitions: range, session: Session | None = None, forgotten: range = range(0)) -> FetchRequest:
    wanted = [PartitionFetch("t", partition, -1, 0, -1, -1, 1000) for partition in partitions]
    known = (0, 0) if session is None else (session.id, session.epoch)
    return FetchRequest(-1, 0, 1, 1000, 0, *known, wanted, [("t", each) for each in forgotten])


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> FetchSessions:
    monkeypatch.setattr(fetch_sessions, "MAX_PARTITIONS", 100)
    return FetchSessions(10, lambda: 0.0)


def test_there_is_no_session_for_more_partitions_than_are_remembered(sessions: FetchSessions) -> None:
    assert sessions.open(request(range(101)), _VERSION) is None
    assert sessions.open(request(range(60)), _VERSION) is not None
    assert sessions.open(request(range(41)), _VERSION) is None
    assert sessions.open(request(range(40)), _VERSION) is not None


def test_a_session_that_grows_too_much_is_closed(sessions: FetchSessions) -> None:
    session = sessions.open(request(range(60)), _VERSION)
    assert session is not None
    assert sessions.go_on(request(range(50, 100), session), _VERSION) is session
    assert sessions.go_on(request(range(100, 101), session), _VERSION) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0
    assert sessions.open(request(range(100)), _VERSION) is not None


def test_what_is_forgotten_or_closed_makes_room(sessions: FetchSessions) -> None:
    first = sessions.open(request(range(100)), _VERSION)
    assert first is not None
    assert sessions.go_on(request(range(0), first, forgotten=range(30)), _VERSION) is first
    second = sessions.open(request(range(30)), _VERSION)
    assert second is not None
    assert sessions.open(request(range(1)), _VERSION) is None
    sessions.close(second.id)
    assert sessions.open(request(range(30)), _VERSION) is not None


def test_sessions_of_consumers_make_room_for_replicas() -> None:
    sessions = FetchSessions(2, lambda: 0.0)
    first, second = (sessions.open(request(range(3)), _VERSION) for _ in range(2))
    assert first is not None
    assert second is not None
    assert sessions.open(request(range(3)), _VERSION) is None
    replicas = [sessions.open(request(range(3))._replace(replica_id=number), _VERSION) for number in range(3)]
    assert [each is not None for each in replicas] == [True, True, False]
    for session in (first, second):
        assert sessions.go_on(request(range(1), session), _VERSION) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sessions.open(request(range(3)), _VERSION) is None
