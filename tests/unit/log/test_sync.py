"""What is written is on the disk when a sync returns, by the means of each system."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from octavo.log.storage import DISK
from octavo.log.sync import make_full_sync, sync_file, sync_names

FULL = 51  # F_FULLFSYNC of macOS


def test_files_and_folders_are_synced(tmp_path: Path) -> None:
    file = DISK.open_to_write(tmp_path / "file", create=True)
    sync_file(file.descriptor)
    DISK.sync_folder(tmp_path)
    file.close()
    for sync in (sync_file, sync_names):
        with pytest.raises((OSError, ValueError)):
            sync(-1)


def test_a_disk_is_told_to_write_its_own_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[int, int]] = []
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, command: called.append((descriptor, command)))
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("that is not enough"))
    make_full_sync(FULL)(7)
    assert called == [(7, FULL)]


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_a_file_system_that_cannot_tell_its_disk_is_synced_as_it_can(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(fcntl, "fcntl", failing(number))
    monkeypatch.setattr(os, "fsync", synced.append)
    make_full_sync(FULL)(7)
    assert synced == [7]


def test_a_disk_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "fcntl", failing(errno.EIO))
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("a second sync may not tell of the error"))
    with pytest.raises(OSError, match="it fails"):
        make_full_sync(FULL)(7)


def failing(number: int) -> object:
    def fail(*_: object) -> None:
        raise OSError(number, "it fails")

    return fail
