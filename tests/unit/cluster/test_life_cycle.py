"""A broker registers, is unfenced, and shuts down."""

from __future__ import annotations

from uuid import UUID

import pytest

from octavo.cluster.life_cycle import Event, LifeCycle, State
from octavo.cluster.messages import (
    BrokerHeartbeatAnswer,
    BrokerHeartbeatRequest,
    BrokerRegistrationAnswer,
    BrokerRegistrationRequest,
)
from octavo.errors import ErrorCode

REGISTRATION = BrokerRegistrationRequest(7, "cluster", UUID(int=70), (), (), None, (UUID(int=71),), -1)
FENCED = BrokerHeartbeatAnswer(0, is_caught_up=True, is_fenced=True)
UNFENCED = BrokerHeartbeatAnswer(0, is_caught_up=True, is_fenced=False)
LATE = BrokerHeartbeatAnswer(0, is_caught_up=False, is_fenced=True)


def heartbeat(life: LifeCycle, now_ms: int, offset: int = 50) -> BrokerHeartbeatRequest:
    request = life.next_request(now_ms, offset)
    assert isinstance(request, BrokerHeartbeatRequest)
    return request


def registered() -> LifeCycle:
    life = LifeCycle(REGISTRATION, 0)
    assert life.next_request(0, 50) == REGISTRATION
    assert life.registered(BrokerRegistrationAnswer(0, 900), 0) == [Event.REGISTERED]
    return life


def running() -> LifeCycle:
    life = registered()
    heartbeat(life, 0)
    life.heard(FENCED, 0)
    life.ready(0)
    heartbeat(life, 0)
    assert life.heard(UNFENCED, 0) == [Event.UNFENCED]
    return life


def test_the_dialogue_of_a_start() -> None:
    life = registered()
    assert heartbeat(life, 0) == BrokerHeartbeatRequest(7, 900, 50, want_fence=True, want_shut_down=False)
    assert life.next_request(0, 50) is None  # one at a time
    assert life.heard(LATE, 0) == []
    assert life.next_request(9, 60) is None
    heartbeat(life, 10, 60)
    assert life.heard(FENCED, 10) == [Event.CAUGHT_UP]
    heartbeat(life, 20)
    assert life.heard(FENCED, 20) == []
    assert life.next_ms == 2020
    life.ready(500)
    assert not heartbeat(life, 500).want_fence
    assert life.heard(UNFENCED, 500) == [Event.UNFENCED]
    assert life.state is State.RUNNING
    assert life.next_request(2499, 70) is None
    assert heartbeat(life, 2500, 70).current_metadata_offset == 70


def test_nobody_is_let_in_before_the_first_metadata_are_published() -> None:
    """Mend 2.6: clients of a broker with half of the metadata would be told that topics do not exist."""
    life = registered()
    heartbeat(life, 0)
    assert life.heard(UNFENCED, 0) == [Event.CAUGHT_UP]
    heartbeat(life, 10)
    assert life.heard(UNFENCED, 10) == []
    assert life.state is State.RECOVERY
    life.ready(20)
    assert not heartbeat(life, 20).want_fence
    assert life.heard(UNFENCED, 20) == [Event.UNFENCED]


def test_what_is_urgent_is_sent_when_the_request_under_way_is_answered() -> None:
    life = registered()
    heartbeat(life, 0)
    life.heard(FENCED, 0)
    heartbeat(life, 10)
    life.ready(11)
    assert life.next_request(11, 50) is None
    life.heard(FENCED, 12)
    assert not heartbeat(life, 12).want_fence


def test_a_broker_that_is_refused_tries_again_until_the_time_is_over() -> None:
    """The session of its last run may last."""
    life = LifeCycle(REGISTRATION, 0)
    now_ms = 0
    while now_ms < 60_000:
        assert life.tick(now_ms) == []
        assert life.next_request(now_ms, 0) == REGISTRATION
        assert life.registered(BrokerRegistrationAnswer(ErrorCode.DUPLICATE_BROKER_REGISTRATION), now_ms) == []
        assert life.next_ms in (now_ms + 2000, 60_000)
        now_ms += 2000
    assert life.tick(60_000) == [Event.GAVE_UP]
    assert life.refusal == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert life.next_request(1 << 40, 0) is None
    assert life.tick(1 << 40) == []


def test_a_broker_that_has_registered_never_gives_up() -> None:
    life = registered()
    assert life.tick(1 << 40) == []


def test_a_broker_whose_place_was_taken_registers_again() -> None:
    """A request of an earlier process may come late. While its session lasts, this one is refused."""
    life = running()
    heartbeat(life, 2000)
    assert life.heard(BrokerHeartbeatAnswer(ErrorCode.STALE_BROKER_EPOCH), 2000) == []
    assert life.next_request(3999, 50) is None
    assert life.next_request(4000, 50) == REGISTRATION
    assert life.registered(BrokerRegistrationAnswer(ErrorCode.DUPLICATE_BROKER_REGISTRATION), 4000) == []
    assert life.tick(1 << 40) == []
    assert life.next_request(6000, 50) == REGISTRATION
    assert life.registered(BrokerRegistrationAnswer(0, 950), 6000) == [Event.REGISTERED]
    assert heartbeat(life, 6000).broker_epoch == 950


@pytest.mark.parametrize("is_seen_first", [True, False])
def test_a_broker_that_was_unregistered_stays_out_until_it_is_started_again(is_seen_first: bool) -> None:
    """The metadata may tell before a heartbeat is refused, or afterwards."""
    life = running()
    if is_seen_first:
        life.look_at_registration(is_there=False)
    heartbeat(life, 2000)
    life.heard(BrokerHeartbeatAnswer(ErrorCode.STALE_BROKER_EPOCH), 2000)
    life.look_at_registration(is_there=False)
    for now_ms in (4000, 6000):
        heartbeat(life, now_ms)
        life.heard(BrokerHeartbeatAnswer(ErrorCode.STALE_BROKER_EPOCH), now_ms)
    assert life.begin_shutdown(7000) == [Event.SHUT_DOWN]  # nobody would let it go


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.BROKER_ID_NOT_REGISTERED])
def test_after_an_error_the_next_heartbeat_is_later(error: ErrorCode) -> None:
    life = running()
    heartbeat(life, 2000)
    events = life.heard(BrokerHeartbeatAnswer(error), 2000)
    assert events == ([Event.NOT_CONTROLLER] if error == ErrorCode.NOT_CONTROLLER else [])
    assert life.next_request(3999, 50) is None
    heartbeat(life, 4000)
    life.failed(4500)
    assert life.next_request(6499, 50) is None
    heartbeat(life, 6500)


def test_a_fenced_broker_goes_on() -> None:
    life = running()
    heartbeat(life, 2000)
    assert life.heard(FENCED, 2000) == []
    assert life.state is State.RUNNING
    assert not heartbeat(life, 4000).want_fence


def test_the_same_incarnation_registers_again() -> None:
    life = running()
    life.register_again(100)
    assert life.next_request(100, 50) == REGISTRATION
    life.registered(BrokerRegistrationAnswer(0, 900), 100)
    heartbeat(life, 100)


def test_cordoned_directories_are_named_when_metadata_are_known() -> None:
    life = registered()
    life.knows_cordons = True
    assert heartbeat(life, 0).cordoned_log_dirs is None
    life.heard(FENCED, 0)
    assert heartbeat(life, 10).cordoned_log_dirs == ()


# ----------------------------------------------------------------------------------------------------------- shutdown


def test_a_broker_waits_until_others_lead_its_partitions_and_is_silent_then() -> None:
    life = running()
    assert life.begin_shutdown(100) == []
    assert life.begin_shutdown(100) == []
    assert heartbeat(life, 100).want_shut_down
    assert life.heard(UNFENCED, 110) == []
    assert life.next_request(159, 50) is None
    assert heartbeat(life, 160).want_shut_down
    assert life.heard(UNFENCED, 160) == []
    heartbeat(life, 2160)
    assert life.heard(FENCED._replace(should_shut_down=True), 2200) == [Event.SHUT_DOWN]
    assert life.state is State.SHUTTING_DOWN
    assert life.next_request(1 << 40, 50) is None  # a heartbeat would bring it back
    assert life.next_ms is None


def test_a_broker_does_not_wait_for_ever_and_one_that_never_ran_not_at_all() -> None:
    life = running()
    life.begin_shutdown(0)
    assert life.tick(299_999) == []
    assert life.tick(300_000) == [Event.SHUT_DOWN]
    assert registered().begin_shutdown(0) == [Event.SHUT_DOWN]


def test_a_broker_that_stops_before_it_has_registered_leaves_behind_what_it_found() -> None:
    assert LifeCycle(REGISTRATION._replace(previous_broker_epoch=800), 0).clean_epoch == 800
    assert registered().clean_epoch == 900


def test_an_answer_after_the_end_changes_nothing() -> None:
    life = registered()
    heartbeat(life, 0)
    life.begin_shutdown(0)
    assert life.heard(UNFENCED, 1) == []
    assert life.state is State.SHUTTING_DOWN


# ------------------------------------------------------------------------------------------------------- failed disks


def test_a_failed_directory_is_reported_in_every_heartbeat() -> None:
    life = running()
    failed = UUID(int=71)
    life.fail_directory(failed, 100)
    for now_ms, events in ((100, [Event.REPORTED]), (2100, [])):
        sent = heartbeat(life, now_ms)
        assert sent.offline_log_dirs == (failed,)
        assert sent.want_fence
        assert life.heard(UNFENCED, now_ms) == events
    assert life.tick(1 << 40) == []


def test_a_broker_that_cannot_report_it_gives_up() -> None:
    life = running()
    heartbeat(life, 2000)
    life.fail_directory(UUID(int=71), 2001)
    life.heard(UNFENCED, 2002)  # of the heartbeat before
    heartbeat(life, 2002)
    life.failed(4002)
    assert life.tick(32_000) == []
    assert life.tick(32_001) == [Event.GAVE_UP]
