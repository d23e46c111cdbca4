"""Snapshots that a member writes of the metadata that it follows, in another thread, and a disk that has no room."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.broker.member.observing import Observing
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.member.versions import ControllerVersions
from octavo.cluster.messages import Endpoint, FetchSnapshotAnswer, MetadataFetchAnswer, SnapshotId
from octavo.cluster.quorum import Apply, Observer
from octavo.log.directory.member_directory import open_member
from octavo.log.followed.own_snapshots import MetadataLimits
from octavo.log.storage import File, Storage
from tests.unit.log.followed.test_followed_metadata import batch, snapshot, topic

AT_ONCE: Final = MetadataLimits(metadata_log_max_record_bytes_between_snapshots=1)


class Disk(Storage):
    """A disk that has no room for snapshots, if it is told so."""

    is_full = False

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        """Open a file."""
        if self.is_full and ".checkpoint" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return super().open_to_write(path, create=create)


class Controllers:
    """They do not answer."""

    def ask(self, *arguments: Any, **options: Any) -> None:
        """Take a request."""

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        """Nothing."""


class Follower:
    """A member whose log has a topic that was applied."""

    def __init__(self, folder: Path) -> None:
        self.disk: Final = Disk()
        self.work: Final[list[Callable[[], None]]] = []  # for another thread
        self.calls: Final[list[Callable[[], None]]] = []  # for the reactor's
        self.errors: Final[list[OSError]] = []
        self.is_publishing = False
        self.directory: Final = open_member(
            folder, node_id=2, new_cluster_id=lambda: "c", broker_config={}, limits=AT_ONCE, storage=self.disk
        )
        self.metadata: Final = self.directory.metadata
        self.say: Callable[[str], object] = pytest.fail
        here = Surroundings(
            Controllers(), 2, self.calls.append, self.work.append, lambda it: self.say(it), lambda: 0, lambda: None
        )
        self.observing: Final = Observing(
            Observer([Endpoint("controller", 1)]),
            self.directory,
            here,
            ControllerVersions(),
            timeout_ms=2000,
            may_load=lambda: not self.is_publishing,
            apply=self._nothing,
            stop=pytest.fail,
            disk_failed=self.errors.append,
        )
        self.metadata.append(batch(0, *topic()), 1)
        self.metadata.apply(2)

    def _nothing(self, _: Apply) -> None:
        raise AssertionError("nobody calls this")

    def do(self, tasks: list[Callable[[], None]]) -> None:
        """Do what there is to do."""
        done = list(tasks)
        tasks.clear()
        for task in done:
            task()

    @property
    def snapshots(self) -> list[str]:
        """The names of the snapshots on the disk, whole or not."""
        return sorted(path.name for path in self.metadata.folder.iterdir() if ".checkpoint" in path.name)


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    """A member that follows."""
    made = Follower(tmp_path)
    yield made
    made.directory.close()


def test_a_snapshot_is_written_once_when_it_is_due(follower: Follower) -> None:
    follower.observing.poll(0)
    follower.observing.poll(1)  # one is under way
    assert len(follower.work) == 1
    follower.do(follower.work)
    follower.do(follower.calls)
    assert follower.snapshots == ["00000000000000000002-0000000001.checkpoint"]
    follower.observing.poll(2)
    assert not follower.work
    follower.metadata.append(batch(2, *topic(name="other", topic_id=follower.directory.directory_id)), 1)
    follower.metadata.apply(4)
    follower.observing.poll(3)
    assert len(follower.work) == 1
    assert not follower.errors


def test_a_snapshot_is_loaded_when_nothing_is_being_published(follower: Follower) -> None:
    """What is being published needs the metadata that it began with: a topic of theirs may be gone in the snapshot."""
    observing, before = follower.observing, follower.metadata.image
    observing.poll(0)
    follower.work.clear()
    newer, data = SnapshotId(9, 1), snapshot()
    observing._fetched(MetadataFetchAnswer(snapshot_id=newer))
    observing.poll(1000)
    follower.is_publishing = True
    observing._fetched_snapshot(FetchSnapshotAnswer(snapshot_id=newer, size=len(data), unaligned_records=data))
    observing.poll(2000)
    follower.do(follower.work)
    assert follower.metadata.image is before
    follower.is_publishing = False
    observing.poll(3000)
    follower.do(follower.work)
    follower.do(follower.calls)
    assert not observing.is_loading
    assert not follower.metadata.topics
    assert not follower.errors


def test_a_snapshot_that_was_damaged_on_its_way_is_fetched_again(follower: Follower) -> None:
    observing, before, said = follower.observing, follower.metadata.image, list[str]()
    follower.say = said.append
    observing.poll(0)
    follower.work.clear()
    newer, data = SnapshotId(9, 1), snapshot()
    for now_ms, sent in ((1000, data[:-1] + b"?"), (2000, bytes(100)), (20_000, data)):
        assert follower.metadata.image is before
        observing._fetched(MetadataFetchAnswer(snapshot_id=newer))
        observing.poll(now_ms)
        observing._fetched_snapshot(FetchSnapshotAnswer(snapshot_id=newer, size=len(sent), unaligned_records=sent))
        observing.poll(now_ms)
        follower.do(follower.work)
        follower.do(follower.calls)
        assert not [path for path in follower.metadata.folder.iterdir() if path.name.endswith(".part")]
    assert len(said) == 2
    assert "the snapshot of the metadata that a controller has sent cannot be read: " in said[0]
    assert follower.metadata.end_offset == 9
    assert not follower.errors


def test_a_disk_without_room_for_it_has_failed(follower: Follower) -> None:
    follower.disk.is_full = True
    follower.observing.poll(0)
    follower.do(follower.work)
    follower.do(follower.calls)
    assert [error.errno for error in follower.errors] == [errno.ENOSPC]
    assert follower.snapshots == []


def test_what_was_damaged_on_its_way_is_asked_for_again(follower: Follower) -> None:
    said: list[str] = []
    follower.say = said.append
    follower.observing.observer.leader_epoch = 1
    whole = batch(2, *topic(name="other", topic_id=follower.directory.directory_id))
    damaged = bytearray(whole)
    damaged[70] ^= 1
    for _ in range(2):
        follower.observing._fetched(MetadataFetchAnswer(records=bytes(damaged)))
    assert follower.metadata.end_offset == 2
    (sentence,) = said
    assert sentence.startswith("metadata are asked for again: ")
    assert "its checksum is not that of its bytes" in sentence
    assert follower.observing.observer.next_request(10_000) is not None
    follower.observing._fetched(MetadataFetchAnswer(records=whole))
    assert follower.metadata.end_offset == 4
    assert len(said) == 1
