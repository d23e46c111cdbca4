"""Partitions that were damaged while nobody had them open, and both logs opened on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Final

from tests.batches import TIME_MS
from tests.clock import Clock
from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenBoth
from tests.kafka.log.samples import batch
from tests.kafka.log.side_by_side import SideBySide
from tests.kafka.unified_log import CLEAN_SHUTDOWN, RECOVERY_POINTS, START_OFFSETS, UnifiedLog
from tests.workload.generator import Step

CONFIG: Final = {"internal.segment.bytes": "900", "index.interval.bytes": "150"}
SETTINGS: Final = {"internal_segment_bytes": 900, "index_interval_bytes": 150}

Damage = Callable[[Path], object]


def write_source(judge: Judge, folder: Path) -> Path:
    """Have Kafka write a log of five segments and three epochs, and close it."""
    random = Random(7)
    folder.parent.mkdir()
    log = UnifiedLog.open(judge, folder, CONFIG, clock=lambda: TIME_MS)
    for number in range(24):
        if number % 9 == 0:
            log.become_leader(number)
        codec = random.choice(("none", "none", "gzip"))
        time_ms = TIME_MS + random.randrange(100)
        log.append(batch(random.choice((1, 2, 5)), size=random.choice((5, 90)), timestamp_ms=time_ms, codec=codec))
    assert len(log.segments) >= 4
    log.close()
    return folder


def bases_of(folder: Path) -> list[int]:
    return sorted(int(file.stem) for file in folder.glob("*.log"))


def file_of(folder: Path, number: int, kind: str = "log") -> Path:
    """A file of the segment with this number, counted from the oldest, or with -1 from the newest."""
    return folder / f"{bases_of(folder)[number]:020d}.{kind}"


def unclean(folder: Path, recovery_point: int = 0) -> None:
    (folder.parent / CLEAN_SHUTDOWN).unlink()
    topic, _, partition = folder.name.rpartition("-")
    (folder.parent / RECOVERY_POINTS).write_text(f"0\n1\n{topic} {partition} {recovery_point}\n")


def start_at(folder: Path, offset: int) -> None:
    topic, _, partition = folder.name.rpartition("-")
    (folder.parent / START_OFFSETS).write_text(f"0\n1\n{topic} {partition} {offset}\n")


def _opened(open_both: OpenBoth, source: Path, damage: Damage) -> SideBySide:
    """Open both on the same damage, and compare all that can be read."""
    both = open_both(source=source, damage=damage, **SETTINGS)
    both.read_everything((1, 3000))
    both.offsets_for_timestamps(range(TIME_MS - 1, TIME_MS + 102, 10))
    assert both.epochs is not None
    return both


def judged(open_both: OpenBoth, source: Path, damage: Damage) -> None:
    """Open both on the same damage, go on, and compare what is left. Raises `Refused` where Kafka does not open it."""
    both = _opened(open_both, source, damage)
    both.close()
    both.open()
    both.append(batch(2))
    both.close()


def write_by_kafka(judge: Judge, folder: Path, steps: Iterable[Step]) -> None:
    """Have Kafka write a log, in a new folder, each step at its time."""
    folder.parent.mkdir()
    clock = Clock()
    log = UnifiedLog.open(judge, folder, {}, clock=clock)
    for step in steps:
        clock.now_ms = step.time_ms
        if step.rolls:
            log.roll()
        else:
            log.append(step.batches, origin=step.origin)
    log.close()
