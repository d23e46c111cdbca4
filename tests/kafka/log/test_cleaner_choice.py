"""What of a log Kafka's cleaner and ours find to clean, and whether it is time to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenCompacting
from tests.kafka.log.damage import bases_of, start_at, write_by_kafka
from tests.kafka.log.producing import Compacting
from tests.kafka.log.samples import keyed
from tests.kafka.log.side_by_side import FOLDER
from tests.workload.generator import Shape, Workload
from tests.workload.legacy import DAY_MS, plant

CHECKPOINT: Final = "cleaner-offset-checkpoint"
FOREVER: Final = 2**63 - 1


@pytest.fixture(scope="module")
def source(kafka_broker: Judge, memory_path: Path) -> Path:
    """A log of several segments, a step a second, with a transaction open in its last part."""
    folder = memory_path / "choice" / FOLDER
    write_by_kafka(kafka_broker, folder, Workload(3, Shape(rolls=0.12, step_ms=1000, hangs=True)).take(120))
    assert len(bases_of(folder)) > 6
    return folder


def _cleaned_to(offset: int | None) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        if offset is not None:
            (folder.parent / CHECKPOINT).write_text(f"0\n1\ntopic 0 {offset}\n")

    return write


def _opened(open_compacting: OpenCompacting, source: Path, offset: int | None = None, **given: Any) -> Compacting:
    both = open_compacting(source=source, damage=_cleaned_to(offset), **given)
    both.check_cleanable()
    return both


def test_after_every_checkpoint(source: Path, open_compacting: OpenCompacting) -> None:
    bases = bases_of(source)
    for offset in (None, 0, 1, bases[1], bases[2] + 1, bases[-2], bases[-1], bases[-1] + 1, 10**6):
        both = _opened(open_compacting, source, offset)
        assert both.check_cleanable().resets == (offset == 10**6)
        both.close()


def test_a_checkpoint_below_the_start(source: Path, open_compacting: OpenCompacting) -> None:
    start = bases_of(source)[2] + 1

    def damage(folder: Path) -> None:
        start_at(folder, start)
        _cleaned_to(3)(folder)

    for policy in ("compact", "compact,delete"):
        both = open_compacting(source=source, damage=damage, cleanup_policy=policy)
        assert both.check_cleanable().first_dirty_offset == start
        both.compact()
        both.close()


@pytest.mark.parametrize("lag_ms", [0, 1, 20_000, 60_000, FOREVER])
def test_what_is_young_stays_for_a_while(lag_ms: int, source: Path, open_compacting: OpenCompacting) -> None:
    both = _opened(open_compacting, source, min_compaction_lag_ms=lag_ms)
    for _ in range(4):
        both.now_ms += 30_000
        found = both.check_cleanable()
    assert (found.cleanable_bytes == 0) == (lag_ms == FOREVER)
    assert (both.compact() is None) == (lag_ms == FOREVER)
    both.close()


@pytest.mark.parametrize("lag_ms", [1, 60_000, 10**9])
def test_what_is_old_has_to_go(lag_ms: int, source: Path, open_compacting: OpenCompacting) -> None:
    """However little of the log it is."""
    offset = bases_of(source)[3]
    both = _opened(open_compacting, source, offset, max_compaction_lag_ms=lag_ms, min_cleanable_dirty_ratio=1)
    both.now_ms += 100_000
    found = both.check_cleanable()
    assert (found.delay_ms > 0) == (lag_ms < 10**9)
    assert (both.compact() is not None) == (lag_ms < 10**9)
    both.close()


@pytest.mark.parametrize("ratio", [0, 0.2, 0.5, 0.9, 1])
def test_how_dirty_it_has_to_be(ratio: float, source: Path, open_compacting: OpenCompacting) -> None:
    outcomes = []
    for offset in (None, *bases_of(source)[1::2]):
        both = _opened(open_compacting, source, offset, min_cleanable_dirty_ratio=ratio)
        found = both.check_cleanable()
        done = both.compact()
        assert (done is not None) == (found.cleanable_ratio > ratio)
        outcomes.append(done is not None)
        both.close()
    assert any(outcomes) == (ratio < 1)


def test_segments_without_timestamps_are_as_old_as_their_files(
    memory_path: Path, open_compacting: OpenCompacting
) -> None:
    folder = memory_path / "legacy-choice" / FOLDER
    plant(folder, Random(1), segments=4)
    for lag_ms in (0, 1, DAY_MS // 2, DAY_MS, 3 * DAY_MS, 5 * DAY_MS):
        both = open_compacting(
            source=folder, min_compaction_lag_ms=lag_ms, max_compaction_lag_ms=5 * DAY_MS, exact=False
        )
        both.roll()
        both.check_cleanable()
        both.now_ms += 2 * DAY_MS
        both.check_cleanable()
        both.compact()
        both.close()


def test_what_is_clean_after_a_truncation(source: Path, open_compacting: OpenCompacting) -> None:
    bases = bases_of(source)
    for offset in (*bases, bases[2] + 1, bases[-1] + 1):
        both = _opened(open_compacting, source, bases[3])
        both.kafka.max_timestamp_offset()  # Kafka forgets times in a truncation unless it has looked at them
        both.truncate_to(offset)
        both.may_lack_snapshots = True  # Kafka writes one of where it was cut
        both.check_cleanable()
        both.append(keyed(b"a", b"b", b"c"))
        both.roll()
        both.check_cleanable()
        both.compact()
        both.close()


def test_nothing_to_clean(open_compacting: OpenCompacting) -> None:
    both = open_compacting()
    assert both.check_cleanable().cleanable_ratio == 0
    assert both.compact() is None
    both.close()
