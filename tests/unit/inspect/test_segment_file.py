"""A file is read step by step, and may be cut by another process meanwhile."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from octavo.cli import main
from octavo.cli.exits import COULD_NOT_RUN
from octavo.errors import FormatError, Unreadable
from octavo.inspect import Dump, segment_bytes
from octavo.inspect.json_lines import COLUMNS
from octavo.inspect.segment_file import SegmentFile
from octavo.inspect.wanted import Wanted
from octavo.records import BatchBuilder

SMALL_STEP = 1000  # bytes; a page of memory is larger, and some of the batches are, too
NAME = "00000000000000000000.log"


def batch(offset: int) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    builder.append(b"key", bytes(offset % 7 * 350) + b"value", timestamp_ms=offset)
    return builder.build()


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    _take_small_steps(monkeypatch)


def _take_small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_bytes, "_STEP", SMALL_STEP)
    monkeypatch.setattr(segment_bytes, "_PAGE", mmap.PAGESIZE)


def variants() -> dict[str, bytes]:
    """Return whole and damaged files."""
    batches = [batch(offset) for offset in range(60)]
    whole = b"".join(batches)
    at = sum(map(len, batches[:20]))
    flipped, long, short, magic = (bytearray(whole) for _ in range(4))
    flipped[at + len(batches[20]) - 3] ^= 1
    long[at + 8 : at + 12] = (1 << 30).to_bytes(4, "big")
    short[at + 8 : at + 12] = (3).to_bytes(4, "big")
    magic[at + 16] = 9
    moved = bytearray(whole)
    moved[at : at + 8] = (5).to_bytes(8, "big")
    return {
        "whole": whole,
        "torn": whole[:-7],
        "zeros": whole + bytes(5000),
        "flipped": bytes(flipped),
        "long": bytes(long),
        "short": bytes(short),
        "magic": bytes(magic),
        "moved": bytes(moved),
        "garbage": whole[:at] + b"garbage" * 900 + whole[at:] + b"garbage" * 900,
    }


def by_objects(segment: SegmentFile) -> list[int]:
    found = []
    for each in segment.batches():
        try:
            found += [record.offset for record in segment.records(each)]
        except FormatError as error:
            segment.pass_over(each.position, error)
    return found


def by_columns(segment: SegmentFile) -> list[int]:
    return [offset for chunk in segment.chunks(COLUMNS) for offset in chunk.column("offset").to_pylist()]


@pytest.mark.parametrize("walk", [by_objects, by_columns])
@pytest.mark.parametrize("resync", [False, True])
@pytest.mark.parametrize("wanted", [Wanted(), Wanted(offsets=(15, 40))], ids=["all", "some"])
@pytest.mark.parametrize("name", variants())
def test_reading_in_steps_finds_the_same_as_reading_all_at_once(
    name: str, wanted: Wanted, resync: bool, walk: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(walk)
    path = tmp_path / NAME
    path.write_bytes(variants()[name])

    def found() -> tuple[object, ...]:
        segment = SegmentFile(path, wanted=wanted, resync=resync)
        result: object
        try:
            result = walk(segment)
        except FormatError as error:
            result = str(error)
        damage = [(position, size, str(error)) for position, size, error in segment.damage]
        return result, damage, segment.position, segment.torn_tail, segment.zero_tail

    at_once = found()
    _take_small_steps(monkeypatch)
    assert found() == at_once


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("resync", [False, True])
@pytest.mark.parametrize("left", [0, 5000])
def test_a_file_that_is_cut_while_it_is_read_is_an_error(left: int, resync: bool, tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes(variants()["whole"])
    size = path.stat().st_size
    lines = iter(Dump(path, resync=resync))
    next(lines)
    os.truncate(path, left)
    with pytest.raises(Unreadable, match=f"it was cut from {size:,} to {left:,} bytes while it was read"):
        list(lines)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("form", ["jsonl", "table", "parquet"])
def test_the_command_tells_that_a_file_was_cut_and_goes_on(
    form: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, whole = tmp_path / NAME, tmp_path / "00000000000000000060.log"
    cut.write_bytes(variants()["whole"])
    whole.write_bytes(batch(60))
    fill = segment_bytes.SegmentBytes.fill

    def fill_and_cut(self: segment_bytes.SegmentBytes, to: int) -> None:
        fill(self, to)
        os.truncate(cut, 100)

    monkeypatch.setattr(segment_bytes.SegmentBytes, "fill", fill_and_cut)
    output = ["--output", str(tmp_path / "out")] if form == "parquet" else []
    assert main(["dump", str(cut), str(whole), "--format", form, *output]) == COULD_NOT_RUN
    out, err = capfdbinary.readouterr()
    assert err.decode().endswith("to 100 bytes while it was read\n")
    assert err.count(b"\n") == 1
    assert form == "parquet" or b"00000000000000000060.log" in out
