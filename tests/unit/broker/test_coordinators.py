"""Time passes for coordinators, also when their records cannot be written."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from octavo.broker.wire.api_keys import (
    DELETE_TOPICS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    JOIN_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode
from tests.simulation.disk import Fault, SimulatedDisk
from tests.simulation.machine import SESSION_MS, Clock, Machine
from tests.simulation.wire import Ask


class Broker:
    """A broker whose time and disk are in the hands of the test. What other threads would do is done at once."""

    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self.fault = Fault.NONE
        self.works: deque[Callable[[], None]] = deque()
        disk = SimulatedDisk(folder, lambda: self.fault)
        self.machine = Machine(disk, self.clock, uuid.uuid4, self.works.append)
        self.machine.start()

    def turn(self) -> None:
        self.machine.turn()
        while self.works:
            self.works.popleft()()
            self.machine.turn()

    def ask(self, api_key: int, version: int, content: dict[str, Any]) -> Struct:
        ask = Ask(api_key, version, content)
        given: list[Any] = []
        self.machine.handle(ask.frame("client"), given.append)
        self.turn()
        while not given:  # time passes until there is an answer
            self.clock.now_ms = int(self.machine.next_ms)
            self.turn()
        return ask.read(given[0])

    def state_of(self, group: str) -> str:
        answer = self.ask(DESCRIBE_GROUPS, 5, {"groups": [group], "include_authorized_operations": False})
        return str(answer.groups[0].group_state)


def test_what_could_not_be_written_is_tried_again_after_exactly_a_second(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data")
    member = {"group_id": "g", "session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": SESSION_MS, "member_id": ""}
    protocols = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}]}
    broker.ask(FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["g"]})
    joined = broker.ask(JOIN_GROUP, 3, {**member, **protocols})
    sync = {"group_id": "g", "generation_id": 1, "member_id": joined.member_id, "assignments": []}
    assert not broker.ask(SYNC_GROUP, 3, sync).error_code
    broker.fault = Fault.FAILS
    for _ in range(50):  # the member is missed, but that cannot be written
        broker.clock.now_ms = max(broker.clock.now_ms + 1, int(broker.machine.next_ms))
        before_ms = broker.clock.now_ms
        broker.turn()
        assert broker.machine.next_ms > before_ms  # in seconds, a sum that is a little too large would never be reached
        assert broker.state_of("g") == "Stable" or before_ms < SESSION_MS
    broker.fault = Fault.NONE
    broker.clock.now_ms = int(broker.machine.next_ms)
    broker.turn()
    assert broker.state_of("g") == "Empty"


def test_a_topic_is_deleted_though_what_groups_have_committed_in_it_cannot_be_forgotten(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data")
    broker.machine.directory.create_topic("t")
    broker.ask(FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["g"]})
    offset = {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
    commit = {"group_id": "g", "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    answer = broker.ask(OFFSET_COMMIT, 9, {**commit, "topics": [{"name": "t", "partitions": [offset]}]})
    assert not answer.topics[0].partitions[0].error_code
    broker.fault = Fault.FAILS
    delete = {"topic_names": ["t"], "timeout_ms": 1000}
    assert broker.ask(DELETE_TOPICS, 5, delete).responses[0].error_code == ErrorCode.NONE
    assert "t" not in broker.machine.directory.topics
    assert broker.ask(DELETE_TOPICS, 5, delete).responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
