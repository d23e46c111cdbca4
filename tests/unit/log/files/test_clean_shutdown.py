"""The mark of a clean shutdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.log import DataDirectory
from octavo.log.files import clean_shutdown
from octavo.log.storage import DISK, Storage


def test_the_mark_is_made_and_removed(tmp_path: Path) -> None:
    assert not clean_shutdown.was_clean(tmp_path)
    assert not clean_shutdown.remove_mark(DISK, tmp_path)
    clean_shutdown.write_mark(DISK, tmp_path)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    assert clean_shutdown.was_clean(tmp_path)
    assert clean_shutdown.remove_mark(DISK, tmp_path)
    assert not clean_shutdown.was_clean(tmp_path)


def test_the_mark_says_which_broker_made_it(tmp_path: Path) -> None:
    assert clean_shutdown.read_broker_epoch(DISK, tmp_path) == clean_shutdown.NO_BROKER_EPOCH
    clean_shutdown.write_mark(DISK, tmp_path, 17)
    assert clean_shutdown.read_broker_epoch(DISK, tmp_path) == 17


@pytest.mark.parametrize(
    "content", ["", "{", "[" * 4096, "[]", "7", '{"version":0}', '{"brokerEpoch":"1"}', "x" * 5000, "\udcff"]
)
def test_that_it_exists_is_enough(tmp_path: Path, content: str) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content.encode("utf-8", "surrogateescape"))
    assert clean_shutdown.was_clean(tmp_path)
    assert clean_shutdown.read_broker_epoch(DISK, tmp_path) == clean_shutdown.NO_BROKER_EPOCH


class Noting(Storage):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def remove(self, path: Path) -> None:
        self.calls.append(f"remove {path.name}")
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        self.calls.append(f"sync {path.name}")
        super().sync_folder(path)


def test_no_crash_can_bring_a_removed_mark_back(tmp_path: Path) -> None:
    clean_shutdown.write_mark(DISK, tmp_path)
    storage = Noting()
    clean_shutdown.remove_mark(storage, tmp_path)
    assert storage.calls == ["remove .kafka_cleanshutdown", f"sync {tmp_path.name}"]


def test_a_new_folder_has_the_mark_of_those_beside_it(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    DataDirectory.open(folders).close()
    for folder in folders:
        clean_shutdown.write_mark(DISK, folder, 17)
    folders.append(tmp_path / "new")
    with DataDirectory.open(folders) as data:
        data.create_topic("events", 3)
    assert [clean_shutdown.read_broker_epoch(DISK, folder) for folder in folders] == [17, 17, 17]
    (tmp_path / "new" / ".kafka_cleanshutdown").unlink()
    DataDirectory.open(folders).close()
    assert [clean_shutdown.read_broker_epoch(DISK, folder) for folder in folders] == [17, 17, -1]  # it was not closed
