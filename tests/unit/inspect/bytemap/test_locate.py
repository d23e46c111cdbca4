"""Which bytes of a file are explained."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from octavo.errors import InvalidInput, Unreadable
from octavo.inspect import explain_file
from octavo.inspect.kinds import Kind
from octavo.log import Log, LogConfig
from octavo.log.storage import File
from octavo.records import BatchBuilder, read_batches

NAME = "00000000000000000000.log"


def batch(offset: int, count: int = 3) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    for number in range(count):
        builder.append(b"key", b"value", timestamp_ms=number)
    return builder.build()


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Batches with the offsets 0 to 2, 3 to 5 and 10 to 12."""
    path = tmp_path / NAME
    path.write_bytes(batch(0) + batch(3) + batch(10))
    return path


def positions(segment: Path) -> list[int]:
    return [found.position for found in read_batches(segment.read_bytes())]


def test_the_first_batch_is_explained_unless_another_is_asked_for(segment: Path) -> None:
    found = explain_file(segment)
    assert (found.position, found.next_position) == (0, positions(segment)[1])
    assert found.kind is Kind.SEGMENT
    assert found.problems == []


@pytest.mark.parametrize(("offset", "number"), [(0, 0), (2, 0), (3, 1), (5, 1), (12, 2)])
def test_a_batch_is_found_by_any_of_its_offsets(segment: Path, offset: int, number: int) -> None:
    found = explain_file(segment, offset=offset)
    assert found.position == positions(segment)[number]
    assert found.notes == ()
    shown = [field.value for field in found.fields if field.name.startswith("record ")]
    assert shown[0] == f"offset {offset}"  # records before it are left out


def test_an_offset_that_was_compacted_away_leads_to_the_next_batch(segment: Path) -> None:
    found = explain_file(segment, offset=7)
    assert found.position == positions(segment)[2]
    assert found.notes == ("offset 7 is not in this file: this is the first batch behind it",)


def test_an_offset_behind_the_file_is_refused(segment: Path) -> None:
    with pytest.raises(InvalidInput, match="no batch with offset 13: its last one ends with 12"):
        explain_file(segment, offset=13)


@pytest.mark.parametrize("inside", [0, 1, 60, 90])
def test_a_batch_is_found_by_any_of_its_bytes(segment: Path, inside: int) -> None:
    second = positions(segment)[1]
    assert explain_file(segment, position=second + inside).position == second


def test_a_position_behind_the_file_is_refused(segment: Path) -> None:
    with pytest.raises(InvalidInput, match="none at 999"):
        explain_file(segment, position=999)


def test_bytes_without_a_batch_are_shown_up_to_the_next_one(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    second, third = positions(segment)[1:]
    data[second + 8 : second + 12] = b"\xff\xff\xff\xff"  # its length
    segment.write_bytes(data)
    found = explain_file(segment, position=second + 20)
    assert (found.position, found.size, found.next_position) == (second, third - second, third)
    assert "there is no batch" in found.notes[0]
    assert [field.name for field in found.problems] == ["length"]
    assert explain_file(segment, offset=10).position == third


def test_a_length_that_is_too_large_is_told_from_a_torn_tail(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    second, third = positions(segment)[1:]
    data[second + 8] = 0x10
    segment.write_bytes(data)
    found = explain_file(segment, position=second)
    assert not found.is_torn
    assert "so the length of this one is wrong" in found.notes[0]
    assert found.next_position == third


def test_a_torn_tail_is_explained_as_far_as_it_goes(segment: Path) -> None:
    third = positions(segment)[2]
    segment.write_bytes(segment.read_bytes()[:-5])
    found = explain_file(segment, position=third + 3)
    assert found.position == third
    assert found.is_torn
    assert found.next_position is None


def test_an_index_is_used_and_not_believed(tmp_path: Path) -> None:
    with Log.open(tmp_path / "events-0", LogConfig.from_properties({"index.interval.bytes": "0"})) as log:
        for _ in range(50):
            log.append(batch(0))
    segment = tmp_path / "events-0" / NAME
    wanted = explain_file(segment, offset=100).position
    assert wanted == positions(segment)[33]
    index = segment.with_suffix(".index")
    index.write_bytes(os.urandom(index.stat().st_size))
    assert explain_file(segment, offset=100).position == wanted


def test_an_empty_segment_has_nothing_to_explain(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(b"")
    assert explain_file(path).fields == []


@pytest.mark.parametrize("name", ["notes.txt", "server.log"])
def test_text_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("Dear diary, " * 100_000)
    for place in ({}, {"position": 1_000}, {"offset": 0}):
        with pytest.raises(InvalidInput, match="no file of Kafka's: it begins with no batch"):
            explain_file(path, **place)


def test_text_in_a_segment_is_explained_as_what_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_text("Dear diary, " * 100_000)
    found = explain_file(path)
    assert found.problems
    assert found.size <= 64 << 10


def test_empty_files_with_other_names_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"")
    for path in (tmp_path / "notes.txt", Path("/proc/version"), Path("/proc/self/mem")):
        with pytest.raises(InvalidInput, match="no file of Kafka's: it is empty"):
            explain_file(path)


def test_a_copy_with_another_name_is_explained_also_if_it_begins_with_damage(segment: Path) -> None:
    copy = segment.with_name("copy.bin")
    copy.write_bytes(segment.read_bytes())
    assert explain_file(copy).problems == []
    copy.write_bytes(b"\xff" * 30 + segment.read_bytes()[30:])
    second = positions(segment)[1]
    assert explain_file(copy, position=second).position == second


def test_a_disk_that_cannot_be_read_is_told(segment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_at(self: File, size: int, position: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(File, "read_at", read_at)
    with pytest.raises(Unreadable, match="log: cannot be read: Input/output error"):
        explain_file(segment)


@pytest.mark.parametrize("hole", [12, 100, 512 << 20])
def test_zeros_at_the_end_of_a_segment_are_no_damage(segment: Path, hole: int) -> None:
    end = segment.stat().st_size
    third = positions(segment)[2]
    os.truncate(segment, end + hole)
    found = explain_file(segment, position=end + hole // 2)
    assert (found.position, found.size) == (end, min(hole, 64 << 10))
    assert found.problems == []
    assert found.next_position is None
    assert "this is no damage" in found.notes[0]
    assert [field.name for field in found.fields] == ["zeros"]
    assert explain_file(segment, position=third).next_position is None


@pytest.mark.parametrize("name", [".lock", ".kafka_cleanshutdown"])
def test_files_without_content_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InvalidInput, match="nothing to explain"):
        explain_file(tmp_path / name)


def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    for path in (tmp_path, tmp_path / NAME, tmp_path / "missing.log", Path("/dev/zero")):
        with pytest.raises(Unreadable):
            explain_file(path)
