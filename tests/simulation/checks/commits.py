"""Committed offsets: an acknowledged commit stands until a later one is accepted: `CommitCheck`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from octavo.broker.wire.api_keys import (
    DELETE_GROUPS,
    END_TXN,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
)
from octavo.broker.wire.messages import Struct
from tests.simulation.checks.check import Check, demand
from tests.simulation.wire import Ask, Key, Transaction

Stored = tuple[int, int]  # the number of the commit, and its offset
_NOTHING: Final[Stored] = (0, -1)


class CommitCheck(Check):
    """Knows what is committed. Where a kill leaves two possibilities, the next answer decides between them.

    Of several commits, the one that was accepted last counts; one in a transaction counts as soon as that is committed.
    """

    def __init__(self) -> None:
        self._possible: Final[dict[Key, set[Stored]]] = {}
        self._number = 0
        self._undecided: Final[list[Transaction]] = []
        self.fetched = 0

    def _of(self, key: Key) -> set[Stored]:
        return self._possible.setdefault(key, {_NOTHING})

    def _pending(self) -> list[Key]:
        """Return where transactions commit that have not ended."""
        return [key for transaction in self._undecided for key in transaction.offsets]

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def answered(self, who: str, ask: Ask, answer: Struct) -> None:
        if ask.api_key in (OFFSET_COMMIT, TXN_OFFSET_COMMIT):
            number = self._next_number()
            for key, offset in _accepted(ask, answer):
                if ask.part_of is None:
                    self._possible[key] = {(number, offset)}
                else:
                    ask.part_of.offsets[key] = (number, offset)
                    if ask.part_of not in self._undecided:
                        self._undecided.append(ask.part_of)
        elif ask.api_key == END_TXN and not answer.error_code and ask.part_of is not None:
            self.decided(ask.part_of, is_committed=ask.content["committed"])
        elif ask.api_key == DELETE_GROUPS:
            self._forget({each.group_id for each in answer.results if not each.error_code})
        elif ask.api_key == OFFSET_DELETE and not answer.error_code:
            for topic in answer.topics:
                for each in topic.partitions:
                    if not each.error_code:
                        key = (ask.content["group_id"], topic.name, each.partition_index)
                        self._possible[key] = {(self._next_number(), -1)}
        elif ask.api_key == OFFSET_FETCH:
            self._fetched(answer)

    def died(self, handled: tuple[str, Ask] | None) -> None:
        if handled is None:
            return
        ask = handled[1]
        number = self._next_number()
        if ask.api_key == OFFSET_COMMIT:
            for key, offset in _asked(ask):
                self._of(key).add((number, offset))
        elif ask.api_key == DELETE_GROUPS:
            for key in {*self._possible, *self._pending()}:
                if key[0] in ask.content["groups_names"]:
                    self._of(key).add((number, -1))
        elif ask.api_key == OFFSET_DELETE:
            for key in {*self._possible, *self._pending()}:
                if key[0] == ask.content["group_id"]:
                    self._of(key).add((number, -1))

    def decided(self, transaction: Transaction, *, is_committed: bool) -> None:
        """Note what became of a transaction."""
        if transaction not in self._undecided:
            return
        self._undecided.remove(transaction)
        if is_committed:
            for key, stored in transaction.offsets.items():
                self._possible[key] = {max(each, stored) for each in self._of(key)}

    def _forget(self, groups: Iterable[str]) -> None:
        number = self._next_number()
        for key in {*self._possible, *self._pending()}:
            if key[0] in groups:
                self._possible[key] = {(number, -1)}

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
            if transaction.offsets[key][1] == offset and transaction.offsets[key] > min(known):
                self.decided(transaction, is_committed=True)
                transaction.is_committed = True  # so its records have to be there, too
                known = self._of(key)
        found = {each for each in known if each[1] == offset}
        demand(bool(found), f"{key} is at {offset}, and what was committed is {sorted(known)}")
        self._possible[key] = found


def _asked(ask: Ask) -> Iterator[tuple[Key, int]]:
    for topic in ask.content["topics"]:
        for each in topic["partitions"]:
            yield (ask.content["group_id"], topic["name"], each["partition_index"]), each["committed_offset"]


def _accepted(ask: Ask, answer: Struct) -> Iterator[tuple[Key, int]]:
    asked = dict(_asked(ask))
    for topic in answer.topics:
        for each in topic.partitions:
            if not each.error_code:
                key = (ask.content["group_id"], topic.name, each.partition_index)
                yield key, asked[key]
