"""The thread that serves does not pause for coordinators: other threads do what waits for the disk or for others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import pytest

from octavo.broker.passing_time import PassingTime
from octavo.broker.wire import api_keys
from octavo.coordinator.groups.classic.rounds import HEARTBEAT
from octavo.coordinator.groups.consumer import regex
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.requests import WriteMarkers
from octavo.errors import ErrorCode
from octavo.log.append.readiness import ALLOWANCE, MustWait
from octavo.log.coordinator.coordinator import group_hosts
from octavo.log.coordinator.host import Host
from octavo.log.coordinator.markers import Markers
from octavo.log.log import Log
from octavo.log.names import CONSUMER_OFFSETS
from octavo.server import reactor
from octavo.server.serving import Server, serve
from tests.server.group_client import GroupClient
from tests.server.raw import PATIENCE_S
from tests.server.test_life_pauses import noting_threads
from tests.server.test_transactions import Transactional, committed, prepare

_REACTOR = "octavo-reactor"
CONFIG = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Server]:
    with serve(config=CONFIG) as server:
        prepare(server)
        with GroupClient(server.bootstrap_servers, "first") as client:  # the first append begins an epoch
            assert client.commit("t", 1) == ErrorCode.NONE
        yield server


@pytest.fixture
def client(broker: Server, request: pytest.FixtureRequest) -> Iterator[GroupClient]:
    with GroupClient(broker.bootstrap_servers, request.node.name) as client:
        yield client


@contextmanager
def held(log: Log) -> Iterator[None]:
    """Have another thread change a log in the body of a `with`."""
    begun, released = threading.Event(), threading.Event()

    def hold() -> None:
        with log.lock:
            begun.set()
            assert released.wait(PATIENCE_S)

    holding = threading.Thread(target=hold)
    holding.start()
    try:
        assert begun.wait(PATIENCE_S)
        yield
    finally:
        released.set()
        holding.join()


def ask_others(server: Server) -> None:
    """Ask something that concerns no coordinator."""
    with GroupClient(server.bootstrap_servers) as other:
        assert other.ask(api_keys.METADATA, 1, topics=[]).topics == ()


def test_most_requests_are_answered_by_the_thread_that_serves(
    client: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    appending = noting_threads(monkeypatch, Log, "append")
    assert client.commit("t", 5) == ErrorCode.NONE
    assert appending == [_REACTOR]
    assert client.committed("t") == 5


def test_a_long_regular_expression_is_compiled_by_another_thread(
    client: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling = noting_threads(monkeypatch, regex, "_compile")
    pattern = "a" * 300
    filters = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    listed = client.ask(api_keys.LIST_TRANSACTIONS, 2, **filters, transactional_id_pattern=pattern + "(")
    assert listed.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert _REACTOR not in compiling
    del compiling[:]
    member = {"member_id": "m", "member_epoch": 0, "instance_id": None, "rack_id": None, "server_assignor": None}
    subscription: dict[str, Any] = {
        "subscribed_topic_names": None,
        "subscribed_topic_regex": pattern,
        "topic_partitions": [],
    }
    joining = {"group_id": "regex", "rebalance_timeout_ms": 60_000, **member, **subscription}
    answer = client.ask(api_keys.CONSUMER_GROUP_HEARTBEAT, 1, **joining)
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 1)
    assert compiling[0] != _REACTOR


def test_many_groups_are_looked_at_by_another_thread(client: GroupClient, monkeypatch: pytest.MonkeyPatch) -> None:
    committing, looking = [f"many-{number}" for number in range(101)], noting_threads(monkeypatch, Host, "ask")
    running = noting_threads(monkeypatch, Host, "run")
    for name in committing:
        client.group_id = name
        assert client.commit("t", 1) == ErrorCode.NONE
    del looking[:], running[:]
    described = client.ask(api_keys.DESCRIBE_GROUPS, 5, groups=committing, include_authorized_operations=False)
    assert {each.group_state for each in described.groups} == {"Empty"}
    assert _REACTOR not in running
    listed = client.ask(api_keys.LIST_GROUPS, 5, states_filter=[], types_filter=[])
    assert {each.group_id for each in listed.groups} >= set(committing)
    assert looking[0] == _REACTOR  # it sees how many there are
    assert looking[-1] != _REACTOR


def test_a_commit_while_another_thread_changes_the_log(
    broker: Server, client: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    appending = noting_threads(monkeypatch, Log, "append")
    committing = threading.Thread(target=lambda: codes.append(client.commit("t", 5)))
    codes: list[int] = []
    with held(broker.directory.log(CONSUMER_OFFSETS, 0)):
        committing.start()
        deadline = time.monotonic() + PATIENCE_S
        while len(appending) < 2:
            assert time.monotonic() < deadline
        ask_others(broker)
        assert codes == []
    committing.join()
    assert codes == [ErrorCode.NONE]
    assert appending[0] == _REACTOR  # it did not wait
    assert appending[1] != _REACTOR
    assert client.committed("t") == 5


def test_a_session_that_ends_while_another_thread_changes_the_log(broker: Server, client: GroupClient) -> None:
    member_id = client.join().member_id
    joined = client.join(member_id)
    client.send_sync(member_id, joined.generation_id, {member_id: b"all"})
    assert client.synced().assignment == b"all"
    host = group_hosts(broker.directory).host_for(client.group_id)
    deadline = time.monotonic() + PATIENCE_S
    with held(broker.directory.log(CONSUMER_OFFSETS, 0)):
        host.run(lambda shard: shard.timers.set((HEARTBEAT, client.group_id, member_id), 0))
        passing = broker.broker.coordinators.time
        assert isinstance(passing, PassingTime)
        while not passing._late:
            assert time.monotonic() < deadline
            ask_others(broker)  # it is answered, and wakes the thread that serves
    while state(client) != "Empty":
        assert time.monotonic() < deadline
    assert client.heartbeat(member_id, joined.generation_id) == ErrorCode.UNKNOWN_MEMBER_ID


def state(client: GroupClient) -> str:
    [group] = client.ask(api_keys.DESCRIBE_GROUPS, 5, groups=[client.group_id]).groups
    return str(group.group_state)


def test_what_was_done_is_not_done_again_by_another_thread(
    client: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{client.group_id}-{number}" for number in range(3)]
    for name in names:
        client.group_id = name
        assert client.commit("t", 5) == ErrorCode.NONE
    really = Log.append
    appends: list[bool] = []

    def append(log: Log, *arguments: Any, **options: Any) -> Any:
        is_served = ALLOWANCE.left is not None
        appends.append(is_served)
        if is_served and len(appends) == 2:
            raise MustWait
        return really(log, *arguments, **options)

    monkeypatch.setattr(Log, "append", append)
    deleted = client.ask(api_keys.DELETE_GROUPS, 2, groups_names=names).results
    assert [(each.group_id, each.error_code) for each in deleted] == [(name, ErrorCode.NONE) for name in names]
    assert appends == [True, True, False, False]


def test_the_thread_that_serves_writes_few_markers(broker: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Transactional(broker.bootstrap_servers, "markers")
    with producer.client:
        assert producer.init() == ErrorCode.NONE
        assert producer.produce(b"one", 0, 12) == (ErrorCode.NONE, None)
        appending = noting_threads(monkeypatch, Log, "append")
        assert producer.end(5, commit=True) == ErrorCode.NONE
        assert appending == [_REACTOR] * 3  # the decision, the marker, and the end
        assert committed(broker) == [b"one"]


def test_the_thread_that_serves_writes_no_markers_among_offsets_of_groups() -> None:
    wanted = WriteMarkers("id", Producer(1, 0), [("t", 0), (CONSUMER_OFFSETS, 0)], True, 2, 0)
    are_few = partial(Markers.are_few, None)  # type: ignore[arg-type] # it asks nothing else
    assert not are_few(wanted)
    assert are_few(wanted._replace(partitions=[("t", 0)]))
    assert not are_few(wanted._replace(partitions=[("t", number) for number in range(17)]))
    assert not are_few(wanted._replace(partitions=[("t", 0)], is_repeated=True))


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_markers_that_another_thread_goes_on_with_are_written_once(
    broker: Server, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    producer = Transactional(broker.bootstrap_servers, f"markers-{failing}")
    with producer.client:
        assert producer.init() == ErrorCode.NONE
        assert producer.produce(b"two", 0, 12) == (ErrorCode.NONE, None)
        before = broker.directory.log("t", 0).end_offset
        really = Log.append
        appends: list[bool] = []

        def append(log: Log, *arguments: Any, **options: Any) -> Any:
            is_served = ALLOWANCE.left is not None
            appends.append(is_served)
            if is_served and len(appends) == failing:
                raise MustWait
            return really(log, *arguments, **options)

        monkeypatch.setattr(Log, "append", append)
        assert producer.end(5, commit=True) == ErrorCode.NONE
        assert appends == [True] * failing + [False] * (4 - failing)
        assert broker.directory.log("t", 0).end_offset == before + 1
        assert committed(broker)[-1:] == [b"two"]


def test_a_transactional_produce_while_another_thread_asks_the_coordinator(broker: Server) -> None:
    producer = Transactional(broker.bootstrap_servers, "produce")
    host = broker.broker.coordinators.find_transaction_host(producer.name)
    assert host is not None
    answers: list[tuple[int, str | None]] = []
    with producer.client:
        assert producer.init() == ErrorCode.NONE
        producing = threading.Thread(target=lambda: answers.append(producer.produce(b"two", 0, 12, partition=1)))
        with host.held():
            producing.start()
            ask_others(broker)
            assert answers == []
        producing.join()
        assert answers == [(ErrorCode.NONE, None)]
        assert producer.end(5, commit=True) == ErrorCode.NONE
    assert committed(broker, 1) == [b"two"]


def test_a_member_that_is_parked_while_the_server_stops_does_not_hold_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reactor, "_LAST_WORK_S", 2 * PATIENCE_S)
    begun, released = threading.Event(), threading.Event()
    really = Host.held

    def held(host: Host[Any]) -> AbstractContextManager[object]:
        if ALLOWANCE.left is not None:
            raise MustWait
        if threading.current_thread().name.startswith("octavo-worker"):
            begun.set()
            assert released.wait(PATIENCE_S)
        return really(host)

    config = {"group.initial.rebalance.delay.ms": "60000"}
    with serve(config=config) as server, GroupClient(server.bootstrap_servers) as client:
        prepare(server)
        member_id = client.join().member_id
        monkeypatch.setattr(Host, "held", held)
        client.send_join(member_id)
        assert begun.wait(PATIENCE_S)
        closing = threading.Thread(target=server.close)
        closing.start()
        deadline = time.monotonic() + PATIENCE_S
        while not server._reactor._is_stopping:
            assert time.monotonic() < deadline
        released.set()
        closing.join(PATIENCE_S)
        assert not closing.is_alive()
