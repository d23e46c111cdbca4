"""Seeded workloads: some partitions of a directory, and all that can be done to them, in any order.

workload = Workload(seed, folder, storage)
workload.run(steps)                     # the directory stays open
workload.history.replay()               # what to expect of a crash at any operation of the storage
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from octavo.log import Background, DataDirectory, Isolation, Log
from octavo.log.reading.readable_log import ReadableLog
from octavo.records import BatchBuilder, read_batches
from octavo.records.layout import Codec
from tests.clock import Clock
from tests.crash.model import Expectations, History, Key, Partition, Stored, Topic
from tests.crash.storage import CrashStorage

# Everything small, so that much happens in few operations.
_COMMON: Final = {"internal.segment.bytes": "900", "index.interval.bytes": "150", "segment.index.bytes": "120"}
CONFIGS: Final = (
    _COMMON | {"file.delete.delay.ms": "0"},
    _COMMON | {"flush.messages": "7"},
    _COMMON | {"preallocate": "true", "file.delete.delay.ms": "50"},
    _COMMON | {"segment.ms": "120", "segment.jitter.ms": "30", "file.delete.delay.ms": "0"},
    _COMMON | {"retention.bytes": "1500", "internal.segment.bytes": "700", "file.delete.delay.ms": "20"},
    _COMMON | {"retention.ms": "200", "message.timestamp.after.max.ms": "9223372036854775807"},
    _COMMON | {"internal.segment.bytes": "5000", "index.interval.bytes": "0", "segment.index.bytes": "10000"},
)
BACKGROUND: Final = 0.3  # how often the background has its turn after a step
_CODECS: Final = (Codec.NONE, Codec.NONE, Codec.NONE, Codec.NONE, Codec.LZ4)


class Workload:
    """One run over one directory, by one process or by several, of which each goes on for a dead one."""

    def __init__(self, seed: int, folder: Path, storage: CrashStorage) -> None:
        self.random: Final = Random(seed)
        self.clock: Final = Clock()
        self.history: Final = History()
        self._folder = folder
        self._storage = storage
        self._now = Expectations()  # what the logs are, when nothing happens to them
        self._epochs: dict[Key, int] = {}  # the latest of each partition, whoever led then
        self._sequence = self.random.randrange(1 << 30)  # makes every batch another
        self.directory = self._open()

    def close(self) -> None:
        """Come to an end in good order."""
        self.directory.close()

    def revive(self) -> None:
        """Go on after the storage has stopped, as the process that is started next."""
        self._storage.restart()
        self.directory = self._open()
        for name, topic in sorted(self._now.topics.items()):
            exists = name in self.directory.topics
            assert topic.exists in (None, exists)
            if exists and self.directory.topics[name].config == topic.new_config:
                topic = topic._replace(config=topic.new_config, new_config=topic.config)
            self._note_topic(name, topic._replace(exists=exists))
            for number in range(topic.partitions):
                self._revive_partition((name, number), exists)

    def _revive_partition(self, key: Key, exists: bool) -> None:
        if not exists:
            self._note_all(partial(_remove_partition, key=key))
            return
        log = self.directory.log(*key)
        found, start, end = stored(log), log.start_offset, log.end_offset
        known = self._now.partitions.get(key, Partition())
        known.check(found, start, end, power_cut=False)
        self._note_all(lambda all_: all_.partitions.setdefault(key, Partition()).recovered(found, start, end))

    def run(self, steps: int) -> None:
        """Do so many things."""
        if not self._now.topics:
            self.create_topic()
        actions: list[tuple[Callable[[Key, Log], object], int]] = [
            (self.append, 50),
            (self.append_as_follower, 8),
            (self.roll, 4),
            (self.flush, 6),
            (self.truncate, 6),
            (self.truncate_to_epoch, 2),
            (self.restart, 1),
            (self.delete_records, 6),
            (self.apply_retention, 6),
            (self.delete_files, 6),
            (self.become_leader, 4),
            (self.set_config, 2),
            (self.run_background, 3),
            (self.write_checkpoints, 2),
            (self.reopen, 2),
            (self.change_topics, 2),
        ]
        for _ in range(steps):
            self.clock.now_ms += self.random.choice((0, 1, 5, 40))
            key = self.random.choice(sorted(self._now.partitions))
            action = self.random.choices([one for one, _ in actions], [weight for _, weight in actions])[0]
            action(key, self.directory.log(*key))
            if self.random.random() < BACKGROUND:
                self._storage.run_tasks()
            for each in self._now.partitions:
                self._look(each)

    # ------------------------------------------------------------------------------------------ what can be done

    def append(self, key: Key, log: Log) -> None:
        """As a leader, one batch or a few."""
        if self._epochs.get(key, 0) > log.leader_epoch:  # it followed another leader since
            self.become_leader(key, log)
        batches = self._batches(log, log.leader_epoch)
        self._note(key, lambda partition: partition.will_append(batches))
        done = log.append(b"".join(unassigned(batch.data) for batch in batches))
        assert (done.base_offset, done.last_offset) == (batches[0].base_offset, batches[-1].next_offset - 1)
        self._note(key, Partition.appended)

    def append_as_follower(self, key: Key, log: Log) -> None:
        """Batches that have their offsets, and the leader's epoch."""
        epoch = max(log.leader_epoch, self._epochs.get(key, 0)) + self.random.choice((0, 0, 1))
        batches = self._batches(log, epoch)
        self._epochs[key] = epoch
        self._note(key, lambda partition: partition.will_append(batches))
        log.append_as_follower(b"".join(batch.data for batch in batches))
        self._note(key, Partition.appended)

    def roll(self, key: Key, log: Log) -> None:
        """Begin a new segment."""
        log.roll()

    def flush(self, key: Key, log: Log) -> None:
        """Everything is on the disk then."""
        log.flush()
        assert log.recovery_point == log.end_offset

    def truncate(self, key: Key, log: Log) -> None:
        """Mostly a little, mostly between two batches."""
        known = self._now.partitions[key]
        ends = [batch.next_offset for batch in known.batches if log.start_offset <= batch.next_offset]
        offset = self.random.choice(ends[-6:] or [log.end_offset])
        if self.random.random() < 0.2:
            offset = self.random.randint(max(0, log.start_offset - 5), log.end_offset)
        self._note(key, lambda partition: partition.will_truncate(offset))
        log.truncate_to(offset)
        self._note(key, Partition.truncated)
        assert log.end_offset == offset

    def truncate_to_epoch(self, key: Key, log: Log) -> None:
        """A leader says where one of the epochs ends."""
        if not log.epochs:
            return
        number = self.random.randrange(len(log.epochs))
        epoch, first = log.epochs[number]
        own_end = log.epochs[number + 1].start_offset if number + 1 < len(log.epochs) else log.end_offset
        offset = self.random.randint(max(first, own_end - 3), own_end)
        self._note(key, lambda partition: partition.will_truncate(offset))
        assert log.truncate_to_epoch(epoch, offset) == offset
        self._note(key, Partition.truncated)

    def restart(self, key: Key, log: Log) -> None:
        """Empty the log, mostly because the leader's begins later."""
        offset = log.end_offset + self.random.randint(0, 40)
        if self.random.random() < 0.3:
            offset = self.random.randint(0, log.end_offset)
        self._note(key, lambda partition: partition.will_restart(offset))
        log.restart_at(offset)
        self._note(key, Partition.restarted)
        assert log.high_watermark == log.end_offset == offset

    def delete_records(self, key: Key, log: Log) -> None:
        """Move the start of the log."""
        offset = self.random.randint(log.start_offset, log.high_watermark)
        self._note(key, lambda partition: partition.will_start_at(offset))
        log.delete_records_before(offset)
        self._note(key, lambda partition: partition.started_at(offset))

    def apply_retention(self, key: Key, log: Log) -> None:
        """By whatever policies the topic has."""
        end = log.high_watermark
        self._note(key, lambda partition: partition.will_start_at(end))
        log.apply_retention(self.clock.now_ms)
        start = log.start_offset
        self._note(key, lambda partition: partition.started_at(start))

    def delete_files(self, key: Key, log: Log) -> None:
        """Those whose time has come."""
        log.delete_files(self.clock.now_ms)

    def become_leader(self, key: Key, log: Log) -> None:
        """Of the next epoch."""
        self._epochs[key] = max(log.leader_epoch, self._epochs.get(key, 0)) + 1
        log.become_leader(self._epochs[key])

    def set_config(self, key: Key, log: Log) -> None:
        """Give a topic another configuration."""
        topic = self._now.topics[key[0]]
        new = self.random.choice(CONFIGS)
        self._note_topic(key[0], topic._replace(new_config=new))
        self.directory.set_config(key[0], {**dict.fromkeys(topic.config), **new})
        self._note_topic(key[0], topic._replace(config=new))

    def run_background(self, key: Key, log: Log) -> None:
        """All that is due, of all partitions."""
        for each in self._now.partitions:
            end = self.directory.log(*each).high_watermark
            self._note(each, partial(Partition.will_start_at, offset=end))
        done = Background(self.directory, clock=self.clock, initial_delay_ms=0).run_once()
        assert not done.failed
        for each in self._now.partitions:
            start = self.directory.log(*each).start_offset
            self._note(each, partial(Partition.started_at, offset=start))

    def write_checkpoints(self, key: Key, log: Log) -> None:
        """As is done every minute."""
        self.directory.write_checkpoints()

    def reopen(self, key: Key, log: Log) -> None:
        """Close all and open it again: nothing can be lost any more."""
        self.directory.close()
        for each in self._now.partitions:
            self._note(each, Partition.closed)
        self.directory = self._open()
        for each in self._now.partitions:
            end = self.directory.log(*each).end_offset
            self._note(each, partial(Partition.reopened, end=end))

    def change_topics(self, key: Key, log: Log) -> None:
        """Create one, or delete one where there are enough."""
        if len(self._now.partitions) < 4:
            self.create_topic()
        else:
            self._delete_topic(key[0])

    def create_topic(self) -> None:
        """With one or two partitions."""
        self._sequence += 1
        name, partitions = f"t{self._sequence}", self.random.choice((1, 2))
        topic = Topic(partitions, self.random.choice(CONFIGS), None)
        self._note_topic(name, topic)
        self.directory.create_topic(name, partitions, topic.config)
        self._note_topic(name, topic._replace(exists=True))
        for number in range(partitions):
            self._note_all(partial(_add_partition, key=(name, number)))

    def _delete_topic(self, name: str) -> None:
        topic = self._now.topics[name]
        self._note_topic(name, topic._replace(exists=None))
        self.directory.delete_topic(name)
        self._note_topic(name, topic._replace(exists=False))
        for number in range(topic.partitions):
            self._note_all(partial(_remove_partition, key=(name, number)))

    # ------------------------------------------------------------------------------------------------------ what for

    def _open(self) -> DataDirectory:
        return DataDirectory.open(paths(self._folder), storage=self._storage, clock=self.clock)

    def _look(self, key: Key) -> None:
        """What the log says of itself, after every step."""
        log = self.directory.log(*key)
        known = self._now.partitions[key]
        recovery_point = log.recovery_point
        if recovery_point > known.synced_to:
            self._note(key, lambda partition: partition.synced(recovery_point))
        expected = (known.start_to, known.end)
        assert (log.start_offset, log.end_offset) == expected, f"{key} goes {log.start_offset} to {log.end_offset}"
        assert recovery_point <= log.end_offset

    def _note(self, key: Key, event: Callable[[Partition], object]) -> None:
        self._note_all(lambda all_: event(all_.partitions[key]))

    def _note_topic(self, name: str, topic: Topic) -> None:
        self._note_all(lambda all_: all_.topics.update({name: topic}))

    def _note_all(self, event: Callable[[Expectations], object]) -> None:
        event(self._now)
        self.history.note(len(self._storage.journal), event)

    def _batches(self, log: Log, epoch: int) -> list[Stored]:
        """One or a few batches, as they will lie in the log."""
        offset = log.end_offset
        batches = []
        for _ in range(self.random.choice((1, 1, 1, 2, 3))):
            builder = BatchBuilder(base_offset=offset, leader_epoch=epoch, codec=self.random.choice(_CODECS))
            for _ in range(self.random.choice((1, 1, 2, 5))):
                self._sequence += 1
                value = self.random.randbytes(self.random.choice((0, 10, 40, 90)))
                when_ms = self.clock.now_ms - self.random.choice((0, 0, 0, 30))
                builder.append(b"%d" % self._sequence, value, timestamp_ms=when_ms)
            batches.append(Stored(offset, builder.next_offset, bytes(builder.build())))
            offset = builder.next_offset
        return batches


def _add_partition(all_: Expectations, key: Key) -> None:
    all_.partitions.setdefault(key, Partition())


def _remove_partition(all_: Expectations, key: Key) -> None:
    all_.partitions.pop(key, None)


def unassigned(data: bytes) -> bytes:
    """The batch as a producer sends it: offsets from 0, and no epoch."""
    return bytes(8) + data[8:12] + b"\xff\xff\xff\xff" + data[16:]


def paths(folder: Path) -> list[Path]:
    """The folders of a directory: on several disks, if there are such, or all in one."""
    return sorted(folder.glob("disk?")) or [folder]


def stored(log: ReadableLog) -> list[Stored]:
    """All that is in a log, by reading it."""
    batches: list[Stored] = []
    offset = log.start_offset
    while data := bytes(log.read(offset, 1 << 20, isolation=Isolation.LOG_END).records):
        batches += (Stored(batch.base_offset, batch.next_offset, bytes(batch.data)) for batch in read_batches(data))
        offset = batches[-1].next_offset
    return batches
