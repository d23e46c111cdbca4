"""What has to be so some time after nothing goes wrong any more: `Ending`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from octavo.broker.wire.api_keys import CONSUMER_GROUP_DESCRIBE, LIST_TRANSACTIONS
from octavo.broker.wire.messages import Struct
from tests.simulation.checks.check import demand
from tests.simulation.checks.commits import CommitCheck
from tests.simulation.checks.replay import check_replay
from tests.simulation.checks.transactions import TransactionCheck
from tests.simulation.clients.classic import ClassicMember
from tests.simulation.clients.committing import fetch_ask
from tests.simulation.clients.consumer import SUBSCRIPTIONS, ConsumerMember, assigned
from tests.simulation.clients.reading import read_ask, shown
from tests.simulation.clients.transactions import GROUP
from tests.simulation.machine import EXPIRY_CHECK_MS, RETENTION_MS
from tests.simulation.wire import Ask
from tests.simulation.world import Client, World

_PATIENCE_MS: Final = 150_000
_STEP_MS: Final = 5_000
_GROUPS: Final = ("classic", "consumer", "mixed", "simple", GROUP)
_IS_OVER: Final = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")


class Ending:
    """Lets time pass until groups are stable and transactions have ended, and looks at everything."""

    def __init__(
        self,
        world: World,
        commits: CommitCheck,
        transactions: TransactionCheck,
        classic: Sequence[ClassicMember],
        consumers: Sequence[ConsumerMember],
        others: Sequence[Client],
    ) -> None:
        self._world: Final = world
        self._commits: Final = commits
        self._transactions: Final = transactions
        self._classic: Final = classic
        self._consumers: Final = consumers
        self._others: Final = others  # they end when nothing goes wrong any more

    def check(self) -> None:
        """Check everything. Raises `Violation`."""
        world = self._world
        until_ms = world.now_ms + _PATIENCE_MS
        while True:
            world.run(world.now_ms + _STEP_MS)
            left = self._left()
            if left is None:
                break
            demand(world.now_ms < until_ms, f"{left}, though nothing has gone wrong for {_PATIENCE_MS} ms")
        self._check_data()
        check_replay(world.machine.directory)
        if world.machine.is_expiring:
            world.run(world.now_ms + RETENTION_MS + 3 * EXPIRY_CHECK_MS)
            self._check_data()
            self._commits.check_expired()
        if world.happens(0.75):
            return
        world.kill()
        world.run(world.now_ms + _STEP_MS, lambda: world.is_up)
        world.start()
        self._check_data()

    # ---------------------------------------------------------------------------------------------------- all is quiet

    def _left(self) -> str | None:
        """Return what is left to happen; None if nothing is."""
        world = self._world
        if not world.is_up:
            return "the process is down"
        for each in self._others:
            if not each.is_over:
                return f"{each.name} has not ended"
        for what in (self._left_classic, self._left_consumer, self._left_transactions, self._left_parked):
            left = what()
            if left is not None:
                return left
        return None

    def _left_classic(self) -> str | None:
        living = [each for each in self._classic if each.is_alive]
        for each in living:
            if not each.is_stable:
                return f"{each.name} is not stable"
        generations = {each.generation for each in living}
        return f"members are in generations {generations}" if len(generations) > 1 else None

    def _left_consumer(self) -> str | None:
        living = [each for each in self._consumers if each.is_alive]
        names = {topic.id.bytes: name for name, topic in self._world.machine.directory.topics.items()}
        counts = {name: len(topic.partitions) for name, topic in self._world.machine.directory.topics.items()}
        held = Counter((names.get(topic, "gone"), partition) for each in living for topic, partition in each.owned)
        for group in sorted({each.group for each in living}):
            if any(each.group == group and each.is_alive for each in self._classic):
                if self._describe(group).group_state != "Stable":
                    return f"{group} is not stable"
                continue  # the members of the classic protocol have some of it
            wanted = {
                (topic, partition)
                for each in living
                if each.group == group
                for topic in SUBSCRIPTIONS[each.subscription]
                for partition in range(counts[topic])
            }
            if held != Counter(wanted):
                return f"members of {group} have {sorted(held.elements())} of {sorted(wanted)}"
            if self._is_unlike_target(group, [each for each in living if each.group == group]):
                return f"{group} has not reached its target"
        return None

    def _is_unlike_target(self, group: str, living: Sequence[ConsumerMember]) -> bool:
        described = self._describe(group)
        if described.error_code or described.group_state != "Stable":
            return True
        owned = {each.member_id: each.owned for each in living}
        told = {each.member_id: assigned(each) for each in described.members}
        for each in described.members:
            each.assignment = each.target_assignment
        return told != owned or {each.member_id: assigned(each) for each in described.members} != owned

    def _describe(self, group: str) -> Struct:
        ask = Ask(CONSUMER_GROUP_DESCRIBE, 1, {"group_ids": [group], "include_authorized_operations": False})
        [described] = self._world.ask_now(ask).groups
        return described  # type: ignore[no-any-return] # the fields of a structure have no types

    def _left_transactions(self) -> str | None:
        ask = Ask(LIST_TRANSACTIONS, 1, {"state_filters": [], "producer_id_filters": [], "duration_filter": -1})
        for each in self._world.ask_now(ask).transaction_states:
            if each.transaction_state not in _IS_OVER:
                return f"the transaction of {each.transactional_id} is in {each.transaction_state}"
        for log in self._world.machine.directory.logs:
            if log.producers.open_transactions:
                return f"a transaction is open in {log.partition}"
        return None

    def _left_parked(self) -> str | None:
        waiting = [each for each in self._world.machine.parked if not each.is_given]
        return f"{len(waiting)} requests are parked" if waiting else None

    # ------------------------------------------------------------------------------------------------ what there is now

    def _check_data(self) -> None:
        self._transactions.read(self._committed_values())
        ask = fetch_ask(*_GROUPS, is_stable=True)
        answer = self._world.ask_now(ask)
        self._commits.answered("observer", ask, answer)
        for group in answer.groups:
            codes = [each.error_code for topic in group.topics for each in topic.partitions]
            demand(not group.error_code and not any(codes), f"the offsets of {group.group_id} stay unknown: {codes}")

    def _committed_values(self) -> Counter[str]:
        """Return what a reader of committed data sees."""
        topics = self._world.machine.directory.topics
        found: Counter[str] = Counter()
        for topic in self._world.ask_now(read_ask({name: len(topics[name].partitions) for name in "ab"})).responses:
            for part in topic.partitions:
                is_stable = part.last_stable_offset == part.high_watermark
                demand(is_stable, f"partition {part.partition_index} of {topic.topic} is unstable at the end")
                found.update(shown(part))
        return found
