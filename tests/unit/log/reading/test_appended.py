"""What was appended since a view of the log is read without a search, and is the same as with one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.log import Isolation, Log
from octavo.log.reading.read_view import read_appended
from tests.unit.log.logs import make_batch, open_log

MUCH = 1 << 20


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with open_log(tmp_path, **{"internal.segment.bytes": "2000"}) as log:
        log.append(make_batch(3))
        yield log


def test_it_is_what_a_search_finds(log: Log) -> None:
    for several in (1, 2, 3):
        before = log.view
        for number in range(several):
            log.append(make_batch(1 + number))
        found = read_appended(log, before, log.view, before.end_offset, MUCH)
        searched = log.read(before.end_offset, MUCH, isolation=Isolation.LOG_END)
        assert found is not None
        assert found.file_slice == searched.file_slice
        assert (found.records, found.next_offset) == (searched.records, searched.next_offset)
        assert (found.high_watermark, found.segment, found.is_first_cut) == (
            searched.high_watermark,
            searched.segment,
            False,
        )


def test_there_is_nothing_between_two_views_of_the_same_end(log: Log) -> None:
    assert read_appended(log, log.view, log.view, log.end_offset, MUCH) is None


def test_a_read_that_begins_elsewhere_or_takes_less_is_searched_for(log: Log) -> None:
    before = log.view
    log.append(make_batch(2))
    size = log.view.size - before.size
    assert read_appended(log, before, log.view, before.end_offset - 1, size) is None
    assert read_appended(log, before, log.view, before.end_offset + 1, size) is None
    assert read_appended(log, before, log.view, before.end_offset, size - 1) is None
    assert read_appended(log, before, log.view, before.end_offset, size) is not None


def test_another_segment_and_a_truncation_are_noticed(log: Log) -> None:
    before = log.view
    log.roll()
    log.append(make_batch(2))
    assert read_appended(log, before, log.view, before.end_offset, MUCH) is None
    before = log.view
    log.append(make_batch(2))
    log.truncate_to(before.end_offset)
    log.append(make_batch(1))
    assert read_appended(log, before, log.view, before.end_offset, MUCH) is None
