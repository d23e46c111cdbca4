"""A member of a group of the classic protocol: `ClassicMember`."""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import Any, Final

from octavo.broker.wire.api_keys import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode
from tests.simulation.clients.committing import Commits
from tests.simulation.machine import REBALANCE_MS, SESSION_MS
from tests.simulation.wire import Ask, Membership
from tests.simulation.world import Client, Doing, World

Step = Generator[Ask | int, Struct | None, bool]
_BEAT_MS: Final = 3_000
_PROTOCOL: Final = "range"
_LOST: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


def subscription(topics: list[str]) -> bytes:
    """Return the metadata of a member that subscribes to topics, as clients write them."""
    return struct.pack(">hi", 0, len(topics)) + b"".join(map(_text, topics)) + struct.pack(">i", -1)


def assignment(partitions: dict[str, list[int]], token: bytes | None) -> bytes:
    """Return an assignment, as clients write it, perhaps with something that makes it different from all others."""
    topics = b"".join(
        _text(topic) + struct.pack(f">i{len(each)}i", len(each), *each) for topic, each in sorted(partitions.items())
    )
    user_data = struct.pack(">i", -1) if token is None else struct.pack(">i", len(token)) + token
    return struct.pack(">hi", 0, len(partitions)) + topics + user_data


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


class ClassicMember(Client):
    """Joins, asks for its assignment, and sends heartbeats; sometimes it leaves, sleeps too long, or is gone.

    is_among_its_own: no member of the consumer protocol wants to join the group; if one does, assignments must not have
        data of users
    """

    def __init__(
        self, world: World, name: str, group: str, *, instance: str | None = None, is_among_its_own: bool = True
    ) -> None:
        self.name = name
        self.group: Final = group
        self.is_alive = True
        self.is_stable = False
        self.generation = -1
        self.assigned = b""
        self._world: Final = world
        self._instance: Final = instance
        self._is_among_its_own: Final = is_among_its_own
        self._topics = ["a"]
        self._member_id = ""
        self._members: list[Any] = []
        self._is_leader = False
        self._is_skipping = False  # it leads, but must not assign
        self._join_version = world.random.choice((3, 5, 7, 9))
        self._commits: Final = Commits(world, group)
        self.patience_ms = REBALANCE_MS + 5_000

    @property
    def membership(self) -> Membership:
        """Who it is in the group, as far as it knows."""
        return Membership(self.group, self._member_id, self.generation, self._instance)

    def run(self) -> Doing:
        while self.is_alive:
            before = self.generation
            self.is_stable = False
            if not (yield from self._join()) or not (yield from self._sync()):
                yield 200
                continue
            self.is_stable = True
            if 0 < before < self.generation and not self.is_settling and self._world.happens(0.2):  # it was late
                yield from self._commits.commit(self._member_id, before, self._instance)
            yield from self._live()

    def _ask(self, ask: Ask) -> Generator[Ask | int, Struct | None, Struct | None]:
        self.patience_ms = REBALANCE_MS + 5_000
        if not self.is_settling and self._world.happens(0.1):
            self.patience_ms = self._world.random.randrange(200, 5_000)  # soon it asks again, by another connection
        return (yield ask)

    def _join(self) -> Step:
        version = self._join_version if self._instance is None else max(5, self._join_version)
        answer = yield from self._ask(
            Ask(
                JOIN_GROUP,
                version,
                {
                    "group_id": self.group,
                    "session_timeout_ms": SESSION_MS,
                    "rebalance_timeout_ms": REBALANCE_MS,
                    "member_id": self._member_id,
                    "group_instance_id": self._instance,
                    "protocol_type": "consumer",
                    "protocols": [{"name": _PROTOCOL, "metadata": subscription(self._topics)}],
                    "reason": None,
                },
            )
        )
        if answer is None:
            return False
        self._note_error(answer.error_code)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            return (yield from self._join())
        if answer.error_code:
            return False
        self._member_id, self.generation = answer.member_id, answer.generation_id
        self._is_leader = answer.leader == answer.member_id
        self._is_skipping = self._is_leader and getattr(answer, "skip_assignment", False)
        self._members = list(answer.members)
        return True

    def _sync(self) -> Step:
        sent: list[dict[str, Any]] = []
        if self._is_leader and not self._is_skipping:
            token = f"{self.group}/{self.generation}/{self._world.new_number()}".encode()
            for number, each in enumerate(self._members):
                mine = assignment({"a": [number]}, token + f"/{number}".encode() if self._is_among_its_own else None)
                sent.append({"member_id": each.member_id, "assignment": mine})
        answer = yield from self._ask(
            Ask(
                SYNC_GROUP,
                5,
                {
                    "group_id": self.group,
                    "generation_id": self.generation,
                    "member_id": self._member_id,
                    "group_instance_id": self._instance,
                    "protocol_type": "consumer",
                    "protocol_name": _PROTOCOL,
                    "assignments": sent,
                },
            )
        )
        if answer is None:
            return False
        self._note_error(answer.error_code)
        self.assigned = bytes(answer.assignment)
        return not answer.error_code

    def _live(self) -> Doing:
        """Go on until the group changes."""
        world = self._world
        while True:
            if not self.is_settling:
                if world.happens(0.06):
                    yield from self._leave()
                    return
                if world.happens(0.03):
                    self.is_alive = False  # without a word
                    return
                if world.happens(0.04):
                    self._topics = ["a", "b"] if self._topics == ["a"] else ["a"]
                    return
                if world.happens(0.05):
                    yield world.random.randrange(SESSION_MS, 2 * SESSION_MS)
                if world.happens(0.5):
                    yield from self._commits.commit(self._member_id, self.generation, self._instance)
                if world.happens(0.2):
                    yield from self._commits.fetch()
            answer = yield from self._ask(
                Ask(
                    HEARTBEAT,
                    4,
                    {
                        "group_id": self.group,
                        "generation_id": self.generation,
                        "member_id": self._member_id,
                        "group_instance_id": self._instance,
                    },
                )
            )
            if answer is not None and answer.error_code:
                self._note_error(answer.error_code)
                if not self.is_settling and world.happens(0.3):  # it does not know yet that it is out
                    yield from self._commits.commit(self._member_id, self.generation, self._instance)
                if answer.error_code not in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR):
                    return
            yield _BEAT_MS

    def _leave(self) -> Doing:
        old = self._member_id
        yield Ask(
            LEAVE_GROUP,
            4,
            {
                "group_id": self.group,
                "members": [{"member_id": old, "group_instance_id": self._instance, "reason": None}],
            },
        )
        self._member_id = ""
        if self._world.happens(0.3):
            yield from self._commits.commit(old, self.generation, self._instance)
        if self._world.happens(0.5):
            self.is_alive = False

    def _note_error(self, code: int) -> None:
        if code in _LOST:
            self._member_id = ""
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self.is_alive = False
