"""Kafka's own tool is asked about a directory that a broker writes anew, and about thousands of damaged files."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.records import BatchBuilder, Codec
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD
from tests.golden.directories import unpack
from tests.kafka import releases
from tests.kafka.broker_directory import SETTINGS, fill
from tests.kafka.conftest import NewBroker
from tests.kafka.dump_tool import Run, differences
from tests.kafka.judge import Judge
from tests.kafka.test_kafka_text import damaged_runs
from tests.soak.plugin import Soak

pytestmark = pytest.mark.soak(10)

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


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_damaged_streams_of_many_blocks(tool: Judge, tmp_path: Path, codec: Codec, soak: Soak) -> None:
    """Where in a stream an exception comes depends on how much Java reads at a time."""
    for seed in soak.seeds():
        assert differences(tool, list(_damaged_streams(tmp_path, codec, random.Random(seed)))) == []


def _damaged_streams(folder: Path, codec: Codec, chance: random.Random) -> Iterator[Run]:
    sound = _large_batch(chance, codec)
    for number in range(60):
        data = bytearray(sound)
        at = chance.randrange(BATCH_HEADER.size, len(data))
        match number % 3:
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                end = min(at + 200, len(data))
                data[at:end] = bytes(end - at)
            case _:
                del data[at:]
                data[8:12] = (len(data) - LOG_OVERHEAD).to_bytes(4, "big")
        file = folder / f"{number}.log"
        file.write_bytes(data)
        yield Run([str(file)], ["--deep-iteration"])


def _large_batch(chance: random.Random, codec: Codec) -> bytes:
    builder = BatchBuilder(codec=codec)
    words = [chance.randbytes(chance.randrange(3, 30)) for _ in range(200)]
    for number in range(chance.choice((10, 100, 600))):
        value = b" ".join(chance.choices(words, k=chance.choice((1, 10, 60, 2000 if number % 50 == 0 else 2))))
        builder.append(b"%d" % number, value, timestamp_ms=number)
    return builder.build()


def test_damaged_files(tool: Judge, tmp_path: Path, soak: Soak) -> None:
    for name in ("dumped", "crashed", "closed"):
        unpack(name, tmp_path / "sound")
    work = tmp_path / "damaged"
    for seed in soak.seeds():
        work.mkdir()
        assert differences(tool, list(damaged_runs(tmp_path / "sound", work, seed, 200))) == []
        shutil.rmtree(work)
