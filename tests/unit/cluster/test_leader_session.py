"""The session of a follower with its leader."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from octavo.cluster.leader_session import LeaderSession
from octavo.cluster.messages import FetchAnswer, FetchedPartition, FetchPartition, FetchRequest, TopicIdPartition
from octavo.errors import ErrorCode
from tests.unit.cluster.partitions import A, B

FIRST = FetchPartition(0, 10, 0, 0)
LATER = FetchPartition(0, 20, 0, 0)
BOTH = {A: FetchedPartition(), B: FetchedPartition()}


def ask(session: LeaderSession, wanted: Mapping[TopicIdPartition, FetchPartition]) -> FetchRequest:
    for partition in (A, B):
        if partition in wanted:
            session.want(partition, wanted[partition])
        else:
            session.drop(partition)
    return session.request()


def opened() -> LeaderSession:
    session = LeaderSession()
    assert ask(session, {A: FIRST, B: FIRST}) == FetchRequest(0, 0, {A: FIRST, B: FIRST})
    assert session.answered(FetchAnswer(0, 77, BOTH))
    return session


def test_a_session_names_only_what_has_changed() -> None:
    session = opened()
    assert ask(session, {A: LATER, B: FIRST}) == FetchRequest(77, 1, {A: LATER})
    assert session.answered(FetchAnswer(0, 77, {A: FetchedPartition()}))
    assert ask(session, {B: FIRST}) == FetchRequest(77, 2, {}, (A,))
    assert session.answered(FetchAnswer(0, 77, {}))
    assert ask(session, {A: LATER, B: FIRST}) == FetchRequest(77, 3, {A: LATER})


def test_without_a_session_every_request_is_full() -> None:
    session = LeaderSession()
    for _ in range(3):
        assert ask(session, {A: FIRST, B: FIRST}) == FetchRequest(0, 0, {A: FIRST, B: FIRST})
        assert session.answered(FetchAnswer(0, 0, BOTH))


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 77),
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 77),
    ],
)
def test_a_session_that_is_lost_begins_anew_and_the_old_one_is_closed(error: ErrorCode, session_id: int) -> None:
    session = opened()
    ask(session, {A: LATER, B: FIRST})
    assert not session.answered(FetchAnswer(error, 0, {}))
    assert ask(session, {A: LATER, B: FIRST}) == FetchRequest(session_id, 0, {A: LATER, B: FIRST})


def test_after_a_lost_connection_everything_is_named_again() -> None:
    session = opened()
    ask(session, {A: LATER, B: FIRST})
    session.lost()
    assert ask(session, {A: LATER, B: FIRST}) == FetchRequest(77, 0, {A: LATER, B: FIRST})


def test_the_answer_by_which_a_leader_closes_a_session_counts() -> None:
    session = opened()
    ask(session, {A: LATER, B: FIRST})
    assert session.answered(FetchAnswer(0, 0, {A: FetchedPartition()}))
    assert ask(session, {A: LATER}) == FetchRequest(0, 0, {A: LATER})


def test_an_answer_of_another_session_and_a_full_one_that_lacks_a_partition_cannot_be_used() -> None:
    session = opened()
    ask(session, {A: LATER, B: FIRST})
    assert not session.answered(FetchAnswer(0, 78, {}))
    ask(session, {A: LATER, B: FIRST})
    assert not session.answered(FetchAnswer(0, 79, {A: FetchedPartition()}))
    assert ask(session, {A: LATER}).session_epoch == 0


def test_without_a_session_what_has_changed_is_asked_for_last() -> None:
    session = LeaderSession()
    assert list(ask(session, {A: FIRST, B: FIRST}).partitions) == [A, B]
    assert session.answered(FetchAnswer(0, 0, BOTH))
    assert list(ask(session, {A: LATER, B: FIRST}).partitions) == [B, A]
    assert session.answered(FetchAnswer(0, 0, BOTH))
    assert list(ask(session, {A: LATER, B: FIRST}).partitions) == [B, A]
