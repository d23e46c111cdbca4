"""The segment files of a log: which are made, synced, put away and removed."""

from pathlib import Path

import pytest

from octavo.log.clock import Deadline
from octavo.log.names import DELETED, INDEX, LOG, SNAPSHOT, TIME_INDEX, file_name
from octavo.log.storage import DISK
from octavo.log.view import View
from octavo.log.writing.segments import LogSegments
from tests.unit.log.failing import FailingDisk


@pytest.fixture
def segments(tmp_path: Path) -> LogSegments:
    return LogSegments(DISK, tmp_path, recovery_point=0, now_ms=0)


def files(folder: Path) -> set[str]:
    """The files of batches."""
    return {path.name for path in folder.iterdir() if LOG in path.name}


def test_files_of_a_segment_that_leaves_are_renamed_and_due_for_removal(segments: LogSegments, tmp_path: Path) -> None:
    old, stays = segments.create(0, created_ms=0), segments.create(5, created_ms=0)
    segments.leave([old])
    before = segments.has_leaving
    assert files(tmp_path) == {file_name(0, LOG), file_name(5, LOG)}
    segments.put_away_leaving(Deadline(0, 60))
    assert (before, segments.has_leaving) == (True, False)
    assert files(tmp_path) == {file_name(0, LOG) + DELETED, file_name(5, LOG)}
    assert segments.due(59) == []
    assert segments.due(60) == [old]
    old.remove_deleted()
    segments.forget_removed(old)
    assert segments.due(60) == []
    assert files(tmp_path) == {stays.path.name}


def test_when_a_log_is_closed_all_that_has_left_it_is_removed(segments: LogSegments, tmp_path: Path) -> None:
    one, other = segments.create(0, created_ms=0), segments.create(5, created_ms=0)
    segments.put_away(one, Deadline(0, 1_000_000))
    segments.leave([other])
    segments.remove_all(0)
    assert files(tmp_path) == set()


def test_a_segment_that_no_view_has_is_removed(segments: LogSegments, tmp_path: Path) -> None:
    for base_offset in (0, 5, 7):
        segments.create(base_offset, created_ms=0)
    segments.remove_after(0)
    assert files(tmp_path) == {file_name(0, LOG)}


def test_only_what_is_behind_the_recovery_point_is_synced(segments: LogSegments) -> None:
    made = tuple(segments.create(base_offset, created_ms=0) for base_offset in (0, 5, 9))
    view = View(made, (0, 5, 9), 0, 0, 12, 12, 0)
    assert synced(segments, view, count=2) == [0, 5]
    segments.note_synced([], 9)
    assert segments.recovery_point == 9
    assert synced(segments, view, count=3) == [9]
    segments.note_synced([], 0)  # what was synced may have been truncated meanwhile
    assert segments.recovery_point == 9
    segments.note_synced([], 12)
    assert synced(segments, view, count=3) == []


def test_a_segment_that_was_written_since_is_synced_again(segments: LogSegments) -> None:
    """Sealing changes the indexes of a segment whose data are on the disk."""
    made = tuple(segments.create(base_offset, created_ms=0) for base_offset in (0, 5))
    view = View(made, (0, 5), 0, 0, 5, 5, 0)
    synced(segments, view, count=2)
    segments.note_synced([], 5)
    made[0].seal()
    assert synced(segments, view, count=2) == [0]


def test_the_snapshot_of_a_roll_is_synced_after_the_segments(tmp_path: Path) -> None:
    disk = FailingDisk()
    asked: list[tuple[str, str]] = []
    segments = LogSegments(disk, tmp_path, recovery_point=0, now_ms=0)
    made = segments.create(0, created_ms=0)
    segments.unsynced_snapshot = tmp_path / file_name(5, SNAPSHOT)
    segments.unsynced_snapshot.touch()

    def note(what: str, path: Path) -> bool:
        asked.append((what, path.suffix))
        return False

    disk.fails = note
    synced(segments, View((made,), (0,), 0, 0, 5, 5, 0), count=1)
    assert asked == [("sync", LOG), ("sync", INDEX), ("sync", TIME_INDEX), ("sync", SNAPSHOT), ("sync folder", "")]
    assert segments.unsynced_snapshot is None


def synced(segments: LogSegments, view: View, *, count: int) -> list[int]:
    """The segments that are synced, by their base offsets."""
    found = segments.sync(view, lambda: view, count=count)
    segments.note_synced(found, 0)
    return [segment.base_offset for segment, _ in found]


def test_what_is_unflushed_before_the_active_segment(segments: LogSegments) -> None:
    made = tuple(segments.create(base_offset, created_ms=0) for base_offset in (0, 5, 9))
    for segment in made:
        segment.size = 100
    view = View(made, (0, 5, 9), 100, 0, 12, 12, 0)
    assert segments.unflushed(view) == (2, 200)
    segments.recovery_point = 7
    assert segments.unflushed(view) == (1, 100)
    segments.recovery_point = 9
    assert segments.unflushed(view) == (0, 0)
