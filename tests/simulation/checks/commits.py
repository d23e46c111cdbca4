"""Committed offsets: an acknowledged commit stands until a later one is accepted: `CommitCheck`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from octavo.broker.wire.api_keys import (
    DELETE_GROUPS,
    DELETE_TOPICS,
    END_TXN,
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode
from tests.simulation.checks.check import Check, demand
from tests.simulation.machine import EXPIRY_CHECK_MS, RETENTION_MS
from tests.simulation.wire import Ask, Key, Stored, Transaction, accepted

_NOTHING: Final = Stored(0, -1, 0)


class CommitCheck(Check):
    """Knows what is committed. Where a kill leaves two possibilities, the next answer decides between them.

    Of several commits, the one that was accepted last counts; one in a transaction counts as soon as that is committed.
    """

    def __init__(self, now_ms: Callable[[], int], without_members: set[str]) -> None:
        """`without_members`: groups that never have any."""
        self.is_expiring = False  # offsets are forgotten if nobody uses them
        self.appends_fail = False  # so that offsets of a deleted topic may stay, as in Kafka
        self._now_ms: Final = now_ms
        self._without_members: Final = without_members
        self._used_ms: Final[dict[str, int]] = {}  # when a member of a classic group was last heard of
        self._possible: Final[dict[Key, set[Stored]]] = {}
        self._number = 0
        self._undecided: Final[list[Transaction]] = []
        self.fetched = 0

    def _of(self, key: Key) -> set[Stored]:
        return self._possible.setdefault(key, {_NOTHING})

    def _pending(self) -> list[Key]:
        """Return where transactions commit that have not ended."""
        return [key for transaction in self._undecided for key in transaction.offsets]

    def _next(self, offset: int = -1) -> Stored:
        self._number += 1
        return Stored(self._number, offset, self._now_ms())

    def answered(self, who: str, ask: Ask, answer: Struct) -> None:
        if ask.api_key in (OFFSET_COMMIT, TXN_OFFSET_COMMIT):
            self._committed(ask, answer)
        elif ask.api_key == END_TXN and not answer.error_code and ask.part_of is not None:
            self.decided(ask.part_of, is_committed=ask.content["committed"])
        elif ask.api_key == DELETE_GROUPS:
            self._forget({each.group_id for each in answer.results if not each.error_code})
        elif ask.api_key == OFFSET_DELETE and not answer.error_code:
            for topic, partition in accepted(answer):
                self._possible[ask.content["group_id"], topic, partition] = {self._next()}
        elif ask.api_key == DELETE_TOPICS and answer.responses[0].error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._topic_deleted(ask, is_sure=not answer.responses[0].error_code and not self.appends_fail)
        elif ask.api_key == OFFSET_FETCH:
            self._fetched(answer)
        elif ask.api_key in (JOIN_GROUP, SYNC_GROUP, HEARTBEAT) and not answer.error_code:
            self._used_ms[ask.content["group_id"]] = self._now_ms()

    def _committed(self, ask: Ask, answer: Struct) -> None:
        asked = dict(_asked(ask))
        for topic, partition in accepted(answer):
            key = (ask.content["group_id"], topic, partition)
            stored = self._next(asked[key])
            if ask.part_of is None:
                self._possible[key] = {stored}
                continue
            ask.part_of.offsets[key] = stored
            if ask.part_of not in self._undecided:
                self._undecided.append(ask.part_of)

    def died(self, handled: tuple[str, Ask] | None) -> None:
        if handled is None:
            return
        ask = handled[1]
        if ask.api_key == OFFSET_COMMIT:
            for key, offset in _asked(ask):
                self._of(key).add(self._next(offset))
        elif ask.api_key == DELETE_TOPICS:
            self._topic_deleted(ask, is_sure=False)
        elif ask.api_key == DELETE_GROUPS:
            for key in {*self._possible, *self._pending()}:
                if key[0] in ask.content["groups_names"]:
                    self._of(key).add(self._next())
        elif ask.api_key == OFFSET_DELETE:
            for key in {*self._possible, *self._pending()}:
                if key[0] == ask.content["group_id"]:
                    self._of(key).add(self._next())

    def decided(self, transaction: Transaction, *, is_committed: bool) -> None:
        """Note what became of a transaction."""
        if transaction not in self._undecided:
            return
        self._undecided.remove(transaction)
        if is_committed:
            for key, stored in transaction.offsets.items():
                self._possible[key] = {max(each, stored) for each in self._of(key)}

    def _forget(self, groups: Iterable[str]) -> None:
        for key in {*self._possible, *self._pending()}:
            if key[0] in groups:
                self._possible[key] = {self._next()}

    def _topic_deleted(self, ask: Ask, *, is_sure: bool) -> None:
        """Know that what was committed in a topic is gone with it, or may be."""
        for key in {*self._possible, *self._pending()}:
            if key[1] in ask.content["topic_names"]:
                self._possible[key] = {self._next(), *(() if is_sure else self._of(key))}

    def _fetched(self, answer: Struct) -> None:
        for group in answer.groups:
            if group.error_code:
                continue
            for topic in group.topics:
                for each in topic.partitions:
                    if not each.error_code:
                        self._found((group.group_id, topic.name, each.partition_index), each.committed_offset)

    def _found(self, key: Key, offset: int) -> None:
        self.fetched += 1
        known = self._of(key)
        for transaction in [each for each in self._undecided if each.may_be_committed and key in each.offsets]:
            if transaction.offsets[key].offset == offset and transaction.offsets[key] > min(known):
                self.decided(transaction, is_committed=True)
                transaction.is_committed = True  # so its records have to be there, too
                known = self._of(key)
        found = {each for each in known if each.offset == offset}
        if offset < 0:
            found |= {each._replace(offset=-1) for each in known if self._may_be_expired(key, each)}
        demand(bool(found), f"{key} is at {offset}, and what was committed is {sorted(known)}")
        self._possible[key] = found

    def _may_be_expired(self, key: Key, stored: Stored) -> bool:
        since_ms = max(stored.at_ms, self._used_ms.get(key[0], 0))
        return self.is_expiring and self._now_ms() - since_ms >= RETENTION_MS

    def check_expired(self) -> None:
        """Demand that nothing is left that nobody has used for too long. What is there was fetched just now."""
        for key, known in self._possible.items():
            latest_ms = max(each.at_ms for each in known)
            is_old = self._now_ms() - latest_ms >= RETENTION_MS + 2 * EXPIRY_CHECK_MS
            is_left = any(each.offset >= 0 for each in known)
            demand(not (is_left and is_old and key[0] in self._without_members), f"{key} is left: {known}")


def _asked(ask: Ask) -> Iterator[tuple[Key, int]]:
    for topic in ask.content["topics"]:
        for each in topic["partitions"]:
            yield (ask.content["group_id"], topic["name"], each["partition_index"]), each["committed_offset"]
