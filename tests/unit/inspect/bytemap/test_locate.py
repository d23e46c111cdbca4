"""Which bytes of a file are explained."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from octavo.errors import InvalidInput, Unreadable
from octavo.inspect import explain_file
from octavo.inspect.kinds import Kind
from octavo.log import Log, LogConfig
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


def test_text_is_explained_as_what_it_is_not(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, " * 100_000)
    found = explain_file(path)
    assert found.problems
    assert found.size <= 64 << 10


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
