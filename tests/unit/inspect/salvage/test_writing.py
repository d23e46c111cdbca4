"""Into which segments the batches of a salvage are divided."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from octavo.inspect.salvage import salvage, writing
from octavo.records import read_batches
from tests.crash.storage import FastStorage
from tests.unit.inspect.salvage.damaging import Batches, batches_in, make_compacted_log, make_log


@pytest.mark.parametrize("make", [make_log, make_compacted_log])
@pytest.mark.parametrize("largest", [1, 2500, 6000])
def test_no_segment_is_larger_than_kafka_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Batches], largest: int
) -> None:
    source = tmp_path / "events-0"
    before = make(source, seed=4)
    assert max(path.stat().st_size for path in source.glob("*.log")) > 6000
    monkeypatch.setattr(writing, "_LARGEST", largest)
    [report] = salvage([source], tmp_path / "result", storage=FastStorage()).partitions
    assert batches_in(tmp_path / "result") == before
    assert not report.has_lost
    files = sorted((tmp_path / "result").glob("*.log"))
    assert len(files) == report.segments
    for path in files:
        found = list(read_batches(path.read_bytes()))
        assert path.stat().st_size <= largest or len(found) == 1
        assert int(path.stem) <= found[0].base_offset
