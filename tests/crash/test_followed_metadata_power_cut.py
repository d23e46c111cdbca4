"""The power goes off while a node follows the metadata of its controllers.

What is left is a prefix of what it had, at that moment or before something was cut. The epoch that it knew never falls.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

import pytest

from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.followed.own_snapshots import MetadataLimits, snapshot_batches
from octavo.log.metadata.cluster_log import SnapshotId
from octavo.log.metadata.image import Image
from octavo.log.storage import Storage
from octavo.records import BatchBuilder
from octavo.schemas.metadata.serde import write_metadata
from octavo.schemas.metadata.topics import TopicRecord
from tests.clock import Clock
from tests.crash.disk import ANY_NAMES, POWER_CUTS, PROCESS_DIED, write_image
from tests.crash.storage import CrashStorage, FastStorage
from tests.soak.plugin import Soak

WAYS: Final = (PROCESS_DIED, *POWER_CUTS[::3], *ANY_NAMES[:2])
STEPS: Final = 40
LIMITS: Final = MetadataLimits(
    metadata_log_segment_bytes=1500,
    metadata_log_max_record_bytes_between_snapshots=1,
    metadata_max_retention_bytes=3000,
)


class Moment(NamedTuple):
    """What was so when an operation of the disk was over."""

    operations: int
    log: tuple[str, ...]  # the topics, one for each offset
    epoch: int


class Following:
    """A node that follows controllers whose log is made up: a topic at each offset."""

    def __init__(self, folder: Path, storage: CrashStorage, seed: int) -> None:
        self.storage: Final = storage
        self.random: Final = Random(seed)
        self.metadata: Final = open_metadata(folder, storage)
        self.log: list[str] = []  # what the leader has
        self.committed = 0
        self.epoch = 1
        self.number = 0
        self.moments: Final = [Moment(0, (), 0)]
        self.metadata.keep_leader(1, 1)
        self._note()

    def _note(self) -> None:
        self.moments.append(Moment(len(self.storage.journal), tuple(self.log), self.epoch))

    def run(self, steps: int) -> None:
        """Do things at random."""
        for _ in range(steps):
            self.random.choice([self._append, self._append, self._apply, self._elect, self._snapshot, self._load])()
            self._note()
            if self.random.random() < 0.3:
                self.storage.run_tasks()

    def _append(self) -> None:
        for _ in range(self.random.randint(1, 4)):
            names = self._new_names()
            batch = make_batch(self.metadata.end_offset, names, self.epoch)
            self.log += names
            self._note()  # before it is done: it may be half done
            self.metadata.append(batch, self.epoch)

    def _apply(self) -> None:
        self.committed = self.random.randint(self.committed, len(self.log))
        self.metadata.apply(self.committed)
        self.committed = self.metadata.applied_offset + 1

    def _elect(self) -> None:
        """Have another leader, who lacks some of what is not committed."""
        epoch = self.epoch
        self.epoch += 1
        self.metadata.keep_leader(self.epoch, 1 + self.epoch % 3)
        self._note()
        keep = self.random.choice([self.committed, len(self.log)])
        if keep < len(self.log):
            self.metadata.truncate(epoch, keep)
            self.log = self.log[: self.metadata.end_offset]

    def _snapshot(self) -> None:
        self._apply()
        if self.metadata.snapshot_is_due:
            self.metadata.write_own_snapshot()

    def _load(self) -> None:
        """Come back after so long that the leader has a snapshot only."""
        if self.random.random() < 0.5:
            return
        self.epoch += 1  # another leader, who may lack what is not committed
        self.metadata.keep_leader(self.epoch, 1)
        self._note()
        self.log = [*self.log[: self.committed], *self._new_names()]
        taken = SnapshotId(len(self.log), self.epoch)
        self._note()
        image = Image()
        for name in self.log:
            image.replay(topic(name))
        position = 0
        for batch in snapshot_batches(image, self.epoch, timestamp_ms=0, now_ms=0):
            self.metadata.write_snapshot(taken, position, batch)
            position += len(batch)
        self.metadata.load_snapshot(taken)
        self.committed = len(self.log)
        self.metadata.apply(self.committed)

    def _new_names(self) -> list[str]:
        self.number += 1
        return [f"topic-{self.number}-{each}" for each in range(self.random.randint(1, 8))]


def open_metadata(folder: Path, storage: Storage) -> FollowedMetadata:
    """Open metadata whose segments are small."""
    return FollowedMetadata(folder, storage=storage, clock=Clock(), limits=LIMITS)


def topic(name: str) -> TopicRecord:
    """The record of a new topic."""
    return TopicRecord(name=name, topic_id=UUID(bytes=name.encode().rjust(16, b"-")))


def make_batch(offset: int, names: list[str], epoch: int) -> bytes:
    """A batch of topics."""
    builder = BatchBuilder(base_offset=offset, leader_epoch=epoch)
    for name in names:
        builder.append(None, write_metadata(topic(name)), timestamp_ms=0)
    return builder.build()


def judge(folder: Path, moments: list[Moment], operations: int) -> int:
    """Check what a crash at an operation has left. Returns how far the log goes."""
    metadata = open_metadata(folder, FastStorage())
    done = [moment for moment in moments if moment.operations <= operations]
    assert metadata.leader_epoch >= done[-1].epoch
    possible = {moment.log[: metadata.end_offset] for moment in moments[: len(done) + 1]}
    assert sorted(metadata.topics) in [sorted(log) for log in possible if len(log) == metadata.end_offset]
    metadata.keep_leader(metadata.leader_epoch + 1, 1)
    metadata.append(make_batch(metadata.end_offset, ["more"], metadata.leader_epoch), metadata.leader_epoch)
    metadata.apply(metadata.end_offset)
    end, topics = metadata.end_offset, set(metadata.topics)
    metadata.close()
    again = open_metadata(folder, FastStorage())
    assert (again.end_offset, set(again.topics)) == (end, topics)
    assert "more" in topics
    again.close()
    return end


def crash(folder: Path, seed: int, *, every: int, steps: int = STEPS) -> set[int]:
    """Crash at every so many operations, in every way. Returns where the logs ended."""
    (folder / "disk").mkdir()
    storage = CrashStorage(folder / "disk")
    following = Following(storage.folder, storage, seed)
    following.run(steps)
    ends = set()
    for number, disk in storage.crash_points():
        if (number + seed) % every:
            continue
        for way, survival in enumerate(WAYS):
            image = folder / f"{number}-{way}"
            write_image(disk.image(survival, Random(number)), image)
            try:
                ends.add(judge(image, following.moments, number))
            except BaseException as error:
                error.add_note(f"seed {seed}, operation {number}, {survival}")
                raise
    return ends


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_is_a_prefix(folder: Path, seed: int) -> None:
    assert len(crash(folder, seed, every=17)) > 10


@pytest.mark.soak
def test_what_is_left_is_a_prefix_at_every_crash(folder: Path, soak: Soak) -> None:
    for seed in soak.seeds():
        place = folder / str(seed)
        place.mkdir()
        assert len(crash(place, seed, every=20)) > 1
        shutil.rmtree(place)
