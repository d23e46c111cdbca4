"""What is dirty, what of it can be cleaned, and when it is time to."""

from __future__ import annotations

from pathlib import Path

from octavo.log.compaction.grouping import group_segments
from octavo.log.compaction.scheduling import filthiest
from octavo.log.config.log_config import LogConfig
from tests.clock import Clock
from tests.unit.log.compaction.logs import TIME_MS, append, open_log


def test_dirt_is_what_is_behind_the_checkpoint(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for _ in range(3):
            append(log, "a", "b")
            log.roll()
        append(log, "a")
        sizes = [segment.size for segment in log.segments]
        plan = log.compaction_plan()
        assert (plan.first_dirty_offset, plan.first_uncleanable_offset) == (0, 6)
        assert (plan.clean_bytes, plan.cleanable_bytes, plan.dirty_ratio) == (0, sum(sizes[:3]), 1.0)
        log.compact()
        clean = log.segments[0].size
        log.roll()
        plan = log.compaction_plan()
        assert (plan.first_dirty_offset, plan.clean_bytes, plan.cleanable_bytes) == (6, clean, sizes[3])
        assert plan.dirty_ratio == sizes[3] / (clean + sizes[3])


def test_a_log_is_due_when_enough_of_it_is_dirty(tmp_path: Path) -> None:
    with open_log(tmp_path, min_cleanable_dirty_ratio="0.5") as log:
        append(log, *"abcdefgh")
        log.roll()
        assert log.compact(only_if_due=True) is not None
        append(log, "a")
        log.roll()
        assert log.compact(only_if_due=True) is None
        append(log, *"abcdefghi")
        log.roll()
        assert log.compact(only_if_due=True) is not None


def test_young_segments_wait(tmp_path: Path) -> None:
    clock = Clock()
    with open_log(tmp_path, clock=clock, min_compaction_lag_ms="100") as log:
        for number in range(3):
            append(log, "a", time_ms=TIME_MS + 50 * number)
            log.roll()
        for passed_ms, expected in ((100, 0), (101, 1), (151, 2), (201, 3)):
            plan = log.compaction_plan(TIME_MS + passed_ms - 1)
            assert plan.first_uncleanable_offset == expected


def test_old_dirt_must_go(tmp_path: Path) -> None:
    with open_log(tmp_path, min_cleanable_dirty_ratio="1", max_compaction_lag_ms="1000") as log:
        append(log, "a")
        log.roll()
        config = log.config
        assert not log.compaction_plan(TIME_MS + 1000).is_due(config)
        plan = log.compaction_plan(TIME_MS + 1007)
        assert plan.delay_ms == 7
        assert plan.is_due(config)


def test_a_checkpoint_outside_of_the_log_counts_for_nothing(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "a")
        log.roll()
    for offset in ("99", "garbage"):
        (tmp_path / "cleaner-offset-checkpoint").write_text(f"0\n1\ntopic 0 {offset}\n")
        with open_log(tmp_path) as log:
            assert log.compaction_plan().first_dirty_offset == 0
            append(log, "a")
            log.roll()
            assert log.compact() is not None
        assert "topic 0 " in (tmp_path / "cleaner-offset-checkpoint").read_text()


def test_a_truncation_makes_dirty_what_comes_in_its_place(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        append(log, "a", "b")
        log.roll()
        append(log, "c")
        append(log, "d")
        log.roll()
        log.compact()
        assert log.compaction_plan().first_dirty_offset == 4
        log.truncate_to(3)
        assert log.compaction_plan().first_dirty_offset == 0  # one segment by now
    assert "topic 0 0" in (tmp_path / "cleaner-offset-checkpoint").read_text()


def test_groups_stay_within_their_limits(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        for _ in range(5):
            append(log, "a")
            log.roll()
        segments = log._view.segments[:-1]
        size = segments[0].size
        for limit, expected in ((size, [1] * 5), (2 * size, [2, 2, 1]), (5 * size, [5])):
            groups = group_segments(segments, LogConfig(segment_bytes=limit), 5)
            assert [len(group) for group in groups] == expected
        far = group_segments(segments, LogConfig(), 2**31 + 1)  # the last one reaches further than an index can tell
        assert [len(group) for group in far] == [4, 1]
        assert group_segments((), LogConfig(), 0) == []


def test_a_log_that_is_damaged_keeps_no_other_from_being_compacted(tmp_path: Path) -> None:
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    with open_log(folders[0]) as damaged, open_log(folders[1]) as sound:
        for log in (damaged, sound):
            append(log, "a", "b")
            log.roll()
        segment = damaged._view.segments[0]
        segment.path.write_bytes(bytes(segment.size))
        segment._first_timestamp_ms = None  # as if it had just been opened
        told: list[object] = []
        for _ in range(2):
            assert filthiest([damaged, sound], TIME_MS, lambda *error: told.append(error)) is sound
            assert told == [(damaged.partition, damaged.uncleanable)]
