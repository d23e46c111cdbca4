"""Which offsets readers take from segments that overlap."""

from __future__ import annotations

from pathlib import Path

from octavo.log import LogConfig
from octavo.log.names import TopicPartition
from octavo.log.reading.segment_portions import portions
from octavo.log.storage import DISK
from octavo.log.watched.watched_log import WatchedLog
from octavo.records import BatchBuilder
from octavo.records.layout import BATCH_HEADER
from tests.unit.log.logs import TIME_MS
from tests.unit.spark.queries import offsets


def write(folder: Path, segments: dict[int, list[int]]) -> Path:
    """A partition of these segments, each with batches of one record at these offsets."""
    path = folder / "events-0"
    path.mkdir()
    for base_offset, stored in segments.items():
        batches = []
        for offset in stored:
            builder = BatchBuilder(base_offset=offset)
            builder.append(None, b"%d" % base_offset, timestamp_ms=TIME_MS)
            batches.append(builder.build())
        (path / f"{base_offset:020d}.log").write_bytes(b"".join(batches))
    return path


def portions_of(path: Path, first: int, end: int) -> list[tuple[int, int, int, bool]]:
    """The portions of a range, with the base offsets of the segments."""
    with WatchedLog(DISK, path, TopicPartition("events", 0), LogConfig()) as log:
        view = log.view
        return [(view.bases[each.number], *each[1:]) for each in portions(view, first, end)]


def test_a_segment_is_read_to_its_end_and_the_next_from_there(tmp_path: Path) -> None:
    path = write(tmp_path, {0: [0, 5, 20], 10: [10, 11, 12], 15: [15, 16, 21, 22], 30: [30, 31]})
    assert portions_of(path, 0, 32) == [(0, 0, 21, False), (15, 21, 30, False), (30, 30, 32, False)]
    assert portions_of(path, 0, 18) == [(0, 0, 18, True)]
    assert portions_of(path, 0, 10) == [(0, 0, 10, False)]
    assert portions_of(path, 12, 31) == [(10, 12, 15, False), (15, 15, 30, False), (30, 30, 31, True)]
    assert portions_of(path, 25, 25) == []


def test_a_log_may_end_before_its_first_segment_does(tmp_path: Path) -> None:
    path = write(tmp_path, {0: [0, 5, 40], 10: [10, 11]})
    assert portions_of(path, 0, 12) == [(0, 0, 12, True)]
    assert offsets(path) == [0, 5]


def test_a_header_that_was_not_checked_hides_no_other_segment(tmp_path: Path) -> None:
    path = write(tmp_path, {0: [0, 5, 9], 10: [10, 11], 12: [12]})
    first = path / "00000000000000000000.log"
    data = bytearray(first.read_bytes())
    data[len(data) // 3 * 2 + BATCH_HEADER.at("last_offset_delta") + 3] ^= 64
    first.write_bytes(data)
    assert portions_of(path, 0, 13) == [(0, 0, 10, False), (10, 10, 12, False), (12, 12, 13, False)]
    assert offsets(path, onCorruption="skip") == [0, 5, 10, 11, 12]


def test_a_segment_that_is_named_is_read_to_its_end(tmp_path: Path) -> None:
    path = write(tmp_path, {0: [0, 5, 20], 10: [10, 11, 12, 13], 30: [30]})
    assert offsets(path / "00000000000000000000.log") == [0, 5, 20]
    assert offsets(path / "00000000000000000010.log") == [10, 11, 12, 13]
    assert offsets(path / "*.log") == offsets(path) == [0, 5, 20, 30]
