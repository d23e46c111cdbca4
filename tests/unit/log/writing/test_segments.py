"""The segment files of a log: which are made, synced, put away and removed."""

from pathlib import Path

import pytest

from octavo.log.names import DELETED, LOG, file_name
from octavo.log.storage import DISK
from octavo.log.view import View
from octavo.log.writing.segments import LogSegments


@pytest.fixture
def segments(tmp_path: Path) -> LogSegments:
    return LogSegments(DISK, tmp_path, recovery_point=0, now_ms=0)


def files(folder: Path) -> set[str]:
    """The files of batches."""
    return {path.name for path in folder.iterdir() if LOG in path.name}


def test_files_of_a_segment_that_leaves_are_renamed_and_removed_when_due(segments: LogSegments, tmp_path: Path) -> None:
    old, stays = segments.create(0, created_ms=0), segments.create(5, created_ms=0)
    segments.leave([old])
    before = segments.has_leaving
    assert files(tmp_path) == {file_name(0, LOG), file_name(5, LOG)}
    segments.put_away_leaving(60)
    assert (before, segments.has_leaving) == (True, False)
    assert files(tmp_path) == {file_name(0, LOG) + DELETED, file_name(5, LOG)}
    assert segments.due(59) == []
    assert segments.remove_due(59) == 0
    assert segments.due(60) == [old]
    assert segments.remove_due(60) == 1
    assert segments.due(60) == []
    assert files(tmp_path) == {stays.path.name}


def test_when_a_log_is_closed_all_that_has_left_it_is_removed(segments: LogSegments, tmp_path: Path) -> None:
    one, other = segments.create(0, created_ms=0), segments.create(5, created_ms=0)
    segments.put_away(one, 1_000_000)
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
    synced = segments.sync(view, lambda: view, also_active=False)
    assert [segment.base_offset for segment, _ in synced] == [0, 5, 9]
    segments.note_synced(synced, 9, now_ms=3)
    assert (segments.recovery_point, segments.last_flush_ms) == (9, 3)
    synced = segments.sync(view, lambda: view, also_active=False)
    assert [segment.base_offset for segment, _ in synced] == [9]
    segments.note_synced(synced, 0, now_ms=4)  # what was synced may have been truncated meanwhile
    assert segments.recovery_point == 9
    segments.note_synced(synced, 12, now_ms=5)
    assert segments.sync(view, lambda: view, also_active=False) == []
    assert [segment for segment, _ in segments.sync(view, lambda: view, also_active=True)] == [made[-1]]
