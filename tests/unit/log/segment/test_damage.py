"""The search for the next batch after damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.log.segment.damage import BatchSearch
from octavo.log.storage import DISK
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
