"""Finding batches by offset and records by timestamp: with an index, without, with one that lies, and past damage."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from octavo.errors import CorruptFile
from octavo.log.segment.damage import pass_over, refuse
from octavo.log.segment.find import DamageBefore, find_timestamp
from octavo.log.segment.segment import Segment
from octavo.log.storage import DISK
from octavo.records import BatchBuilder

BASE: Final = 100
COUNT: Final = 20  # batches, each with two of three offsets
TIME_MS: Final = 1_000


def offset_of(number: int) -> int:
    return BASE + 3 * number


def batch(number: int) -> bytes:
    builder = BatchBuilder(base_offset=offset_of(number))
    for _ in range(2):
        builder.append(b"key", b"value", timestamp_ms=TIME_MS + number)
    return builder.build()


SIZE: Final = len(batch(0))
INDEXES: Final = {
    "no index": [],
    "an index": [(number, number) for number in range(1, COUNT, 4)],
    "an index that lies of offsets": [(number, number + 2) for number in range(1, COUNT - 2, 4)],
}


def segment_of(folder: Path, entries: list[tuple[int, int]], damaged: tuple[int, ...] = ()) -> Segment:
    """A segment; the index entries name the last offset of one batch, and the position of another."""
    data = bytearray(b"".join(map(batch, range(COUNT))))
    for number in damaged:
        data[(number + 1) * SIZE - 1] ^= 1
    segment = Segment.create(DISK, folder, BASE, created_ms=0)
    segment.path.write_bytes(data)
    segment.size = len(data)
    for named, at in entries:
        segment.offset_index.append((offset_of(named) + 1 - BASE, at * SIZE))
    return segment


@pytest.mark.parametrize("entries", INDEXES.values(), ids=INDEXES)
def test_the_batch_with_an_offset_or_the_next_one_is_found(tmp_path: Path, entries: list[tuple[int, int]]) -> None:
    segment = segment_of(tmp_path, entries)
    for offset in range(BASE - 2, offset_of(COUNT) - 1):
        expected = max(0, offset + 1 - BASE) // 3
        found = segment.find(offset, segment.size)
        assert found is not None
        assert (found.position, found.base_offset) == (expected * SIZE, offset_of(expected))
        assert segment.find_past_damage(offset, segment.size) == (found, None)
    assert segment.find(offset_of(COUNT), segment.size) is None
    assert segment.find(offset_of(3), 3 * SIZE) is None  # it ends after that position
    assert segment.find_past_damage(offset_of(COUNT), segment.size) == (None, None)


@pytest.mark.parametrize("entries", list(INDEXES.values())[:2], ids=list(INDEXES)[:2])
def test_damage_before_a_batch_is_returned_with_it(tmp_path: Path, entries: list[tuple[int, int]]) -> None:
    segment = segment_of(tmp_path, entries, damaged=(9, 10))
    damage = DamageBefore(9 * SIZE, offset_of(8) + 1)
    found, before = segment.find_past_damage(offset_of(9), segment.size)
    assert found is not None
    assert (found.position, before) == (11 * SIZE, damage)
    found, before = segment.find_past_damage(offset_of(11), segment.size)
    assert found is not None
    assert (found.position, before) == (11 * SIZE, None)  # nothing before a batch that has the offset is looked at
    found, before = segment.find_past_damage(offset_of(8), segment.size)
    assert found is not None
    assert (found.position, before) == (8 * SIZE, None)


def test_damage_at_the_end_is_returned_where_no_batch_follows(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, [], damaged=(0, COUNT - 1))
    assert segment.find_past_damage(offset_of(COUNT - 1), segment.size) == (
        None,
        DamageBefore((COUNT - 1) * SIZE, offset_of(COUNT - 2) + 1),
    )
    found, before = segment.find_past_damage(BASE, segment.size)
    assert found is not None
    assert (found.position, before) == (SIZE, DamageBefore(0, BASE - 1))


def test_a_timestamp_is_found_past_damage_or_refused(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, [], damaged=(4,))
    file, size = segment.file, segment.size

    assert find_timestamp(file, 0, size, TIME_MS + 3, BASE) == (offset_of(3), TIME_MS + 3, -1)
    assert find_timestamp(file, 0, size, TIME_MS + 3, offset_of(3) + 1) == (offset_of(3) + 1, TIME_MS + 3, -1)
    assert find_timestamp(file, 0, size, TIME_MS + 4, BASE, pass_over()) == (offset_of(5), TIME_MS + 5, -1)
    assert find_timestamp(file, 5 * SIZE, size, TIME_MS + COUNT, BASE) is None
    with pytest.raises(CorruptFile) as refused:
        find_timestamp(file, 0, size, TIME_MS + 6, BASE, refuse)
    assert refused.value.position == 4 * SIZE


def test_a_batch_that_is_cut_ends_the_search_for_a_timestamp_or_is_damage(tmp_path: Path) -> None:
    segment = segment_of(tmp_path, [])
    file, size = segment.file, segment.size - 1
    assert find_timestamp(file, 0, size, TIME_MS + COUNT - 1, BASE) is None
    assert find_timestamp(file, 0, size, TIME_MS + COUNT - 1, BASE, pass_over()) is None
    with pytest.raises(CorruptFile, match="inside a batch") as refused:
        find_timestamp(file, 0, size, TIME_MS + COUNT - 1, BASE, refuse)
    assert refused.value.position == (COUNT - 1) * SIZE
