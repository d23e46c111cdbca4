"""Kafka's text checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import Corrupt
from octavo.log.files import text_checkpoint
from octavo.log.files.text_checkpoint import EpochEntry, read_epochs, read_offsets, write_epochs, write_offsets
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK, File, Storage

OFFSETS = {TopicPartition("events", 1): 456, TopicPartition("events", 0): 123}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / text_checkpoint.RECOVERY_POINT


def test_offsets_are_lines_of_text_in_order(path: Path) -> None:
    write_offsets(DISK, {path: OFFSETS})
    assert path.read_bytes() == b"0\n2\nevents 0 123\nevents 1 456\n"
    assert read_offsets(DISK, path) == OFFSETS
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_epochs_are_lines_of_text_in_their_order(path: Path) -> None:
    entries = [EpochEntry(0, 0), EpochEntry(4, 99)]
    write_epochs(DISK, path, entries)
    assert path.read_bytes() == b"0\n2\n0 0\n4 99\n"
    assert read_epochs(DISK, path) == entries


def test_what_is_not_there_or_empty_has_no_entries(path: Path) -> None:
    assert read_offsets(DISK, path) == {}
    assert read_epochs(DISK, path) == []
    for text in ("", "0", "0\n", "0\n0\n"):
        path.write_text(text)
        assert read_offsets(DISK, path) == {}
        assert read_epochs(DISK, path) == []


@pytest.mark.parametrize(
    ("text", "position", "rule"),
    [
        ("1\n0\n", 0, "version 1 of the checkpoint format is unknown"),
        ("x\n", 0, "no place in a checkpoint"),
        ("0\n-1\n", 2, "no place"),
        ("0\n2\nevents 0 5\n", 15, "there are 1 entries where 2 were announced"),
        ("0\n1\nevents 0 5\n\n", 16, "there are 2 entries where 1 were announced"),
        ("0\n1\nevents 0\n", 4, "b'events 0' has no place"),
        ("0\n1\nevents 0 5 6\n", 4, "no place"),
        ("0\n1\n events 0 5\n", 4, "no place"),
        ("0\n1\nevents 0 -5\n", 13, "b'-5' has no place"),
        ("0\n1\nevents 2147483648 5\n", 11, "no place"),
        ("0\n1\nevents 0 9223372036854775808\n", 13, "no place"),
        ("0\n1\nevents 0 1_0\n", 13, "no place"),
        ("0\n1\n\udcff 0 1\n", 4, "no place"),
        ("0\n99999999999999999999999\n", 2, "no place"),
    ],
)
def test_damage_is_found_and_named(path: Path, text: str, position: int, rule: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Corrupt, match=rule) as damage:
        read_offsets(DISK, path)
    assert damage.value.position == position
    assert str(path) in str(damage.value)


@pytest.mark.parametrize("line", ["1", "1 2 3", "-1 2", "1 -2", " 1 2", "2147483648 1", "a 1", ""])
def test_damaged_epochs_are_found(path: Path, line: str) -> None:
    path.write_text(f"0\n1\n{line}\n")
    with pytest.raises(Corrupt):
        read_epochs(DISK, path)


def test_a_file_that_is_far_too_large_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(Corrupt, match="none of its kind has more than"):
        read_offsets(DISK, path)


class Failing(Storage):
    """Cannot rename."""

    def rename(self, source: Path, target: Path) -> None:
        raise OSError("no")

    def open_to_write(self, path: Path, *, create: bool = False) -> File:
        return super().open_to_write(path, create=create)


def test_what_cannot_be_replaced_stays(path: Path) -> None:
    write_offsets(DISK, {path: OFFSETS})
    with pytest.raises(OSError, match="no"):
        write_offsets(Failing(), {path: {}})
    assert read_offsets(DISK, path) == OFFSETS
