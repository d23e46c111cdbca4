"""Seeded workloads of transactions over several partitions, with committed offsets, through the coordinator.

Each record says of which transaction it is; the position that a transaction commits is its number. So what is left
after a crash tells of each transaction whether it is committed, wherever something of it was written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from octavo.log import DataDirectory, Isolation, Log
from octavo.log.coordinator import Coordinator, OffsetAndMetadata, ProducerIdentity
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE, TopicPartition
from octavo.records import BatchBuilder
from tests.clock import Clock
from tests.crash.crashes import Cut
from tests.crash.model import Expectations, History, Key, Transaction
from tests.crash.opening import open_directory
from tests.crash.storage import CrashStorage, FastStorage
from tests.crash.workload import BACKGROUND

IDS: Final = ("x", "y")
GROUP: Final = "group"
KEYS: Final[tuple[Key, ...]] = (("a", 0), ("a", 1), ("b", 0))
_CONFIG: Final = {"internal.segment.bytes": "1500", "index.interval.bytes": "300", "file.delete.delay.ms": "0"}


def make_disk(folder: Path, _: int) -> None:
    """A directory with the topics in it, so that no crash is wasted on how they are made."""
    folder.mkdir()
    with DataDirectory.open(folder, storage=FastStorage(), clock=Clock()) as data:
        data.create_topic("a", 2, _CONFIG)
        data.create_topic("b", 1, _CONFIG)
        for transactional_id in IDS:
            data.coordinator.init_producer_id(transactional_id)
        data.coordinator.commit_offsets(GROUP, {TopicPartition("a", 0): OffsetAndMetadata(0)})


def position_of(transactional_id: str) -> TopicPartition:
    """Where the positions are kept that transactions of this id commit."""
    return TopicPartition("a", IDS.index(transactional_id))


class CoordinatorWorkload:
    """One run over one directory, by one process or by several, of which each goes on for a dead one."""

    def __init__(self, seed: int, folder: Path, storage: CrashStorage) -> None:
        self.random: Final = Random(seed)
        self.clock: Final = Clock()
        self.history: Final = History()
        self._folder = folder
        self._storage = storage
        self._now = Expectations()
        self._count = 0
        self._idents: dict[str, ProducerIdentity] = {}
        self._open: dict[str, int] = {}  # the transaction of each id that has one
        self.data = self._open_directory()

    @property
    def coordinator(self) -> Coordinator:
        return self.data.coordinator

    def run(self, steps: int) -> None:
        """Do so many things."""
        actions: list[tuple[Callable[[str], object], int]] = [
            (self.send, 50),
            (self.commit_offsets, 10),
            (self.commit, 18),
            (self.abort, 8),
            (self.begin_anew, 4),
            (self.roll, 4),
            (self.flush, 3),
            (self.compact, 3),
            (self.reopen, 2),
        ]
        for _ in range(steps):
            self.clock.now_ms += self.random.choice((0, 1, 5, 40))
            action = self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
            action(self.random.choice(IDS))
            if self.random.random() < BACKGROUND:
                self._storage.run_tasks()

    def close(self) -> None:
        """Come to an end in good order."""
        self.data.close()

    def revive(self) -> None:
        """Go on after the storage has stopped, as the process that is started next."""
        self._storage.restart()
        self.data = self._open_directory()
        self._idents.clear()
        self._open.clear()
        for transactional_id in IDS:
            self._ident(transactional_id)
        seen = seen_in(self.data)
        check_transactions(self.data, self._now, seen)
        for number, transaction in self._now.transactions.items():
            is_committed = is_visible(transaction, seen)
            if is_committed is not None:
                self._note(number, partial(_set, is_committed=is_committed))

    # ----------------------------------------------------------------------------------------------- what can be done

    def send(self, transactional_id: str) -> None:
        """One batch to one of the partitions."""
        ident = self._ident(transactional_id)
        number = self._number(transactional_id)
        key = self.random.choice(KEYS)
        self.coordinator.add_partitions(transactional_id, ident, [TopicPartition(*key)])
        self._count += 1
        value = b"%d %d" % (number, self._count)
        self._note(number, lambda one: one.sent.append((key, value)))
        log = self.data.log(*key)
        entry = log.producers.entries.get(ident.producer_id)
        is_known = entry is not None and entry.epoch == ident.epoch
        builder = BatchBuilder(
            producer_id=ident.producer_id,
            producer_epoch=ident.epoch,
            base_sequence=entry.last_sequence + 1 if entry is not None and is_known else 0,
            transactional=True,
        )
        builder.append(b"key", value, timestamp_ms=self.clock.now_ms)
        log.append(builder.build())

    def commit_offsets(self, transactional_id: str) -> None:
        """Of what it has consumed, so to speak."""
        ident = self._ident(transactional_id)
        number = self._number(transactional_id)
        offsets = {position_of(transactional_id): OffsetAndMetadata(number)}
        self.coordinator.commit_offsets(GROUP, offsets, transactional_id, ident)
        self._note(number, _has_offsets)

    def commit(self, transactional_id: str) -> None:
        """From the beginning of it to its end, a crash may leave it committed or not."""
        number = self._open.pop(transactional_id, None)
        if number is not None:
            self._note(number, lambda one: _set(one, None))
            self.coordinator.end_transaction(transactional_id, self._ident(transactional_id), commit=True)
            self._note(number, lambda one: _set(one, True))

    def abort(self, transactional_id: str) -> None:
        """It is as if it had never been committed."""
        if self._open.pop(transactional_id, None) is not None:
            self.coordinator.end_transaction(transactional_id, self._ident(transactional_id), commit=False)

    def begin_anew(self, transactional_id: str) -> None:
        """Another producer with the same id, as after a restart: what is open is aborted."""
        self._open.pop(transactional_id, None)
        self._idents.pop(transactional_id, None)
        self._ident(transactional_id)

    def roll(self, _: str) -> None:
        """Of any partition."""
        self._any_log().roll()

    def flush(self, _: str) -> None:
        """Of any partition."""
        self._any_log().flush()

    def compact(self, _: str) -> None:
        """What the coordinator keeps."""
        for name in (CONSUMER_OFFSETS, TRANSACTION_STATE):
            log = self.data.log(name, 0)
            log.roll()
            log.compact(self.clock.now_ms)

    def reopen(self, _: str) -> None:
        """Close all and open it again; what is open stays so until its producer begins anew."""
        self.data.close()
        self.data = self._open_directory()

    # ------------------------------------------------------------------------------------------------------ what for

    def _open_directory(self) -> DataDirectory:
        return DataDirectory.open(self._folder, storage=self._storage, clock=self.clock)

    def _any_log(self) -> Log:
        keys = (*KEYS, (CONSUMER_OFFSETS, 0), (TRANSACTION_STATE, 0))
        return self.data.log(*self.random.choice(keys))

    def _ident(self, transactional_id: str) -> ProducerIdentity:
        if transactional_id not in self._idents:
            self._idents[transactional_id] = self.coordinator.init_producer_id(transactional_id)
        return self._idents[transactional_id]

    def _number(self, transactional_id: str) -> int:
        """Of the transaction, which begins if there is none."""
        if transactional_id not in self._open:
            self._count += 1
            number = self._open[transactional_id] = self._count
            self._note_all(lambda all_: all_.transactions.update({number: Transaction(transactional_id)}))
        return self._open[transactional_id]

    def _note(self, number: int, event: Callable[[Transaction], object]) -> None:
        self._note_all(lambda all_: event(all_.transactions[number]))

    def _note_all(self, event: Callable[[Expectations], object]) -> None:
        event(self._now)
        self.history.note(len(self._storage.journal), event)


def _set(transaction: Transaction, is_committed: bool | None) -> None:
    transaction.is_committed = is_committed


def _has_offsets(transaction: Transaction) -> None:
    transaction.has_offsets = True


# -------------------------------------------------------------------------------------------------------- the verdict

Visible = dict[Key, list[bytes]]


def seen_in(data: DataDirectory) -> Visible:
    """What readers of committed data see in each partition."""
    return {
        key: [record.value or b"" for record in data.log(*key).reader(isolation=Isolation.READ_COMMITTED).records()]
        for key in KEYS
    }


def is_visible(transaction: Transaction, seen: Visible) -> bool | None:
    """Whether a transaction can be seen, all of it; None where it has sent nothing. Raises `AssertionError`."""
    there = [value in seen[key] for key, value in transaction.sent]
    assert all(there) or not any(there), f"a part of {transaction} can be seen: {there}"
    return there[0] if there else None


def check_transactions(data: DataDirectory, expected: Expectations, seen: Visible) -> None:
    """Each transaction is committed as a whole or not at all, as was told; with the positions that it committed."""
    positions: dict[str, int | None] = dict.fromkeys(IDS, 0)
    for number, transaction in sorted(expected.transactions.items()):
        found = is_visible(transaction, seen)
        if found is not None and transaction.is_committed is not None:
            assert found == transaction.is_committed, f"{number} {transaction}"
        if transaction.has_offsets:
            is_committed = transaction.is_committed if found is None else found
            if is_committed is None:  # it has sent nothing else, so that nothing else tells
                positions[transaction.transactional_id] = None
            elif is_committed:
                positions[transaction.transactional_id] = number
    for transactional_id, position in positions.items():
        partition = position_of(transactional_id)
        told = data.coordinator.committed(GROUP, [partition])[partition]
        if position is not None:
            assert (0 if told is None else told.offset) == position, f"{transactional_id}: {told}, not {position}"
    for key in KEYS:
        values = seen[key]
        assert len(set(values)) == len(values), f"{key}: something is there twice"


def judge(folder: Path, cut: Cut) -> None:
    """Open the directory, let producers begin anew, look at what there is, use it, close it, open it again."""
    storage, clock = FastStorage(), Clock(cut.clock.now_ms)
    with open_directory(folder, storage=storage, clock=clock) as data:
        for transactional_id in IDS:
            data.coordinator.init_producer_id(transactional_id)
        for key in KEYS:
            log = data.log(*key)
            assert log.last_stable_offset == log.end_offset, f"{key}: something is open, {log.producers.entries}"
        seen = seen_in(data)
        check_transactions(data, cut.expected, seen)
        _use(data, clock)
        after = seen_in(data)
        assert {key: values[:-1] for key, values in after.items()} == seen
    with DataDirectory.open(folder, storage=storage, clock=clock) as data:
        assert all(report.was_clean and report.is_unremarkable for report in data.reports)
        assert seen_in(data) == after


def _use(data: DataDirectory, clock: Clock) -> None:
    """A transaction over all partitions."""
    ident = data.coordinator.init_producer_id(IDS[0])
    data.coordinator.add_partitions(IDS[0], ident, [TopicPartition(*key) for key in KEYS])
    for key in KEYS:
        builder = BatchBuilder(
            producer_id=ident.producer_id, producer_epoch=ident.epoch, base_sequence=0, transactional=True
        )
        builder.append(b"key", b"after the crash", timestamp_ms=clock.now_ms)
        data.log(*key).append(builder.build())
    data.coordinator.end_transaction(IDS[0], ident, commit=True)
