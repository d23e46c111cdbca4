"""Kafka's own tool is asked about a directory that a broker writes anew, and about thousands of damaged files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.directories import unpack
from tests.kafka import releases
from tests.kafka.broker_directory import SETTINGS, fill
from tests.kafka.conftest import NewBroker
from tests.kafka.dump_tool import Run, differences
from tests.kafka.judge import Judge
from tests.kafka.test_kafka_text import damaged_runs

pytestmark = pytest.mark.soak

_HEAP = "-Xmx256m"  # that of Kafka's scripts, on which it depends which damage Java has no memory for


@pytest.fixture(scope="module")
def tool(java: str) -> Iterator[Judge]:
    """Kafka's tool, in a process with the memory that it has by default."""
    with Judge("broker", [_HEAP, *(option for option in releases.QUICK if not option.startswith("-Xmx"))]) as judge:
        yield judge


def test_a_directory_that_a_broker_has_just_written(new_broker: NewBroker, tool: Judge, tmp_path: Path) -> None:
    with new_broker(tmp_path / "data", settings=SETTINGS) as broker:
        broker.format()
        broker.start()
        fill(tool, broker)
        broker.stop()
    files = sorted(str(path) for path in (tmp_path / "data").rglob("*") if path.is_file())
    options: list[list[str]] = [[], ["--deep-iteration"], ["--print-data-log"], ["--verify-index-only"]]
    options += [["--offsets-decoder"], ["--transaction-log-decoder"], ["--cluster-metadata-decoder"]]
    options += [["--share-group-state-decoder"], ["--remote-log-metadata-decoder"]]
    runs = [Run([file], each) for file in files for each in options]
    assert differences(tool, runs) == []


@pytest.mark.parametrize("seed", range(20))
def test_damaged_files(tool: Judge, tmp_path: Path, seed: int) -> None:
    for name in ("dumped", "crashed", "closed"):
        unpack(name, tmp_path / "sound")
    work = tmp_path / "damaged"
    work.mkdir()
    assert differences(tool, list(damaged_runs(tmp_path / "sound", work, seed, 2000))) == []
