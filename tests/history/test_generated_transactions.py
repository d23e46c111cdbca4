"""Histories of correct transactions are clean, and become guilty of exactly what is done to them."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history import Client, FetchOffsets, History, Kind, Partition, Promises, Transaction, check
from tests.history.mutations import MUTATIONS
from tests.history.operations import Value
from tests.soak.plugin import Soak

IN: Final[list[Partition]] = [("in", 0), ("in", 1)]
OUT: Final[list[Partition]] = [("out", 0), ("out", 1), ("out", 2)]
seeds = st.integers(0, 2**32)


class CorrectLog:
    """Partitions with transactions that are open, committed or aborted."""

    def __init__(self) -> None:
        self.logs: Final[dict[Partition, list[tuple[Value, Transaction | None]]]] = {each: [] for each in IN + OUT}
        self.open: Final[set[Transaction]] = set()
        self.aborted: Final[set[Transaction]] = set()
        self.offsets: Final[dict[Partition, int]] = {}

    def append(self, partition: Partition, value: Value, transaction: Transaction | None) -> int:
        self.logs[partition].append((value, transaction))
        return len(self.logs[partition]) - 1

    def read(self, partition: Partition, position: int, count: int) -> tuple[list[tuple[int, Value]], int]:
        """Return what a reader of committed records is given, and where it goes on."""
        records: list[tuple[int, Value]] = []
        log = self.logs[partition]
        while position < len(log) and count:
            value, transaction = log[position]
            if transaction in self.open:
                break
            if transaction not in self.aborted:
                records.append((position, value))
                count -= 1
            position += 1
        return records, position

    def end(self, transaction: Transaction, *, commits: bool) -> None:
        self.open.remove(transaction)
        if not commits:
            self.aborted.add(transaction)
        else:
            self.offsets.update(transaction.offsets)


class Worker:
    """A client that enters values in transactions, or makes values of those of one partition."""

    def __init__(self, history: History, log: CorrectLog, random: Random, source: Partition | None) -> None:
        self._log, self._random, self._source = log, random, source
        self._client: Final[Client] = history.client(Promises.IDEMPOTENT)
        self._transaction: Transaction | None = None
        self._position = 0

    def step(self, value: int) -> None:
        """Do the next thing, and write at most this value."""
        if self._transaction is None:
            self._begin()
        elif len(self._transaction.sends) < 1 or self._random.random() < 0.6:
            targets = OUT if self._source is not None else IN + OUT
            partition = self._random.choice(targets)
            send = self._client.send(partition, value, transaction=self._transaction)
            send.succeed(self._log.append(partition, value, self._transaction))
        else:
            self._end(self._transaction)
            self._transaction = None

    def _begin(self) -> None:
        if self._source is None:
            self._transaction = self._client.begin()
        else:
            fetch = self._client.fetch_offsets("group")
            told = self._log.offsets.get(self._source)
            fetch.succeed({self._source: told})
            self._position = told or 0
            self._client.assign({self._source: self._position})
            records, after = self._log.read(self._source, self._position, self._random.randrange(1, 5))
            if not records:
                return
            self._transaction = self._client.begin()
            self._client.poll(transaction=self._transaction).succeed({self._source: records})
            self._transaction.send_offsets("group", {self._source: after})
        self._log.open.add(self._transaction)

    def _end(self, transaction: Transaction) -> None:
        fate = self._random.choice(
            ["committed"] * 4 + ["aborted", "unknown, committed", "unknown, aborted", "given up"]
        )
        if fate not in ("aborted", "given up"):
            transaction.commit()
        self._log.end(transaction, commits=fate.endswith("committed"))
        if fate == "committed":
            transaction.succeed()
        elif fate == "aborted":
            transaction.fail()


def simulate(seed: int, steps: int) -> History:
    """Let clients use a log whose transactions are correct, with answers that are lost."""
    random = Random(seed)
    history, log = History(), CorrectLog()
    workers = [Worker(history, log, random, source) for source in (None, None, *IN)]
    reader = history.client()
    places = dict.fromkeys(IN + OUT, 0)
    reader.assign(dict(places))
    for value in range(steps):
        random.choice(workers).step(value)
        if random.random() < 0.2:
            partition = random.choice(IN + OUT)
            records, places[partition] = log.read(partition, places[partition], 9)
            reader.poll().succeed({partition: records} if records else {})
    for transaction in list(log.open):
        log.end(transaction, commits=False)
    last = history.client()
    last.assign(dict.fromkeys(IN + OUT, 0))
    last.poll().succeed({partition: log.read(partition, 0, steps)[0] for partition in IN + OUT})
    fetch: FetchOffsets = last.fetch_offsets("group")
    fetch.succeed({partition: log.offsets.get(partition) for partition in IN})
    return history


@given(seeds, st.integers(0, 300))
@settings(deadline=None)
def test_correct_transactions_are_clean(seed: int, steps: int) -> None:
    report = check(simulate(seed, steps))
    assert report.is_clean, report


@pytest.mark.parametrize("kind", MUTATIONS, ids=lambda kind: kind.value)
@given(seed=seeds)
@settings(max_examples=15, deadline=None)
def test_what_is_done_to_a_history_is_found(kind: Kind, seed: int) -> None:
    history = simulate(seed, 400)
    with MUTATIONS[kind](list(history), Random(seed)):
        found = check(history).kinds
    assert kind in found or (kind is Kind.LOST and Kind.UNSEEN in found)
    assert check(history).is_clean


@pytest.mark.soak
def test_very_many_operations_are_checked(soak: Soak) -> None:
    for seed in soak.seeds():
        assert check(simulate(seed, 200_000)).is_clean
