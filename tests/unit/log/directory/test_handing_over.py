"""A directory is handed over to Kafka with all records of a commit, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN, FINE
from octavo.errors import CommitPending
from octavo.log import handover
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.failing import FailingDisk
from tests.unit.log.staging.staged import ONE, TWO, area_of, batches, commit, commit_and_die, found

TASK = {ONE: batches(1, 2), TWO: batches(3)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    commit(folder, {ONE: batches(0)}, application="before")
    return folder


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_pending_commit_is_finished_first(folder: Path, capsys: pytest.CaptureFixture[str], step: int) -> None:
    commit_and_die(folder, step, TASK)
    for is_first in (True, False):
        assert main(["handover", str(folder)]) == FINE
        assert ("a commit that was interrupted is finished" in capsys.readouterr().out) == is_first
        assert found(folder) == {ONE: [0, 1, 2], TWO: [3]}
    assert not list(area_of(folder).folder.iterdir())


def test_a_commit_that_cannot_be_finished_is_refused_with_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit_and_die(folder, 1, TASK)
    for path in area_of(folder).folder.iterdir():
        path.unlink()
    with left_as_it_was(folder):
        assert main(["handover", str(folder)]) == COULD_NOT_RUN
    [told] = capsys.readouterr().err.splitlines()
    assert "the pending commit in this journal cannot be finished" in told
    assert told.endswith("forget the commit with octavo.log.give_up_commit")


def test_a_commit_for_which_there_is_no_room_is_refused(folder: Path) -> None:
    commit_and_die(folder, 1, TASK)
    disk = FailingDisk()
    disk.fails = lambda what, path: what == "write" and path.suffix == ".log"
    with pytest.raises(CommitPending, match="the disk is full"):
        handover([folder], storage=disk)
    assert handover([folder]).finished_commit
    assert found(folder) == {ONE: [0, 1, 2], TWO: [3]}
