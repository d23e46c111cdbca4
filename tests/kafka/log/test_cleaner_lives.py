"""The same log compacted by Kafka's cleaner and by ours, over several rounds: in the end all that can go has gone.

The log is written once, by Kafka or by Octavo, from a seed (`tests.workload`), and each compacts a copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.batches import TIME_MS
from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenCompacting
from tests.kafka.log.ours import Ours
from tests.kafka.log.producing import Compacting
from tests.kafka.log.side_by_side import FOLDER
from tests.kafka.unified_log import UnifiedLog
from tests.selection import some
from tests.workload.generator import CODECS, Shape, Step, Workload
from tests.workload.legacy import DAY_MS, plant

STEPS: Final = 160
RETENTION_MS: Final = 10_000  # of tombstones
SLOT: Final = 24  # bytes that a key takes in the map


class Life:
    """A log that is written, compacted, written to, compacted again..."""

    def __init__(self, seed: int, shape: Shape, judge: Judge, folder: Path, *, by_kafka: bool) -> None:
        self.workload = Workload(seed, shape)
        self.folder = folder / FOLDER
        self.folder.parent.mkdir()
        now_ms = TIME_MS
        settings = {"message.timestamp.type": "LogAppendTime" if seed % 5 == 4 else "CreateTime"}
        log: Any = (
            UnifiedLog.open(judge, self.folder, settings, clock=lambda: now_ms)
            if by_kafka
            else Ours.open(self.folder, settings, clock=lambda: now_ms)
        )
        for step in self.workload.take(STEPS):
            now_ms = step.time_ms
            _do(log, step)
        log.close()


def _do(log: Any, step: Step) -> None:
    if step.rolls:
        log.roll()
    else:
        log.append(step.batches, origin=step.origin)


def _go_on(both: Compacting, steps: Iterable[Step]) -> None:
    for step in steps:
        both.now_ms = step.time_ms
        for log in (both.kafka, both.octavo):
            _do(log, step)
    both.roll()


def _live(both: Compacting, workload: Workload, *, rounds: int = 4, map_memory: int = 1 << 20) -> None:
    """Compact, write more, wait, and so on; all that is open is ended before the last of the rounds."""
    workload.shape = replace(workload.shape, keyless=0)  # now that it is compacted nobody may
    for _ in range(rounds):
        both.compact_all(map_memory)
        _go_on(both, workload.take(30))
        workload.time_ms += RETENTION_MS // 2
    both.now_ms = workload.time_ms
    _go_on(both, workload.end_all())
    both.compact_all(map_memory)
    both.read_committed((1,))
    both.close()
    both.check_sound()
    both.swap()
    both.open()
    _go_on(both, workload.take(10))
    both.close()


@pytest.mark.parametrize("seed", some(range(10), 3))
def test_rounds(seed: int, kafka_broker: Judge, memory_path: Path, open_compacting: OpenCompacting) -> None:
    shape = Shape(keys=(5, 40, 300)[seed % 3], keyless=0.05 if seed % 4 == 3 else 0)
    life = Life(seed, shape, kafka_broker, memory_path / f"rounds-{seed}", by_kafka=seed % 2 == 0)
    both = open_compacting(
        source=life.folder,
        now_ms=life.workload.time_ms,
        delete_retention_ms=RETENTION_MS,
        index_interval_bytes=200,
        internal_segment_bytes=(1500, 6000, 1_000_000)[seed % 3],
    )
    _live(both, life.workload)


@pytest.mark.parametrize("keys", [3, 20, 60])
def test_a_map_that_is_too_small(
    keys: int, kafka_broker: Judge, memory_path: Path, open_compacting: OpenCompacting
) -> None:
    """The cleaner then stops where it is full, in the midst of a segment or of a batch, and goes on another time."""
    shape = Shape(keys=100, skew=1.2)
    life = Life(keys, shape, kafka_broker, memory_path / f"map-{keys}", by_kafka=keys % 2 == 0)
    both = open_compacting(
        source=life.folder,
        now_ms=life.workload.time_ms,
        internal_segment_bytes=8000,
        index_interval_bytes=10
        ** 7,  # by an index Kafka would begin behind markers: see test_a_deleted_key_stays_deleted
    )
    passes = both.compact_all(map_memory=keys * SLOT)
    assert passes > 2
    _go_on(both, life.workload.take(30))
    both.compact_all(map_memory=keys * SLOT)
    both.close()


@pytest.mark.parametrize("codec", some([*CODECS, "all"], where=lambda codec: codec == "all"))
def test_codecs(codec: Any, kafka_broker: Judge, memory_path: Path, open_compacting: OpenCompacting) -> None:
    codecs = CODECS if codec == "all" else (codec,)
    shape = Shape(codecs=codecs, largest_batch=40, keys=60)
    life = Life(11, shape, kafka_broker, memory_path / f"codec-{codec}", by_kafka=codec in ("gzip", "zstd", "all"))
    both = open_compacting(
        source=life.folder,
        now_ms=life.workload.time_ms,
        exact=False,
        delete_retention_ms=RETENTION_MS,
    )
    _live(both, life.workload, rounds=3)


@pytest.mark.parametrize("seed", range(3))
def test_a_transaction_that_hangs(
    seed: int, kafka_broker: Judge, memory_path: Path, open_compacting: OpenCompacting
) -> None:
    """What is not decided is not cleaned, nor is anything behind it, until it is ended."""
    shape = Shape(hangs=True, transactions=4)
    life = Life(seed, shape, kafka_broker, memory_path / f"hangs-{seed}", by_kafka=seed == 1)
    both = open_compacting(source=life.folder, now_ms=life.workload.time_ms, delete_retention_ms=RETENTION_MS)
    both.compact_all()
    stuck = both.check_cleanable().first_uncleanable_offset
    assert stuck <= both.producers.first_unstable_offset
    _live(both, life.workload, rounds=2)
    both.open()
    assert both.check_cleanable().first_uncleanable_offset > stuck
    both.close()


@pytest.mark.parametrize("seed", range(4))
def test_old_magics(seed: int, memory_path: Path, open_compacting: OpenCompacting) -> None:
    """Segments of old messages, then of new batches; by turns with codecs, and without."""
    folder = memory_path / f"legacy-{seed}" / FOLDER
    shape = Shape(keys=15, tombstones=0.3, keyless=0.03)
    plant(folder, Random(seed), segments=5, shape=shape, codecs=seed % 2 == 0)
    both = open_compacting(
        source=folder,
        exact=seed % 2 == 1,
        delete_retention_ms=2 * DAY_MS,
        internal_segment_bytes=(1_000_000, 2500, 2500, 4000)[seed],
    )
    workload = Workload(seed, replace(shape, keyless=0))
    _go_on(both, workload.take(30))
    both.compact_all(map_memory=6 * SLOT if seed == 3 else 1 << 20)
    for _ in range(3):
        workload.time_ms += 2 * DAY_MS
        _go_on(both, workload.take(15))
        both.compact_all()
    both.read_committed((1,))
    both.close()


def test_compacted_and_deleted(kafka_broker: Judge, memory_path: Path, open_compacting: OpenCompacting) -> None:
    life = Life(21, Shape(), kafka_broker, memory_path / "both", by_kafka=True)
    both = open_compacting(
        source=life.folder,
        now_ms=life.workload.time_ms,
        cleanup_policy="compact,delete",
        retention_ms=8000,
        delete_retention_ms=3000,
        internal_segment_bytes=3000,
    )
    for _ in range(5):
        both.compact_all()
        both.apply_retention()
        _go_on(both, life.workload.take(30))
        life.workload.time_ms += 2000
    both.delete_records_before(both.state.end_offset - 60)
    both.compact_all()
    both.apply_retention()
    both.compact_all()
    both.delete_files()
    assert both.state.start_offset > 0
    both.close()
