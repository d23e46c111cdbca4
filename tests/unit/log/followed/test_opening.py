"""Metadata on the disk of a member that are damaged: they are set aside, and fetched anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from octavo.errors import BadDirectory, CorruptFile
from octavo.log.clock import wall_clock_ms
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.followed.opening import open_followed
from octavo.log.followed.own_snapshots import MetadataLimits
from octavo.log.metadata.cluster_log import FOLDER, SnapshotId
from octavo.log.names import AsideFolder
from octavo.log.ownership.owner import Owner
from octavo.log.storage import DISK
from tests.unit.log.followed.test_followed_metadata import OTHERS, batch, snapshot, topic

SNAPSHOT = SnapshotId(2, 3)


def _open(folder: Path, said: list[str]) -> FollowedMetadata:
    return open_followed(
        folder,
        Owner(folder),
        storage=DISK,
        clock=wall_clock_ms,
        limits=MetadataLimits(),
        on_damage=said.append,
    )


def _aside(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if AsideFolder.parse(path.name)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A snapshot, records that follow it, and an epoch."""
    made = tmp_path / "data"
    (made / FOLDER).mkdir(parents=True)
    (made / FOLDER / SNAPSHOT.file_name).write_bytes(snapshot(*topic()))
    metadata = FollowedMetadata(made)
    metadata.append(batch(2, *topic(OTHERS, "others"), epoch=3), 3)
    metadata.keep_leader(5, 1)
    metadata.close()
    return made


def test_a_damaged_snapshot_is_set_aside_with_all_that_belongs_to_it(folder: Path) -> None:
    path = folder / FOLDER / SNAPSHOT.file_name
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    before = {each.name: each.read_bytes() for each in (folder / FOLDER).iterdir()}
    said: list[str] = []
    metadata = _open(folder, said)
    assert (metadata.end_offset, metadata.last_epoch, set(metadata.topics)) == (0, 0, set())
    assert metadata.leader_epoch == 5  # which only grows
    [aside] = _aside(folder)
    kept = {each.name: each.read_bytes() for each in aside.iterdir()}
    assert before.items() <= kept.items()
    assert len(said) == 1
    assert str(aside) in said[0]
    metadata.close()
    assert FollowedMetadata(folder).leader_epoch == 5


def test_no_damage_of_one_byte_stops_a_member(folder: Path, tmp_path: Path) -> None:
    for path in sorted((folder / FOLDER).iterdir()):
        content = path.read_bytes()
        for position in range(0, len(content), 1 + len(content) // 40):
            damaged = tmp_path / f"{path.name}-{position}"
            shutil.copytree(folder, damaged)
            changed = bytearray(content)
            changed[position] ^= 0x41
            (damaged / FOLDER / path.name).write_bytes(changed)
            said: list[str] = []
            _open(damaged, said).close()
            assert len(said) == len(_aside(damaged)) <= 1
            shutil.rmtree(damaged)


def test_damage_that_returns_does_not_fill_the_disk(folder: Path) -> None:
    said: list[str] = []
    for _ in range(3):
        (folder / FOLDER / "quorum-state").write_bytes(b"{")
        _open(folder, said).close()
    (folder / FOLDER / "quorum-state").write_bytes(b"{")
    with pytest.raises(BadDirectory, match="damaged again, and 3 damaged copies"):
        _open(folder, said)
    assert len(said) == len(_aside(folder)) == 3


def test_a_node_that_has_voted_does_not_begin_anew(folder: Path) -> None:
    """Others may count on what it has promised."""
    (folder / FOLDER / SNAPSHOT.file_name).write_bytes(b"")
    (folder / FOLDER / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":5,"votedId":2,"data_version":1}')
    with pytest.raises(CorruptFile):
        _open(folder, [])
    assert not _aside(folder)
