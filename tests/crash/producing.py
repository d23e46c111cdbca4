"""Seeded workloads over one log with producers: idempotent and transactional ones, whose sendings are interleaved.

They commit, abort, leave transactions open, are fenced, and send again what they have sent before. Between that the log
rolls, is flushed, cut, deleted from, compacted, closed and opened again. After every step, what the log knows of its
producers is compared with what its batches tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import pytest

from octavo.errors import AppendRefused, ErrorCode
from octavo.log import Log, Recover
from octavo.log.config.broker_defaults import TopicConfig
from octavo.log.config.log_config import LogConfig
from octavo.log.directory.data_folder import DataFolder
from octavo.log.names import TopicPartition
from octavo.log.origin import Origin
from octavo.log.storage import Storage
from octavo.records import BatchBuilder
from octavo.records.control import end_transaction_marker
from octavo.records.layout import Codec
from tests.clock import Clock
from tests.crash.compacted import check_compacted
from tests.crash.knowledge import Line, check_knowledge, check_producers, check_stable
from tests.crash.model import Expectations, History, Key, Partition, Stored, Topic
from tests.crash.opening import open_both_ways
from tests.crash.storage import CrashStorage
from tests.crash.truth import SEQUENCES, read, tell
from tests.crash.workload import BACKGROUND, stored, unassigned

PARTITION: Final = TopicPartition("t", 0)
KEY: Final[Key] = ("t", 0)
DELETE_RETENTION_MS: Final = 400
_COMMON: Final = {"internal.segment.bytes": "1100", "index.interval.bytes": "200", "file.delete.delay.ms": "0"}
DELETED: Final = (
    _COMMON,
    _COMMON | {"internal.segment.bytes": "6000"},
    _COMMON | {"retention.bytes": "2500", "file.delete.delay.ms": "30"},
    _COMMON | {"retention.ms": "300", "flush.messages": "5"},
    _COMMON | {"preallocate": "true", "segment.ms": "150"},
)
_COMPACT: Final = _COMMON | {
    "cleanup.policy": "compact",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    "min.cleanable.dirty.ratio": "0",
}
COMPACTED: Final = (
    _COMPACT,
    _COMPACT | {"internal.segment.bytes": "2500", "file.delete.delay.ms": "30"},
    _COMPACT | {"internal.segment.bytes": "600", "index.interval.bytes": "0"},
    _COMPACT | {"cleanup.policy": "compact,delete", "retention.ms": "3000"},
    _COMPACT | {"min.compaction.lag.ms": "60"},
)
_FIRST_SEQUENCES: Final = (0, 0, 5, SEQUENCES - 4)
_CODECS: Final = (Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4)
_IDEMPOTENT: Final = (1, 2)
_TRANSACTIONAL: Final = (11, 12, 13)
_PLAIN: Final = -1


def open_log(folder: Path, storage: Storage, clock: Clock, config: Mapping[str, str]) -> DataFolder:
    """The folder of one log, which is made where there is none; after a crash in both ways."""
    return open_both_ways(lambda recover: _open_log(folder, storage, clock, config, recover), storage)


def _open_log(folder: Path, storage: Storage, clock: Clock, config: Mapping[str, str], recover: Recover) -> DataFolder:
    known = LogConfig.from_properties(config)
    data = DataFolder(folder, storage)
    data.recover = recover
    try:
        if PARTITION in data.partitions:
            data.check(PARTITION, may_have_gaps=known.is_compacted)
        data.begin()
        if PARTITION not in data.partitions:
            data.make_partitions([PARTITION])
        topic = TopicConfig(known, is_known=True, may_be_compacted=known.is_compacted)
        data.open_log(PARTITION, topic, clock=clock, on_progress=None)
    except BaseException:
        data.leave()
        raise
    return data


class Sender(NamedTuple):
    """Who sends a batch."""

    producer_id: int
    epoch: int
    sequence: int
    is_transactional: bool


class ProducerWorkload:
    """One run over one log, by one process or by several, of which each goes on for a dead one."""

    def __init__(self, seed: int, folder: Path, storage: CrashStorage, config: Mapping[str, str]) -> None:
        self.random: Final = Random(seed)
        self.clock: Final = Clock()
        self.history: Final = History()
        self.config: Final = config
        self._folder = folder
        self._storage = storage
        self._now = Expectations()
        self._count = self.random.randrange(1 << 30)  # makes every batch another
        self._leader_epoch = 0
        self._decided_to = 0  # what compaction goes by is before
        self._note_all(_begin(config))
        self.data = self._open()

    @property
    def log(self) -> Log:
        return self.data.logs[PARTITION]

    @property
    def partition(self) -> Partition:
        return self._now.partitions[KEY]

    @property
    def actions(self) -> list[tuple[Callable[[], object], int]]:
        """All that can be done, and how often it is."""
        return [
            (self.send, 45),
            (self.send_several, 5),
            (self.end_transaction, 16),
            (self.send_again, 6),
            (self.send_wrongly, 3),
            (self.send_as_follower, 4),
            (self.roll, 6),
            (self.flush, 6),
            (self.truncate, 5),
            (self.delete_records, 3),
            (self.apply_retention, 4),
            (self.log_delete_files, 3),
            (self.become_leader, 2),
            (self.write_checkpoints, 3),
            (self.reopen, 3),
        ]

    def run(self, steps: int) -> None:
        """Do so many things."""
        actions = self.actions
        for _ in range(steps):
            self.clock.now_ms += self.random.choice((0, 1, 5, 40))
            self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]()
            if self.random.random() < BACKGROUND:
                self._storage.run_tasks()
            self.look()

    def close(self) -> None:
        """Come to an end in good order."""
        self.data.close()

    def revive(self) -> None:
        """Go on after the storage has stopped, as the process that is started next."""
        self._storage.restart()
        self.data = self._open()
        log = self.log
        found, start, end = stored(log), log.start_offset, log.end_offset
        self.partition.check(found, start, end, power_cut=False)
        self._note(lambda partition: partition.recovered(found, start, end))
        self.look()

    # ------------------------------------------------------------------------------------------------------- senders

    def send(self) -> None:
        """One batch of some producer."""
        self._append([self._sender()])

    def send_several(self) -> None:
        """Of two producers at once."""
        one, other = self._sender(), self._sender()
        self._append([one, other] if one.producer_id != other.producer_id else [one])

    def send_again(self) -> None:
        """A batch that is in the log: nothing is appended, and the answer is where it is."""
        known = {producer_id: entry.batches for producer_id, entry in self.log.producers.entries.items()}
        batches = [batch for batches in known.values() for batch in batches]
        if not batches:
            return
        batch = self.random.choice(batches)
        again = next(one for one in self.partition.batches if one.next_offset == batch.last_offset + 1)
        done = self.log.append(unassigned(again.data), now_ms=self.clock.now_ms)
        assert done.is_duplicate
        assert (done.base_offset, done.last_offset) == (again.base_offset, again.next_offset - 1)

    def send_wrongly(self) -> None:
        """What does not follow, or comes from who was fenced, is refused."""
        entries = self.log.producers.entries
        if not entries:
            return
        producer_id = self.random.choice(sorted(entries))
        entry = entries[producer_id]
        wrong = Sender(producer_id, entry.epoch, (entry.last_sequence + 7) % SEQUENCES, producer_id in _TRANSACTIONAL)
        code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry.epoch and self.random.getrandbits(1):
            wrong, code = wrong._replace(epoch=entry.epoch - 1), ErrorCode.INVALID_PRODUCER_EPOCH
        with pytest.raises(AppendRefused) as refused:
            self.log.append(unassigned(self._batch(self.log.end_offset, wrong).data), now_ms=self.clock.now_ms)
        assert refused.value.code is code

    def send_as_follower(self) -> None:
        """What another leader took."""
        log = self.log
        sender = self._sender()
        batch = self._batch(log.end_offset, sender)
        self._note(lambda partition: partition.will_append([batch]))
        log.append_as_follower(batch.data)
        self._note(Partition.appended)

    def end_transaction(self) -> None:
        """Commit or abort; now and then of a producer that has nothing open, or has a successor."""
        open_ = [one for one, entry in self.log.producers.entries.items() if entry.txn_first_offset >= 0]
        if self.random.random() < 0.1:
            open_ = list(_TRANSACTIONAL)
        if not open_:
            return
        producer_id = self.random.choice(sorted(open_))
        epoch = max(0, self._go_on(producer_id).epoch) + (self.random.random() < 0.15)
        self._count += 1
        offset = self.log.end_offset
        data = end_transaction_marker(
            self.random.random() < 0.5,
            offset=offset,
            timestamp_ms=self.clock.now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=self._count,
            leader_epoch=self.log.leader_epoch,
        )
        self._do_append([Stored(offset, offset + 1, data)], Origin.COORDINATOR)

    def _append(self, senders: list[Sender]) -> None:
        offset = self.log.end_offset
        batches = []
        for sender in senders:
            batches.append(self._batch(offset, sender))
            offset = batches[-1].next_offset
        self._do_append(batches, Origin.CLIENT)

    def _do_append(self, batches: list[Stored], origin: Origin) -> None:
        self._note(lambda partition: partition.will_append(batches))
        data = b"".join(unassigned(batch.data) for batch in batches)
        done = self.log.append(data, origin=origin, now_ms=self.clock.now_ms)
        assert not done.is_duplicate
        assert (done.base_offset, done.last_offset) == (batches[0].base_offset, batches[-1].next_offset - 1)
        self._note(Partition.appended)

    def _sender(self) -> Sender:
        return self._go_on(self.random.choice((*_IDEMPOTENT, *_TRANSACTIONAL, *_TRANSACTIONAL, _PLAIN, _PLAIN)))

    def _go_on(self, producer_id: int) -> Sender:
        """What a producer has to send next, by what the log knows of it."""
        if producer_id == _PLAIN:
            return Sender(_PLAIN, -1, -1, False)
        is_transactional = producer_id in _TRANSACTIONAL
        entry = self.log.producers.entries.get(producer_id)
        if entry is None:
            return self._begin_again(producer_id, is_transactional=is_transactional)
        if entry.last_sequence < 0:
            return Sender(producer_id, entry.epoch + 1, 0, is_transactional)
        if entry.txn_first_offset < 0 and self.random.random() < 0.08:
            return Sender(producer_id, entry.epoch + 1, 0, is_transactional)
        return Sender(producer_id, entry.epoch, (entry.last_sequence + 1) % SEQUENCES, is_transactional)

    def _begin_again(self, producer_id: int, *, is_transactional: bool) -> Sender:
        """What a producer has to send that the log does not know, or no longer, since all that it sent is deleted."""
        known = tell(read(batch.data) for batch in self.partition.batches).producers.get(producer_id)
        if known is None:
            return Sender(producer_id, 0, self.random.choice(_FIRST_SEQUENCES), is_transactional)
        if known.last_sequence < 0:
            return Sender(producer_id, known.epoch + 1, 0, is_transactional)
        return Sender(producer_id, known.epoch, (known.last_sequence + 1) % SEQUENCES, is_transactional)

    def _batch(self, offset: int, sender: Sender) -> Stored:
        builder = BatchBuilder(
            base_offset=offset,
            leader_epoch=self.log.leader_epoch,
            codec=self.random.choice(_CODECS),
            producer_id=sender.producer_id,
            producer_epoch=sender.epoch,
            base_sequence=sender.sequence,
            transactional=sender.is_transactional,
        )
        for _ in range(self.random.choice((1, 1, 2, 4))):
            self._count += 1
            number = b"%d" % self._count
            value = number + bytes(self.random.choice((0, 20, 60)))
            key = b"key %d" % self.random.choice((0, 0, 1, 2, 3, 4, 5, 6, 7, self.random.randrange(40)))
            is_tombstone = self.random.random() < 0.25
            builder.append(
                key, None if is_tombstone else value, timestamp_ms=self.clock.now_ms, headers=[("number", number)]
            )
        return Stored(offset, builder.next_offset, bytes(builder.build()))

    # ------------------------------------------------------------------------------------------------------- the log

    def roll(self) -> None:
        """Begin a new segment; with a snapshot."""
        self.log.roll()

    def flush(self) -> None:
        """Everything is on the disk then."""
        self.log.flush()

    def truncate(self) -> None:
        """Mostly a little, mostly between two batches; never what has been compacted, nor what decided over it."""
        log, partition = self.log, self.partition
        lowest = max(log.start_offset, self._decided_to)
        ends = [batch.next_offset for batch in partition.batches if lowest <= batch.next_offset]
        if self.random.random() < 0.4:  # so that the last segment goes, and its snapshot
            ends = [end for end in ends if end < log.segments[-1].base_offset] or ends
        offset = self.random.choice(ends[-6:] or [log.end_offset])
        if self.random.random() < 0.15 and not log.config.is_compacted:
            offset = self.random.randint(max(0, log.start_offset - 3), log.end_offset)
        self._note(lambda partition: partition.will_truncate(offset))
        log.truncate_to(offset)
        self._note(Partition.truncated)

    def delete_records(self) -> None:
        """Move the start of the log."""
        if self.log.config.is_deleted:
            offset = self.random.randint(self.log.start_offset, self.log.high_watermark)
            self._note(lambda partition: partition.will_start_at(offset))
            self.log.delete_records_before(offset)
            self._note(lambda partition: partition.started_at(offset))

    def apply_retention(self) -> None:
        """By whatever policies the topic has."""
        end = self.log.high_watermark
        self._note(lambda partition: partition.will_start_at(end))
        self.log.apply_retention(self.clock.now_ms)
        start = self.log.start_offset
        self._note(lambda partition: partition.started_at(start))

    def log_delete_files(self) -> None:
        """Those whose time has come."""
        self.log.delete_files(self.clock.now_ms)

    def become_leader(self) -> None:
        """Of the next epoch."""
        self._leader_epoch = self.log.leader_epoch + 1
        self.log.become_leader(self._leader_epoch)

    def write_checkpoints(self) -> None:
        """As is done every minute."""
        self.data.write_checkpoints()

    def reopen(self) -> None:
        """Close all and open it again: nothing can be lost any more."""
        self.data.close()
        self._note(Partition.closed)
        self.data = self._open()
        end = self.log.end_offset
        self._note(lambda partition: partition.reopened(end))

    # ------------------------------------------------------------------------------------------------------ what for

    def look(self) -> None:
        """What the log says of itself, after every step."""
        log, known = self.log, self.partition
        recovery_point = log.recovery_point
        if recovery_point > known.synced_to:
            self._note(lambda partition: partition.synced(recovery_point))
        assert (log.start_offset, log.end_offset) == (known.start_to, known.end)
        found = [batch for batch in known.batches if batch.next_offset > log.start_offset]
        check_producers(log.producers.entries, Line.of(known.batches, found), is_cleaned=known.cleaned_to > 0)
        check_stable(log)

    def _open(self) -> DataFolder:
        data = open_log(self._folder, self._storage, self.clock, self.config)
        if data.logs[PARTITION].leader_epoch < self._leader_epoch:  # of a log that was cut to nothing; the leader knows
            data.logs[PARTITION].become_leader(self._leader_epoch)
        return data

    def _note(self, event: Callable[[Partition], object]) -> None:
        self._note_all(lambda all_: event(all_.partitions[KEY]))

    def _note_all(self, event: Callable[[Expectations], object]) -> None:
        event(self._now)
        self.history.note(len(self._storage.journal), event)


def _begin(config: Mapping[str, str]) -> Callable[[Expectations], None]:
    def begin(all_: Expectations) -> None:
        all_.topics["t"] = Topic(1, config, True)
        all_.partitions[KEY] = Partition()

    return begin


class CompactedWorkload(ProducerWorkload):
    """One run over one log that is compacted, in several rounds, between which the clock goes on."""

    @property
    def actions(self) -> list[tuple[Callable[[], object], int]]:
        return [*super().actions, (self.roll, 6), (self.compact, 14)]

    def compact(self) -> None:
        """Now and then so much later that tombstones go, or with a map that is too small for all keys."""
        if self.random.random() < 0.4:
            self.clock.now_ms += DELETE_RETENTION_MS + 1
        log = self.log
        bound = log.segments[-1].base_offset
        self._decided_to = log.end_offset
        self._note(lambda partition: partition.will_clean(bound))
        memory = self.random.choice((1 << 20, 1 << 20, 24 * 6))
        log.compact(self.clock.now_ms, map_memory=memory, on_progress=self._meanwhile)
        self.look_through()

    def _meanwhile(self, _: object) -> None:
        """Appends go on while a log is compacted."""
        if self.random.random() < 0.2:
            self.random.choice((self.send, self.end_transaction))()

    def look_through(self) -> None:
        """What is left of the log after it was compacted."""
        known = self.partition
        line = Line.of(known.batches, stored(self.log))
        check_knowledge(self.log, line, self.random, is_cleaned=True)
        check_compacted(line, known.cleaned_to, self.log.start_offset, self.log.last_stable_offset)
