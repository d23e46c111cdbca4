"""Compare the sink with Spark's Kafka connector and a broker, and with a sink that drops all rows.

The same cached rows are written in turns, in one Spark session. The first rounds are for warming up, and are not
measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.log.sets import scratch
from benchmarks.measure import Result, tell, within
from benchmarks.registry import Outcome
from benchmarks.spark_read import logs
from benchmarks.spark_write import plain
from benchmarks.spark_write.spark import Passes, Write, has_connector, run_empty, write
from benchmarks.warm_broker import WarmBroker, warm_broker
from octavo.log import DataDirectory
from octavo.records import Codec
from tests.kafka.releases import KafkaUnavailable

CODECS: Final = ("none", "lz4")
MANY: Final = 1_000  # partitions
_WARM: Final = 3
_LARGE_BATCHES: Final = {"kafka.batch.size": "262144", "kafka.linger.ms": "20"}  # as large as those of the sink
_BROKER: Final = {"broker.session.timeout.ms": "60000"}  # it is the only one, and must not be fenced while disks sync


def run(*, repeat: int, quick: bool = False) -> Outcome:
    """Run all parts of this benchmark; `quick` uses a tenth of the data, and leaves out the ten gigabytes."""
    scale = 10 if quick else 1
    repeat = min(repeat, 5)  # a round takes a minute
    rows = logs.make("none", 1, scale)
    results: list[Result] = []
    details: dict[str, Any] = {}
    with scratch() as folder:
        for codec in CODECS:
            found, passes = _against_the_connector(rows, folder, codec, repeat=repeat)
            results += found
            details[codec] = passes.of
        results += _empty(folder, details, repeat=2 if quick else repeat)
        if not quick:
            results += _growth(rows, folder, details)
    return Outcome(results, details)


def _against_the_connector(rows: Path, folder: Path, codec: str, *, repeat: int) -> tuple[list[Result], Passes]:
    """Measure the sink against the connector, a sink that drops all rows, and encoding and writing without Spark."""
    name = "uncompressed" if codec == "none" else codec
    tell(f"write, {name}")
    writes = [
        Write("dropped", "dropping"),
        Write("octavo", "octavo", {"compression": codec}),
        Write("octavo, unsynced", "octavo", {"compression": codec, "sync": "false"}),
    ]
    with _broker(folder / f"kafka-{codec}") as broker:
        if broker is not None:
            defaults = {"kafka.compression.type": codec}
            writes.append(Write("connector", "kafka", defaults))
            writes.append(Write("connector, tuned", "kafka", {**defaults, **_LARGE_BATCHES}))
        passes = write(writes, rows=rows, folder=folder, broker=broker, repeat=repeat, warm=_WARM)
    alone = plain.measure(rows, folder, Codec[codec.upper()], min(repeat, 3))
    results = []
    if "connector" in passes.of:
        results += [
            _ratio(f"write, {name} vs Spark's Kafka connector", passes, "octavo", "connector", 3),
            _ratio(f"write, {name}, not synced vs Spark's Kafka connector", passes, "octavo, unsynced", "connector"),
            _ratio(f"write, {name} vs the connector with batches of 256 KiB", passes, "octavo", "connector, tuned"),
            _cpu(name, passes),
        ]
    results += [
        _ratio(f"write, {name} vs a sink that drops all rows", passes, "octavo", "dropped"),
        _speed(f"write, {name} vs from_arrow on one core", passes, alone.encoding),
        _speed(f"write, {name} vs from_arrow and a plain write on one core", passes, alone.encoding + alone.writing),
    ]
    return results, passes


@contextmanager
def _broker(folder: Path) -> Iterator[WarmBroker | None]:
    """Run a broker; yield None if Kafka or the connector is not available."""
    if not has_connector():
        tell("Spark's Kafka connector is missing: run `make kafka` to fetch it")
        yield None
        return
    try:
        with warm_broker(folder, _BROKER) as broker:
            yield broker
        shutil.rmtree(folder)
    except KafkaUnavailable as missing:
        tell(str(missing))
        yield None


def _ratio(name: str, passes: Passes, ours: str, peer: str, target: float | None = None) -> Result:
    mine, other = passes.median(ours), passes.median(peer)
    return Result(
        name=name,
        ratio=other / mine,
        best_ratio=passes.best(peer) / passes.best(ours),
        ours=passes.rows / mine,
        peer=passes.rows / other,
        unit="records/s",
        target=target,
    )


def _cpu(name: str, passes: Passes) -> Result:
    """Compare the CPU seconds of Spark, its Python workers and the broker."""
    mine, other = (
        passes.median(each, "spark_cpu") + passes.median(each, "broker_cpu") for each in ("octavo", "connector")
    )
    return Result(
        name=f"CPU of Spark and broker, {name} vs Spark's Kafka connector",
        ratio=other / mine,
        ours=mine,
        peer=other,
        unit="s",
    )


def _speed(name: str, passes: Passes, seconds: float) -> Result:
    mine = passes.median("octavo")
    return Result(
        name=name, ratio=seconds / mine, ours=passes.rows / mine, peer=passes.rows / seconds, unit="records/s"
    )


def _empty(folder: Path, details: dict[str, Any], *, repeat: int) -> list[Result]:
    """Measure a micro-batch without rows, for a topic with many partitions."""
    tell(f"empty micro-batches, {MANY:,} partitions")
    target = folder / "many"
    with DataDirectory.open(target) as directory:
        directory.create_topic("many", MANY)
    sinks = {"noop": {}, "dropping": {}, "octavo": {"path": str(target), "topic": "many"}}
    passes = run_empty(sinks, folder=folder / "checkpoints", repeat=repeat, count=20)
    details["empty micro-batches"] = {name: passes.median(name) for name in sinks}
    mine, other = passes.median("octavo"), passes.median("dropping")
    return [
        within(f"an empty micro-batch, {MANY:,} partitions", mine, 0.3, "s"),
        Result(
            name="an empty micro-batch vs one of a sink that does nothing",
            ratio=other / mine,
            ours=mine,
            peer=other,
            unit="s",
        ),
    ]


def _growth(rows: Path, folder: Path, details: dict[str, Any]) -> list[Result]:
    """Measure how the time grows from one gigabyte to ten, of the same cached rows again and again."""
    seconds = {}
    for times in (1, 2, 5, 10):
        tell(f"{times} gigabytes")
        one = Write("octavo", "octavo", times=times)
        seconds[times] = write([one], rows=rows, folder=folder, broker=None, repeat=2, warm=max(1, 4 - times)).median(
            "octavo"
        )
    details["seconds by gigabytes"] = seconds
    return [
        Result(
            name="ten times the rows, against ten times the time",
            ratio=10 * seconds[1] / seconds[10],
            ours=seconds[10],
            peer=10 * seconds[1],
            unit="s",
        )
    ]
