"""The consumer protocol: no partition in two current assignments, no commit of who is out: `ConsumerCheck`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from octavo.broker.wire.api_keys import CONSUMER_GROUP_HEARTBEAT, DELETE_GROUPS
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode
from tests.simulation.checks.check import Check, demand
from tests.simulation.clients.consumer import CONSUMER_REBALANCE_MS, Owned, assigned
from tests.simulation.machine import CONSUMER_SESSION_MS
from tests.simulation.wire import Ask, Membership, accepted

_NAMES: Final = "consumer-"  # in those of members of this protocol, and of their producers


@dataclass
class _Member:
    instance: str | None
    epoch: int = 0  # the last one that it was told
    seen_ms: int = 0
    given: Owned = field(default_factory=set)  # what it was told last
    since: dict[tuple[bytes, int], int] = field(default_factory=dict)  # in which epoch it was given what it may have
    held: Owned = field(default_factory=set)  # what it may have
    revoking_since_ms: int | None = None  # it has something that it shall give back
    may_be_out: bool = False  # the broker was killed when it left, or after its time was over


class ConsumerCheck(Check):
    """Sees what members of consumer groups are told, and tell."""

    def __init__(self, now_ms: Callable[[], int], groups: set[str]) -> None:
        self._now_ms: Final = now_ms
        self._groups: Final[dict[str, dict[str, _Member]]] = {group: {} for group in groups}

    def answered(self, who: str, ask: Ask, answer: Struct) -> None:
        if ask.api_key == DELETE_GROUPS:
            for each in answer.results:
                if not each.error_code and each.group_id in self._groups:
                    self._groups[each.group_id].clear()
        members = self._groups.get(ask.content.get("group_id", ""))
        if members is None:
            return
        if ask.api_key == CONSUMER_GROUP_HEARTBEAT:
            self._beat(members, ask, answer)
        elif ask.committer is not None and accepted(answer) and _NAMES in who:
            self._committed(members, ask.committer, accepted(answer))

    def _beat(self, members: dict[str, _Member], ask: Ask, answer: Struct) -> None:
        member_id, epoch = ask.content["member_id"], ask.content["member_epoch"]
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            members.pop(member_id, None)
        elif answer.error_code == ErrorCode.FENCED_MEMBER_EPOCH and member_id in members:
            members[member_id].held.clear()  # it gives everything up
        if answer.error_code:
            return
        if epoch < 0:
            members.pop(member_id, None)
            return
        instance = ask.content["instance_id"]
        if instance is not None:
            for other in [each for each, known in members.items() if known.instance == instance and each != member_id]:
                del members[other]
        member = members.setdefault(member_id, _Member(instance))
        if epoch == 0:
            member.held, member.given = set(), set()
        member.epoch, member.seen_ms, member.may_be_out = answer.member_epoch, self._now_ms(), False
        member.held &= _reported(ask, member.held)
        if answer.assignment is not None:
            self._told(members, member_id, assigned(answer))
        is_revoking = bool(member.held - member.given)
        if not is_revoking:
            member.revoking_since_ms = None
        elif member.revoking_since_ms is None:
            member.revoking_since_ms = self._now_ms()

    def _told(self, members: dict[str, _Member], member_id: str, told: Owned) -> None:
        member = members[member_id]
        member.given = told
        member.held |= told
        member.since = {each: member.since.get(each, member.epoch) for each in sorted(member.held)}
        for other_id, other in list(members.items()):
            both = told & other.held if other_id != member_id else set()
            if both:
                demand(self._is_out(other), f"{member_id} is given {both}, which {other_id} has")
                del members[other_id]

    def _is_out(self, member: _Member) -> bool:
        """Return whether somebody was silent for too long, or has kept for too long what it shall give back."""
        now_ms = self._now_ms()
        if member.may_be_out or now_ms - member.seen_ms >= CONSUMER_SESSION_MS:
            return True
        since_ms = member.revoking_since_ms
        return since_ms is not None and now_ms - since_ms >= CONSUMER_REBALANCE_MS

    def _committed(self, members: dict[str, _Member], committer: Membership, places: list[tuple[str, int]]) -> None:
        member_id, epoch = committer.member_id, committer.generation
        member = members.get(member_id)
        demand(member is not None, f"a commit of {member_id} is accepted, who is out")
        assert member is not None
        silent_ms = self._now_ms() - member.seen_ms
        demand(silent_ms < CONSUMER_SESSION_MS + 15_000, f"a commit is accepted of {member_id}, silent for {silent_ms}")
        # As in Kafka, a static member that was away may commit in any epoch what it had before.
        demand(epoch <= member.epoch, f"a commit of {member_id} in epoch {epoch} is accepted; it is in {member.epoch}")
        if epoch < member.epoch and member.instance is None:
            for _, partition in places:
                since = [known for (_, each), known in member.since.items() if each == partition]
                is_its = bool(since) and min(since) <= epoch
                demand(is_its, f"{member_id} commits in partition {partition} in epoch {epoch}; it has {member.since}")

    def died(self, handled: tuple[str, Ask] | None) -> None:
        for each in [member for members in self._groups.values() for member in members.values()]:
            each.may_be_out |= self._is_out(each)
        ask = None if handled is None else handled[1]
        if ask is None or ask.api_key != CONSUMER_GROUP_HEARTBEAT:
            return
        member = self._groups.get(ask.content["group_id"], {}).get(ask.content["member_id"])
        if member is not None:
            member.may_be_out |= ask.content["member_epoch"] < 0
            member.held &= _reported(ask, member.held)  # this may be in the log, though nobody is told

    def started(self) -> None:
        for members in self._groups.values():
            for member in members.values():
                member.seen_ms = self._now_ms()
                if member.revoking_since_ms is not None:
                    member.revoking_since_ms = self._now_ms()


def _reported(ask: Ask, held: Owned) -> Owned:
    """Return what a member says that it has."""
    topics = ask.content["topic_partitions"]
    return (
        held if topics is None else {(bytes(each["topic_id"]), part) for each in topics for part in each["partitions"]}
    )
