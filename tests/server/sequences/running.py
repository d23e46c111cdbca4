"""Run sequences against one broker, many at the same time, with one restart for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from tests.retention import KEPT_FOR_NOW
from tests.server.sequences.script import PATIENCE_S, Client, Script
from tests.server.sequences.sequence import Sequence

Trace = list[tuple[str, Any]]

SETTINGS: Final = {
    **KEPT_FOR_NOW,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
    "group.max.size": "3",
    "group.consumer.max.size": "3",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
}
_AT_THE_SAME_TIME: Final = 8
_LONGEST_S: Final = 240


class Restartable(Protocol):
    """A broker that can be restarted."""

    @property
    def address(self) -> str:
        """Where it listens now."""
        ...

    def restart(self) -> None:
        """Stop it, and start it again on what it has written."""
        ...


class Runner:
    """Runs sequences against one broker."""

    def __init__(self, broker: Restartable) -> None:
        self._broker: Final = broker
        self._tokens: Final = threading.Semaphore(_AT_THE_SAME_TIME)
        self.failures: list[BaseException] = []

    def prepare(self) -> None:
        """Have the internal topics created."""
        setup = self._setup()
        for key_type in (0, 1):
            _until(setup, keys.FIND_COORDINATOR, 3, {"key": "any", "key_type": key_type})
        self._wait_for_coordinators(setup)
        setup.close()

    def _setup(self) -> Client:
        setup = Script("", lambda: self._broker.address, lambda _: None).client("setup")
        setup.patience_s = _LONGEST_S  # there are many topics to create
        return setup

    def _wait_for_coordinators(self, setup: Client) -> None:
        """Wait until Kafka's coordinators are loaded."""
        group: dict[str, Any] = {"group_id": "any", "topics": [], "member_id": None, "member_epoch": -1}
        _until(setup, keys.OFFSET_FETCH, 9, {"groups": [group], "require_stable": False})
        ids = {"transactional_id": "any", "transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1}
        _until(setup, keys.INIT_PRODUCER_ID, 4, ids)

    def run(
        self, sequences: Iterable[Sequence], tag: str, restarts: Mapping[str, int] | None = None
    ) -> dict[str, Trace]:
        """Run sequences, and return what was answered.

        tag: tells apart several runs of the same sequences
        restarts: before which request of a sequence the broker is restarted
        """
        gate = _Gate()
        scripts = {}
        for each in sequences:
            at = (restarts or {}).get(each.name)
            scripts[each.name] = self._script(f"{tag}-{each.name}-", at, gate)
        setup = self._setup()
        self._create_topics(setup, [(scripts[each.name], each.topics) for each in sequences])
        threads = [
            threading.Thread(target=self._run, args=(each, scripts[each.name], gate), daemon=True) for each in sequences
        ]
        for thread in threads:
            thread.start()
        gate.wait_for_all({script.prefix: script for script in scripts.values()})
        if restarts:
            setup.lose()
            self._broker.restart()
            self._wait_for_coordinators(setup)
            for script in scripts.values():
                script.reconnect()
        gate.open()
        for thread in threads:
            thread.join(_LONGEST_S)
            assert not thread.is_alive(), "a sequence does not end"
        setup.close()
        if self.failures:
            raise self.failures[0]
        self.steps = {name: script.steps for name, script in scripts.items()}
        return {name: script.trace for name, script in scripts.items()}

    def _script(self, prefix: str, restart_at: int | None, gate: _Gate) -> Script:
        def rest(number: int) -> None:
            if number == restart_at:
                self._tokens.release()
                gate.rest(prefix)
                self._tokens.acquire()

        return Script(prefix, lambda: self._broker.address, rest)

    def _run(self, sequence: Sequence, script: Script, gate: _Gate) -> None:
        with self._tokens:
            try:
                sequence.run(script)
            except BaseException as error:
                error.add_note(f"in {sequence.name}, after {script.trace[-1:]}")
                self.failures.append(error)
            finally:
                script.close()
                gate.ended(script.prefix)

    def _create_topics(self, setup: Client, wanted: Iterable[tuple[Script, Mapping[str, int]]]) -> None:
        topics = {script.named(name): count for script, several in wanted for name, count in several.items()}
        created = setup.quietly(keys.CREATE_TOPICS, 7, create_content(topics))
        assert {each.error_code for each in created.topics} == {ErrorCode.NONE}, created
        ids = {each.name: each.topic_id for each in created.topics}
        for script, several in wanted:
            script.plain.topic_ids |= {script.named(name): ids[script.named(name)] for name in several}
        asked = [
            {"name": name, "partitions": [_latest(number) for number in range(count)]} for name, count in topics.items()
        ]
        content = {"replica_id": -1, "isolation_level": 0, "topics": asked}
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:  # Kafka's broker is a little behind its controller
            found = setup.quietly(keys.LIST_OFFSETS, 8, content)
            if not any(each.error_code for topic in found.topics for each in topic.partitions):
                break
        _wait_for_group_coordinator(setup, topics)


def create_content(topics: Mapping[str, int]) -> dict[str, Any]:
    """Return a request that creates topics."""
    wanted = [
        {"name": name, "num_partitions": count, "replication_factor": 1, "assignments": [], "configs": []}
        for name, count in topics.items()
    ]
    return {"topics": wanted, "timeout_ms": 30_000, "validate_only": False}


def _wait_for_group_coordinator(setup: Client, topics: Mapping[str, int]) -> None:
    """Wait until Kafka's coordinator of groups knows of topics, too: until it assigns all their partitions."""
    content: dict[str, Any] = {
        "group_id": "who knows",
        "member_id": "somebody",
        "member_epoch": 0,
        "instance_id": None,
        "rack_id": None,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": list(topics),
        "subscribed_topic_regex": None,
        "server_assignor": None,
        "topic_partitions": [],
    }
    deadline = time.monotonic() + 3 * PATIENCE_S
    assigned = 0
    while assigned < sum(topics.values()):
        assert time.monotonic() < deadline, "the coordinator does not know the topics"
        answer = setup.quietly(keys.CONSUMER_GROUP_HEARTBEAT, 1, content)
        if answer.assignment is not None:
            assigned = sum(len(each.partitions) for each in answer.assignment.topic_partitions)
    setup.quietly(keys.CONSUMER_GROUP_HEARTBEAT, 1, content | {"member_epoch": -1})


def _latest(partition: int) -> dict[str, int]:
    return {"partition_index": partition, "timestamp": -1, "current_leader_epoch": -1}


def _until(client: Client, api_key: int, version: int, content: dict[str, Any]) -> None:
    """Ask until there is no error."""
    deadline = time.monotonic() + 3 * PATIENCE_S
    while True:
        answer = client.quietly(api_key, version, content)
        if not isinstance(answer, str):
            answer = answer.groups[0] if api_key == keys.OFFSET_FETCH else answer
            if answer.error_code == ErrorCode.NONE:
                return
        assert time.monotonic() < deadline, answer
        time.sleep(0.02)


class _Gate:
    """Where runs wait for the restart."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._there: set[str] = set()
        self._is_open = False

    def rest(self, run: str) -> None:
        """Wait for the restart."""
        with self._changed:
            self._there.add(run)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_open)

    def ended(self, run: str) -> None:
        """Note that a run has ended, perhaps before it came to rest."""
        with self._changed:
            self._there.add(run)
            self._changed.notify_all()

    def wait_for_all(self, runs: Mapping[str, Script]) -> None:
        """Wait until all runs rest or have ended."""
        with self._changed:
            everybody = self._changed.wait_for(lambda: self._there >= runs.keys(), _LONGEST_S)
            missing = {run: script.trace[-1:] for run, script in runs.items() if run not in self._there}
            assert everybody, f"these neither end nor come to the restart: {missing}"

    def open(self) -> None:
        """Have all go on."""
        with self._changed:
            self._is_open = True
            self._changed.notify_all()
