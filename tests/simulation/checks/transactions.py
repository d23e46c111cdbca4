"""Transactions: each ends, whole or not at all, and nobody who is fenced takes part: `TransactionCheck`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from octavo.broker.wire.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DELETE_TOPICS,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from octavo.broker.wire.messages import Struct
from tests.simulation.checks.check import Check, demand
from tests.simulation.checks.commits import CommitCheck
from tests.simulation.clients.reading import shown
from tests.simulation.clients.transactions import code_of
from tests.simulation.wire import Ask, Transaction

Identity = tuple[int, int]  # a producer id and an epoch
_BUMPS_FROM: Final = 5  # the version of EndTxn
_PARTS: Final = (ADD_OFFSETS_TO_TXN, ADD_PARTITIONS_TO_TXN, PRODUCE, TXN_OFFSET_COMMIT)


class TransactionCheck(Check):
    """Knows which producer has a transactional id, and which transactions must and may be committed."""

    def __init__(self, commits: CommitCheck) -> None:
        self._commits: Final = commits
        self._current: Final[dict[str, Identity]] = {}
        self._ended: Final[dict[str, Identity]] = {}  # those whose transaction was the last one to end
        self._transactions: Final[dict[str, Transaction]] = {}  # by the number in their values
        self.committed = 0

    def arrived(self, who: str, ask: Ask) -> None:
        transaction = ask.part_of
        if transaction is None:
            return
        self._transactions[f"{transaction.transactional_id}/{transaction.number}"] = transaction
        if ask.api_key == END_TXN and ask.content["committed"]:
            transaction.may_be_committed = True

    def answered(self, who: str, ask: Ask, answer: Struct) -> None:
        if ask.api_key == INIT_PRODUCER_ID and not answer.error_code:
            self._begun(ask.content["transactional_id"], (answer.producer_id, answer.producer_epoch))
        elif ask.api_key == FETCH:
            self._check_shown(
                {value for topic in answer.responses for each in topic.partitions for value in shown(each)}
            )
        self._may_delete(ask)
        transaction = ask.part_of
        if transaction is None or code_of(ask, answer):
            return
        if ask.api_key in _PARTS:
            self._check_current(transaction, ask.name)
            demand(transaction.is_committed is None, f"{ask.name} is accepted after the end of {transaction}")
        elif ask.api_key == END_TXN:
            self._has_ended(transaction, ask, answer)

    def died(self, handled: tuple[str, Ask] | None) -> None:
        if handled is not None:
            self._may_delete(handled[1])

    def _check_shown(self, values: set[str]) -> None:
        """Check what a reader of committed data is shown while transactions go on."""
        for value in sorted(values):
            transaction = self._transactions[value.rpartition("/")[0]]
            is_allowed = transaction.may_be_committed and transaction.is_committed is not False
            demand(is_allowed, f"{value} is shown, though it is not committed: {transaction}")
            self._decided(transaction, is_committed=True)

    def _may_delete(self, ask: Ask) -> None:
        """Expect nothing any more of a topic that may have been deleted."""
        if ask.api_key == DELETE_TOPICS:
            for each in self._transactions.values():
                each.gone |= {value for value, topic in each.topics.items() if topic in ask.content["topic_names"]}

    def _begun(self, transactional_id: str, identity: Identity) -> None:
        known = self._current.get(transactional_id)
        is_new = known is None or known[0] != identity[0] or known[1] <= identity[1]
        demand(is_new, f"{transactional_id} is given {identity} after {known}")
        self._current[transactional_id] = identity
        self._ended.pop(transactional_id, None)
        for each in self._transactions.values():
            is_before = each.transactional_id == transactional_id and each.producer != identity
            if is_before and each.is_committed is None and not each.may_be_committed:
                self._decided(each, is_committed=False)

    def _check_current(self, transaction: Transaction, what: str) -> None:
        known = self._current.get(transaction.transactional_id)
        demand(known == transaction.producer, f"{what} of {transaction.producer} is accepted; {known} has begun")

    def _has_ended(self, transaction: Transaction, ask: Ask, answer: Struct) -> None:
        is_committed = ask.content["committed"]
        known = self._current.get(transaction.transactional_id)
        is_repeated = self._ended.get(transaction.transactional_id) == transaction.producer
        demand(
            known == transaction.producer or is_repeated,
            f"EndTxn of {transaction.producer} is accepted; {known} has begun",
        )
        demand(
            transaction.is_committed in (None, is_committed),
            f"{transaction} has ended otherwise than EndTxn says now (committed: {is_committed})",
        )
        if ask.version >= _BUMPS_FROM:
            identity = (answer.producer_id, answer.producer_epoch)
            demand(identity != transaction.producer, f"EndTxn of {transaction.producer} gives no new epoch")
            self._current[transaction.transactional_id] = identity
            self._ended[transaction.transactional_id] = transaction.producer
        self._decided(transaction, is_committed=is_committed)

    def _decided(self, transaction: Transaction, *, is_committed: bool) -> None:
        if transaction.is_committed is None:
            transaction.is_committed = is_committed
            self._commits.decided(transaction, is_committed=is_committed)

    # --------------------------------------------------------------------------------------------------------- the end

    def read(self, found: Mapping[str, int]) -> None:
        """Check what a reader of committed data sees: values, and how often."""
        for value, times in found.items():
            name = value.rpartition("/")[0]
            demand(times == 1, f"{value} is there {times} times")
            demand(value in self._transactions[name].records, f"nobody has produced {value}")
        for name, transaction in self._transactions.items():
            sent = transaction.records
            there = [value for value in sent if value in found]
            expected = [value for value, is_acknowledged in sent.items() if is_acknowledged]
            lacking = [value for value in expected if value not in found and value not in transaction.gone]
            if transaction.is_committed is None and sent:
                demand(not there or transaction.may_be_committed, f"{name} is committed, which nobody asked for")
                demand(not there or not lacking, f"{name} is committed in part: {lacking} are missing")
                if there or lacking:
                    self._decided(transaction, is_committed=bool(there))
            elif transaction.is_committed:
                demand(not lacking, f"{name} is committed, and {lacking} are missing")
                self.committed += 1
            else:
                demand(not there, f"{name} is aborted, and {there} are there")
