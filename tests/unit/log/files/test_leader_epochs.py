"""Leader epochs. That they are kept as Kafka keeps them is shown in `tests/kafka/test_log_files.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import Corrupt, InvalidInput
from octavo.log.files.leader_epochs import EpochEntry, LeaderEpochs
from octavo.log.storage import DISK, Storage


def epochs_of(*entries: tuple[int, int]) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for epoch, start_offset in entries:
        assert epochs.assign(epoch, start_offset)
    return epochs


def entries_of(epochs: LeaderEpochs) -> list[tuple[int, int]]:
    return [(epoch, start_offset) for epoch, start_offset in epochs.entries]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leader-epoch-checkpoint"


def test_an_epoch_is_assigned_once_and_is_then_on_the_disk(path: Path) -> None:
    epochs = LeaderEpochs(DISK, path)
    assert not path.exists()
    assert epochs.assign(2, 10)
    assert path.read_text() == "0\n1\n2 10\n"
    assert not epochs.assign(2, 10)
    assert not epochs.assign(2, 11)
    assert epochs.latest == EpochEntry(2, 10)
    assert LeaderEpochs(DISK, path).entries == epochs.entries


def test_a_new_epoch_takes_the_place_of_what_contradicts_it() -> None:
    epochs = epochs_of((1, 0), (2, 10), (5, 20))
    assert epochs.assign(4, 15)
    assert entries_of(epochs) == [(1, 0), (2, 10), (4, 15)]
    assert epochs.assign(6, 5)
    assert entries_of(epochs) == [(1, 0), (6, 5)]
    assert epochs.assign(6, 3)
    assert entries_of(epochs) == [(1, 0), (6, 3)]


@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_nothing_is_below_zero(epoch: int, start_offset: int) -> None:
    with pytest.raises(InvalidInput):
        LeaderEpochs().assign(epoch, start_offset)


def test_where_an_epoch_ends() -> None:
    epochs = epochs_of((2, 10), (4, 20), (7, 30))
    assert epochs.end_offset_for(7, 35) == (7, 35)  # the log's end
    assert epochs.end_offset_for(4, 35) == (4, 30)
    assert epochs.end_offset_for(3, 35) == (2, 20)  # the last known before
    assert epochs.end_offset_for(1, 35) == (1, 10)  # all of it is gone
    assert epochs.end_offset_for(8, 35) == (-1, -1)
    assert epochs.end_offset_for(-1, 35) == (-1, -1)
    assert LeaderEpochs().end_offset_for(0, 35) == (-1, -1)


def test_who_wrote_an_offset() -> None:
    epochs = epochs_of((2, 10), (4, 20))
    assert [epochs.epoch_for_offset(offset) for offset in (9, 10, 19, 20, 99)] == [None, 2, 2, 4, 4]


def test_truncation_forgets_what_is_gone_and_writes_only_what_changes(path: Path) -> None:
    epochs = LeaderEpochs(DISK, path)
    for epoch, start_offset in ((1, 0), (2, 10), (3, 20)):
        epochs.assign(epoch, start_offset)
    epochs.truncate_from_end(20)
    assert entries_of(epochs) == [(1, 0), (2, 10)]
    epochs.truncate_from_start(4)
    assert entries_of(epochs) == [(1, 4), (2, 10)]
    epochs.truncate_from_start(10)
    assert entries_of(epochs) == [(2, 10)]
    assert LeaderEpochs(DISK, path).entries == epochs.entries
    path.unlink()
    epochs.truncate_from_start(10)
    epochs.truncate_from_start(5)
    epochs.truncate_from_end(11)
    epochs.truncate_from_end(-1)
    assert not path.exists()
    epochs.clear()
    assert epochs.latest is None
    assert path.read_text() == "0\n0\n"


def test_what_contradicts_itself_on_the_disk_is_put_right(path: Path) -> None:
    path.write_text("0\n4\n1 0\n3 10\n2 20\n4 5\n")
    assert entries_of(LeaderEpochs(DISK, path)) == [(1, 0), (4, 5)]


def test_damage_on_the_disk_is_named(path: Path) -> None:
    path.write_text("0\n1\nnonsense\n")
    with pytest.raises(Corrupt, match="nonsense"):
        LeaderEpochs(DISK, path)


def test_a_reader_never_writes(path: Path) -> None:
    path.write_text("0\n1\n1 5\n")
    epochs = LeaderEpochs(DISK, path, read_only=True)
    assert epochs.assign(2, 10)
    epochs.truncate_from_start(7)
    assert entries_of(epochs) == [(1, 7), (2, 10)]
    assert path.read_text() == "0\n1\n1 5\n"


class FullDisk(Storage):
    def replace_file(self, path: Path, data: bytes) -> None:
        raise OSError("no space left")


def test_an_epoch_that_cannot_be_written_is_not_assigned(path: Path) -> None:
    epochs = LeaderEpochs(FullDisk(), path)
    with pytest.raises(OSError, match="no space"):
        epochs.assign(1, 0)
    assert epochs.latest is None


def test_what_the_log_has_lost_is_forgotten_even_where_that_cannot_be_written(path: Path) -> None:
    path.write_text("0\n1\n1 5\n")
    epochs = LeaderEpochs(FullDisk(), path)
    with pytest.raises(OSError, match="no space"):
        epochs.truncate_from_end(5)
    assert epochs.latest is None
