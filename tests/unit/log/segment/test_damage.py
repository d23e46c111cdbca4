"""The search for the next batch after damage."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from octavo.log.segment import damage
from octavo.log.segment.damage import BatchSearch
from octavo.log.storage import DISK, File
from octavo.records import BatchBuilder


def batch(offset: int) -> bytes:
    builder = BatchBuilder(base_offset=offset, leader_epoch=0)
    builder.append(b"key", b"value", timestamp_ms=0)
    return builder.build()


@pytest.mark.parametrize("any_offset", [False, True])
def test_a_batch_with_a_lower_offset_is_found_only_by_who_wants_every_batch(tmp_path: Path, any_offset: bool) -> None:
    junk = b"\xff" * 50
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(100) + junk + batch(7) + batch(101))
    file = DISK.open(path)
    search = BatchSearch(any_offset=any_offset)
    found = search.next_batch(file, len(batch(100)), file.size(), 100)
    assert found == len(batch(100)) + len(junk) + (0 if any_offset else len(batch(7)))


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Search in windows of 1 to 4 KiB; returns the sizes that were read at once."""
    for name, size in {"_WINDOW": 1024, "_LARGEST_WINDOW": 4096, "_OVERLAP": 512, "_SMALL": 0}.items():
        monkeypatch.setattr(damage, name, size)
    sizes: list[int] = []
    read_at = File.read_at

    def note(self: File, size: int, position: int) -> bytes:
        sizes.append(size)
        return read_at(self, size, position)

    monkeypatch.setattr(File, "read_at", note)
    return sizes


@pytest.mark.parametrize("junk", [*range(4000, 4140, 3), *range(7500, 7720, 7), 100_000])
def test_the_memory_of_a_search_is_bounded_whatever_the_damage(
    tmp_path: Path, small_windows: list[int], junk: int
) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(100) + b"\xff" * junk + batch(101) + batch(102))
    with closing(DISK.open(path)) as file:
        found = BatchSearch().next_batch(file, len(batch(100)), file.size(), 100)
    assert found == len(batch(100)) + junk
    assert max(small_windows) <= 4096


@pytest.mark.parametrize("is_torn", [False, True])
def test_a_batch_in_a_torn_one_is_not_taken_for_the_next_however_far_it_is(
    tmp_path: Path, small_windows: list[int], is_torn: bool
) -> None:
    head = bytearray(batch(101))
    head[8:12] = (1 << 20).to_bytes(4)
    if not is_torn:
        head[16] = 9  # no magic
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(100) + head + b"\xff" * 50_000 + batch(7))
    with closing(DISK.open(path)) as file:
        found = BatchSearch().next_batch(file, len(batch(100)), file.size(), 100)
        assert found == file.size() - (0 if is_torn else len(batch(7)))
    assert max(small_windows) <= 4096
