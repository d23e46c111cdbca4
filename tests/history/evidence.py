"""What a history tells about its transactions: which of them are sure to be committed, and since when (`Evidence`).

A transaction of which nobody knows the end counts as committed as soon as something of it was seen: a value that a
consumer was given, or an offset that only this transaction can have committed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.history.operations import FetchOffsets, Operation, Outcome, Partition, Poll, Transaction
from tests.history.versions import PartitionVersions

Versions = dict[Partition, PartitionVersions]
Place = tuple[str, Partition]  # where a group goes on


@dataclass(slots=True)
class Evidence:
    """The transactions of a history, and what shows that they were committed."""

    transactions: list[Transaction] = field(default_factory=list)
    polls: list[tuple[Poll, set[Transaction]]] = field(default_factory=list)  # with those whose values were given
    fetches: list[FetchOffsets] = field(default_factory=list)
    since: dict[Transaction, int] = field(default_factory=dict)  # from this time on, it is sure to be committed
    _committers: dict[Place, dict[int, list[Transaction]]] = field(default_factory=lambda: defaultdict(dict))

    @property
    def committed(self) -> list[Transaction]:
        """All that are sure to be committed, in the order of their begin."""
        return [each for each in self.transactions if each in self.since]

    def may_have_committed(self, group: str, partition: Partition, offset: int) -> list[Transaction]:
        """Return the transactions that may have committed this offset."""
        committers = self._committers[group, partition].get(offset, [])
        return [each for each in committers if not each.is_aborted]

    def note_transaction(self, transaction: Transaction) -> None:
        """Take in a transaction, and its offsets."""
        self.transactions.append(transaction)
        for partition, offset in transaction.offsets.items():
            assert transaction.group is not None
            self._committers[transaction.group, partition].setdefault(offset, []).append(transaction)
        if transaction.outcome is Outcome.OK:
            assert transaction.completed_ns is not None
            self.since[transaction] = transaction.completed_ns

    def note_poll(self, poll: Poll, versions: Versions) -> None:
        """Take in what a consumer was given."""
        found: set[Transaction] = set()
        for partition, records in poll.records.items():
            sends = versions[partition].sends
            for _, value in records:
                send = sends.get(value)
                if send is not None and send.transaction is not None:
                    found.add(send.transaction)
        self.polls.append((poll, found))
        for transaction in found:
            self._note_seen(transaction, poll)

    def note_fetches(self) -> None:
        """Take in the offsets that groups were told, when all transactions are known."""
        for fetch in self.fetches:
            for partition, offset in fetch.offsets.items():
                if offset is not None:
                    able = self.may_have_committed(fetch.group, partition, offset)
                    if len(able) == 1:
                        self._note_seen(able[0], fetch)

    def _note_seen(self, transaction: Transaction, seen_by: Operation) -> None:
        if not transaction.is_aborted:
            assert seen_by.completed_ns is not None
            since = self.since.get(transaction, seen_by.completed_ns)
            self.since[transaction] = min(since, seen_by.completed_ns)


def gather(history: Iterable[Operation], versions: Versions) -> Evidence:
    """Gather what a history tells about its transactions."""
    evidence = Evidence()
    for operation in history:
        if isinstance(operation, Transaction):
            evidence.note_transaction(operation)
        elif operation.outcome is not Outcome.OK:
            continue
        elif isinstance(operation, Poll):
            evidence.note_poll(operation, versions)
        elif isinstance(operation, FetchOffsets):
            evidence.fetches.append(operation)
    evidence.note_fetches()
    return evidence
