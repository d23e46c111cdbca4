"""The disk may begin to write at any time; whoever asks for it is told of no errors."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from octavo.log import Log
from octavo.log.storage import DISK
from octavo.log.writeback import _sync_file_range, begin_writeback
from tests.unit.log.logs import keys, make_batch


def test_a_file_that_is_being_written_stays_as_it_is(tmp_path: Path) -> None:
    file = DISK.open_to_write(tmp_path / "file", create=True)
    for position in range(0, 30_000, 10_000):
        file.write_at([bytes([position // 10_000]) * 10_000], position)
        file.begin_sync(position, 10_000)
    file.begin_sync()
    file.sync()
    assert file.read_at(40_000, 0) == b"".join(bytes([number]) * 10_000 for number in range(3))


def test_errors_are_left_for_the_sync() -> None:
    begin_writeback(-1, 0, 0)


def test_other_systems_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    _sync_file_range.cache_clear()
    try:
        assert _sync_file_range() is None
        begin_writeback(-1, 0, 0)
    finally:
        _sync_file_range.cache_clear()


def test_a_log_goes_on_while_the_disk_writes(tmp_path: Path) -> None:
    with Log.open(tmp_path / "topic-0") as log:
        for number in range(5):
            log.append(make_batch(first=number))
            log.begin_flush()
        assert keys(log) == list(range(5))
        assert log.recovery_point < 5  # nothing is promised
        log.flush()
        assert log.recovery_point == 5
