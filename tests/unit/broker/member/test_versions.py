"""Controllers of several releases, and which versions of requests they are sent."""

from __future__ import annotations

from typing import Any

import pytest

from octavo.broker.member.versions import API_VERSIONS_VERSION, ControllerVersions
from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.member_messages import read_broker_heartbeat, write_broker_heartbeat
from octavo.broker.wire.messages import read_request, write_response
from octavo.cluster.messages import BrokerHeartbeatAnswer, BrokerHeartbeatRequest, Endpoint

CONTROLLER = Endpoint("controller", 9093)
NEWEST: dict[int, tuple[int, int]] = {
    keys.FETCH: (4, 18),
    keys.FETCH_SNAPSHOT: (0, 1),
    keys.BROKER_REGISTRATION: (0, 4),
    keys.BROKER_HEARTBEAT: (0, 2),
    keys.ALTER_PARTITION: (2, 3),
    keys.ALLOCATE_PRODUCER_IDS: (0, 0),
    keys.ASSIGN_REPLICAS_TO_DIRS: (0, 0),
    keys.ENVELOPE: (0, 0),
}


def served(versions: dict[int, tuple[int, int]] = NEWEST, error_code: int = 0) -> memoryview:
    """Return a controller's answer to ApiVersions."""
    told = [{"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in versions.items()]
    answer: dict[str, Any] = {"error_code": error_code, "api_keys": told, "throttle_time_ms": 0}
    return memoryview(write_response(keys.API_VERSIONS, API_VERSIONS_VERSION, answer))


@pytest.mark.parametrize(
    ("fetch", "heartbeat", "expected"),
    [
        ((4, 18), (0, 2), (18, 2)),  # Apache Kafka 4.3
        ((4, 18), (0, 1), (18, 1)),  # 4.1 and 4.2
        ((0, 17), (0, 1), (17, 1)),  # 3.9
        ((4, 21), (0, 5), (18, 2)),  # one that is not released yet
    ],
)
def test_each_controller_gets_the_newest_version_that_it_takes(
    fetch: tuple[int, int], heartbeat: tuple[int, int], expected: tuple[int, int]
) -> None:
    versions = ControllerVersions()
    assert versions.take(CONTROLLER, served(NEWEST | {keys.FETCH: fetch, keys.BROKER_HEARTBEAT: heartbeat}))
    assert versions.knows(CONTROLLER)
    assert (versions.version(CONTROLLER, keys.FETCH), versions.version(CONTROLLER, keys.BROKER_HEARTBEAT)) == expected
    assert not versions.problem


@pytest.mark.parametrize("registration", [(0, 3), (5, 6), None])
def test_a_controller_that_cannot_be_asked_is_refused_with_a_sentence(registration: tuple[int, int] | None) -> None:
    versions, told = ControllerVersions(), dict(NEWEST)
    del told[keys.BROKER_REGISTRATION]
    if registration is not None:
        told[keys.BROKER_REGISTRATION] = registration
    assert not versions.take(CONTROLLER, served(told))
    assert not versions.knows(CONTROLLER)
    assert versions.problem == (
        "the node at controller:9093 does not take BrokerRegistration in version 4: controllers have to be of Apache "
        "Kafka 3.9 or later"
    )
    assert versions.take(CONTROLLER, served())
    assert not versions.problem


def test_a_node_that_tells_nothing_is_refused() -> None:
    versions = ControllerVersions()
    assert not versions.take(CONTROLLER, served({}, error_code=35))
    assert versions.problem == "the node at controller:9093 does not tell which requests it takes"


def test_a_controller_that_did_not_answer_is_asked_again() -> None:
    versions = ControllerVersions()
    assert versions.take(CONTROLLER, served())
    versions.forget(CONTROLLER)
    versions.forget(CONTROLLER)
    assert not versions.knows(CONTROLLER)


def test_a_heartbeat_to_an_older_controller_names_no_cordoned_directories() -> None:
    request = BrokerHeartbeatRequest(3, 40, 5, want_fence=False, want_shut_down=False, cordoned_log_dirs=())
    told = read_request(keys.BROKER_HEARTBEAT, 1, memoryview(write_broker_heartbeat(request, 1)))
    assert (told.broker_id, told.broker_epoch, told.current_metadata_offset) == (3, 40, 5)
    content = {
        "throttle_time_ms": 0,
        "error_code": 0,
        "is_caught_up": True,
        "is_fenced": False,
        "should_shut_down": False,
    }
    body = memoryview(write_response(keys.BROKER_HEARTBEAT, 1, content))
    assert read_broker_heartbeat(body, 1) == BrokerHeartbeatAnswer(0, is_caught_up=True, is_fenced=False)
