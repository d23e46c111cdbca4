"""Where staged files are, what they are called, and which of them are removed."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from octavo.errors import Closed, InvalidInput
from octavo.log import CommitIdentity, DataDirectory, StagedWriter, StagingArea
from octavo.log.staging.area import LEFTOVER_MS, MAX_APPLICATION
from tests.unit.log.staging.staged import ONE, TOPIC, TOPICS, area_of, batches, commit, stage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def names(area: StagingArea) -> set[str]:
    return {path.name for path in area.folder.iterdir()}


def test_the_folder_is_beside_the_directory(folder: Path, tmp_path: Path) -> None:
    area = area_of(folder)
    assert area.folder == tmp_path / ".data.staging"
    assert not area.folder.exists()
    assert pickle.loads(pickle.dumps(area)) == area
    assert StagingArea.of([folder, tmp_path / "b"]).folder == area.folder


def test_the_folder_is_never_inside_a_data_directory(folder: Path, tmp_path: Path) -> None:
    commit(folder, {ONE: batches(1)})
    (tmp_path / "link").symlink_to(folder)
    for inside in (folder, folder / "staging", folder / ONE.folder, tmp_path / "link" / "staging"):
        with pytest.raises(InvalidInput, match="inside a data directory"):
            StagingArea.of(tmp_path / "another", folder=inside)
        with pytest.raises(InvalidInput, match="inside a data directory"):
            StagingArea.of(folder, folder=inside)
    assert StagingArea.of(tmp_path / "link").folder == area_of(folder).folder


@pytest.mark.parametrize(
    ("application", "version"),
    [("", 0), ("a" * (MAX_APPLICATION + 1), 0), ("\ud800", 0), ("a", -1), ("a", 1 << 63)],
)
def test_identities_have_limits(application: str, version: int) -> None:
    with pytest.raises(InvalidInput):
        CommitIdentity(application, version)


def test_every_attempt_has_a_file_of_its_own(folder: Path) -> None:
    area = area_of(folder)
    files = stage(area, {ONE: batches(1)}, {ONE: batches(1)})
    assert len({file.name for file in files}) == 2
    assert names(area) == {file.name for file in files}


def test_a_task_can_discard_its_file(folder: Path) -> None:
    area = area_of(folder)
    for is_finished in (False, True):
        writer = StagedWriter(area)
        writer.add(TOPIC, 0, batches(1, 2))
        if is_finished:
            writer.finish()
        writer.discard()
        writer.discard()
        assert names(area) == set()
        with pytest.raises(Closed):
            writer.add(TOPIC, 0, batches(3))
    StagedWriter(area).discard()


def test_a_partition_that_cannot_be_is_refused_at_once(folder: Path) -> None:
    for topic, partition in (("../victim", 0), (TOPIC, -1), ("", 0)):
        with pytest.raises(InvalidInput):
            StagedWriter(area_of(folder)).add(topic, partition, b"")


def test_a_commit_removes_what_its_application_left_and_what_others_left_long_ago(folder: Path) -> None:
    def leave(application: str | None, version: int, days: float = 0.0, of: Path = folder) -> str:
        area = area_of(of, application, version)
        place = StagingArea(area_of(folder).folder, area.directory, area.owner, area.identity)
        [file] = stage(place, {ONE: batches(1)})
        then = (place.folder / file.name).stat().st_mtime - days * LEFTOVER_MS / 1000
        os.utime(place.folder / file.name, (then, then))
        return file.name

    gone = {leave("query", 4), leave("query", 5), leave("other", 9, 1.1), leave(None, 0, 1.1)}
    kept = {
        leave("query", 6),  # the next micro-batch
        leave("other", 2, 0.9),
        leave(None, 0),
        leave("query", 1, 9, folder.with_name("another directory")),
    }
    area = area_of(folder, "query", 5)
    for name in (".staged", "octavo-x.staged", next(iter(gone)).upper(), f"{next(iter(gone))}.tmp"):
        (area.folder / name).touch()
        kept.add(name)
    with DataDirectory.open(folder) as data:
        data.commit_staged(area, stage(area, {ONE: batches(1)}), topics=TOPICS)
    assert names(area) == kept


def test_what_cannot_be_removed_does_not_matter(folder: Path) -> None:
    area = area_of(folder)
    [file] = stage(area, {ONE: batches(1)})
    (area.folder / area.new_path().name).mkdir()
    with DataDirectory.open(folder) as data:
        data.commit_staged(area, [file], topics=TOPICS)
        assert data.log(*ONE).end_offset == 1
