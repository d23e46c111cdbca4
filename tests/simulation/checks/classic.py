"""Classic groups: one leader for each generation, its assignments for all, no commit of who is out: `ClassicCheck`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from octavo.broker.wire.api_keys import DELETE_GROUPS, HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from octavo.broker.wire.messages import Struct
from tests.simulation.checks.check import Check, demand
from tests.simulation.machine import REBALANCE_MS, SESSION_MS
from tests.simulation.wire import Ask, accepted

INSTANCES: Final = ("i1", "i2")
_UUID_SIZE: Final = 37  # with the hyphen before it
_PATIENCE_MS: Final = SESSION_MS + REBALANCE_MS + 10_000  # after which nobody is a member who was not heard of


@dataclass
class _Generation:
    leader: str | None = None
    sent: list[dict[str, bytes]] = field(default_factory=list)  # what its leaders have brought, and might stand
    is_lasting: bool = False  # a member has got its assignment, so that a kill does not undo it


@dataclass
class _Group:
    generation: int = 0  # the last one that anybody was told of
    maybe: int = 0  # a later one, if the broker was killed when its assignments came
    generations: dict[int, _Generation] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)  # members that have left, or have been replaced
    present: dict[str, str] = field(default_factory=dict)  # who has an instance id now
    seen_ms: dict[str, int] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)  # members that may be out, whatever a kill has undone

    def of(self, generation: int) -> _Generation:
        return self.generations.setdefault(generation, _Generation())

    def is_now(self, generation: int) -> bool:
        """Return whether a generation is the present one, as far as that is known; from now on it is."""
        if generation == self.maybe:
            self.generation, self.maybe = generation, 0
        return generation == self.generation

    def may_be_empty(self, now_ms: int) -> bool:
        """Return whether all members may have left, or have been silent for so long that they are out."""
        return all(member in self.left or now_ms - seen_ms >= SESSION_MS for member, seen_ms in self.seen_ms.items())

    def owner(self, member: str) -> str:
        """Return the instance id of a static member, which its id begins with; else the id."""
        return member[:-_UUID_SIZE] if member[:-_UUID_SIZE] in INSTANCES else member


class ClassicCheck(Check):
    """Sees what members of classic groups are told."""

    def __init__(self, now_ms: Callable[[], int], groups: set[str]) -> None:
        """`groups`: those that have members of the classic protocol only."""
        self.is_expiring = False  # groups without members and offsets are forgotten
        self._now_ms: Final = now_ms
        self._groups: Final = {group: _Group() for group in groups}

    def arrived(self, who: str, ask: Ask) -> None:
        group = self._groups.get(ask.content.get("group_id", ""))
        if group is not None and ask.api_key == SYNC_GROUP and ask.content["assignments"]:
            sent = {each["member_id"]: each["assignment"] for each in ask.content["assignments"]}
            owners = {group.owner(member): data for member, data in sent.items()}
            generation = group.of(ask.content["generation_id"])
            if group.owner(ask.content["member_id"]) == generation.leader and owners not in generation.sent:
                generation.sent.append(owners)

    def answered(self, who: str, ask: Ask, answer: Struct) -> None:
        if ask.api_key == DELETE_GROUPS:
            for each in answer.results:
                if not each.error_code and each.group_id in self._groups:
                    self._groups[each.group_id] = _Group()
            return
        group = self._groups.get(ask.content.get("group_id", ""))
        if group is None:
            return
        if ask.api_key == JOIN_GROUP and not answer.error_code:
            if self.is_expiring and answer.generation_id == 1 and group.may_be_empty(self._now_ms()):
                group = self._groups[ask.content["group_id"]] = _Group()
            self._joined(group, ask, answer)
        elif ask.api_key == SYNC_GROUP and not answer.error_code:
            self._synced(group, ask, answer)
        elif ask.api_key == HEARTBEAT and not answer.error_code:
            self._check_present(group, ask.content["member_id"], ask.content["generation_id"], "a heartbeat")
        elif ask.api_key == LEAVE_GROUP:
            group.gone |= {each.member_id for each in answer.members if not each.error_code}
            group.left |= group.gone
        elif ask.committer is not None and accepted(answer):
            self._check_present(group, ask.committer.member_id, ask.committer.generation, "a commit")

    def _joined(self, group: _Group, ask: Ask, answer: Struct) -> None:
        member, number, instance = answer.member_id, answer.generation_id, ask.content["group_instance_id"]
        if instance is not None:
            before = group.present.get(instance)
            if before is not None and before != member:
                group.gone.add(before)
                group.left.add(before)
            group.present[instance] = member
        demand(number >= group.generation, f"{member} is in generation {number}, and others are in {group.generation}")
        demand(member not in group.gone, f"{member} is out, and is in generation {number} all the same")
        group.generation, group.maybe = number, 0
        generation, leader = group.of(number), group.owner(answer.leader)
        if generation.leader is None:
            generation.leader = leader
        demand(leader == generation.leader, f"generation {number} is led by {generation.leader} and by {leader}")
        if answer.members:
            demand(answer.leader == member, f"{member} is told of all members, and does not lead")
        group.seen_ms[member] = self._now_ms()

    def _synced(self, group: _Group, ask: Ask, answer: Struct) -> None:
        member, number = ask.content["member_id"], ask.content["generation_id"]
        demand(group.is_now(number), f"{member} has generation {number}; {group.generation} has begun")
        demand(member not in group.gone, f"{member} is out, and gets an assignment all the same")
        generation, owner, got = group.of(number), group.owner(member), bytes(answer.assignment)
        fitting = [sent for sent in generation.sent if sent.get(owner, b"") == got]
        demand(bool(fitting), f"{member} gets {got!r} in generation {number}; the leader has sent {generation.sent}")
        generation.sent, generation.is_lasting = fitting, True
        group.seen_ms[member] = self._now_ms()

    def _check_present(self, group: _Group, member: str, generation: int, what: str) -> None:
        demand(
            group.is_now(generation),
            f"{what} of {member} in generation {generation} is accepted; {group.generation} has begun",
        )
        demand(member not in group.gone, f"{what} of {member} is accepted, who is out")
        silent_ms = self._now_ms() - group.seen_ms.get(member, 0)
        demand(silent_ms < _PATIENCE_MS, f"{what} of {member} is accepted, who was silent for {silent_ms} ms")
        group.seen_ms[member] = self._now_ms()

    def died(self, handled: tuple[str, Ask] | None) -> None:
        ask = None if handled is None else handled[1]
        for name, group in self._groups.items():
            group.left |= {each for each, at_ms in group.seen_ms.items() if self._now_ms() - at_ms >= SESSION_MS}
            group.gone.clear()  # a group is written to the log as it is when the leader has brought the assignments
            group.present.clear()
            group.generation = max((each for each, known in group.generations.items() if known.is_lasting), default=0)
            for number in [each for each in group.generations if each > group.generation]:
                is_brought = ask is not None and ask.api_key == SYNC_GROUP and ask.content["group_id"] == name
                if is_brought and ask is not None and ask.content["generation_id"] == number:
                    group.generations[number].leader, group.maybe = None, number  # it may last or not
                else:
                    del group.generations[number]

    def started(self) -> None:
        for group in self._groups.values():
            group.seen_ms = dict.fromkeys(group.seen_ms, self._now_ms())
