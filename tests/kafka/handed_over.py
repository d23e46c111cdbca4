"""What is in the middle of something when a broker hands over, and goes on with the next one: `Case`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final

from octavo.broker.wire import api_keys
from octavo.errors import ErrorCode
from tests.server.group_client import GroupClient

PATIENCE_S: Final = 60
LONG_MS: Final = 600_000  # nobody is late before that
GROUP_TOPIC: Final = "g"
GROUP_PARTITIONS: Final = 2

Answers = Iterator[object]


class Case(ABC):
    """A group or a transactional id, which one broker has in some state, and the next one has to go on with."""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    @abstractmethod
    def prepare(self, address: str) -> None:
        """Bring it into its state."""

    def decide(self, address: str) -> None:
        """Do what has to be done when the broker can no longer write markers."""
        return

    @abstractmethod
    def go_on(self, address: str) -> Answers:
        """Go on at the next broker. Answers are without what differs from one run to the next."""


def until(is_true: Callable[[], bool], what: str) -> None:
    """Ask until something is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)  # until it is asked again


def find_coordinators(address: str) -> None:
    """Return when groups and transactions can be asked for."""
    with GroupClient(address) as client:

        def is_ready() -> bool:
            asked = [client.ask(api_keys.FIND_COORDINATOR, 4, key_type=each, coordinator_keys=["x"]) for each in (0, 1)]
            if any(each.coordinators[0].error_code for each in asked):
                return False
            states = client.ask(api_keys.DESCRIBE_TRANSACTIONS, 0, transactional_ids=["x"]).transaction_states
            groups = client.ask(api_keys.DESCRIBE_GROUPS, 5, groups=["x"]).groups
            return [states[0].error_code, groups[0].error_code] == [
                ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
                ErrorCode.NONE,
            ]

        until(is_ready, "the coordinators are not there")


def offset_of(address: str, group_id: str, topic: str) -> tuple[int, int]:
    """Return the error and the offset for partition 0, as a consumer gets it that wants stable ones."""
    with GroupClient(address, group_id) as client:
        asked: list[Any] = [{"name": topic, "partition_indexes": [0]}]
        answer = client.ask(api_keys.OFFSET_FETCH, 7, group_id=group_id, topics=asked, require_stable=True)
        [found] = answer.topics[0].partitions
        return found.error_code, found.committed_offset
