"""Compare compaction with Apache Kafka's own cleaner, on the same log, with the same memory for the offset map."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from benchmarks.compaction.logs import CONFIG, DirtyLog
from benchmarks.fresh import run_fresh
from benchmarks.log.sets import scratch
from benchmarks.measure import Contender, Peer, Result, compare, tell, within
from octavo.log import Log, LogConfig
from octavo.records import Codec
from tests.kafka.judge import Judge

_COUNT: Final = 10_000_000
_KEYS: Final = 1_000_000
_MAP_MEMORY: Final = 128 << 20
_TARGET: Final = 1.0
_MOST_MIB: Final = 512
_ROUNDS: Final = 3  # number of rounds; each takes half a minute
_JAVA: Final = ("-Xms2g", "-Xmx2g", "-XX:+UseSerialGC")


def clean(*, repeat: int, scale: int) -> list[Result]:
    """Measure the speed and memory of compaction, with and without compression."""
    results: list[Result] = []
    logs = [DirtyLog(codec, _COUNT // scale, _KEYS // scale) for codec in (Codec.NONE, Codec.LZ4)]
    for log in logs:
        log.prepare()
    with scratch() as folder, Judge("broker", _JAVA) as kafka:
        for log in logs:
            ours = Contender("octavo", log.count, partial(_clean, log, folder))
            peer = Contender(
                "Apache Kafka's cleaner",
                log.count,
                partial(_have_cleaned, kafka, log, folder),
            )
            name = f"clean {log.count:,} records of {log.keys:,} keys, {_name(log)}"
            results += compare(name, ours, [Peer(peer, _TARGET)], unit="records/s", repeat=min(repeat, _ROUNDS))
    return results + [_memory(log) for log in logs]


def _name(log: DirtyLog) -> str:
    return "uncompressed" if log.codec is Codec.NONE else log.codec.name.lower()


def _clean(dirty: DirtyLog, folder: Path) -> float:
    partition = dirty.copy(folder / "ours")
    with Log.open(partition, LogConfig.from_properties(CONFIG)) as log:
        begin = perf_counter()
        stats = log.compact(map_memory=_MAP_MEMORY)
        taken = perf_counter() - begin
        assert stats is not None
        assert stats.end_offset == dirty.count
    shutil.rmtree(folder / "ours")
    return taken


def _have_cleaned(kafka: Judge, dirty: DirtyLog, folder: Path) -> float:
    partition = dirty.copy(folder / "kafka")
    answer: dict[str, Any] = kafka.ask(
        "log.timeCleaning", folder=str(partition), config=CONFIG, memory=_MAP_MEMORY, clean=True
    )
    assert answer["messagesRead"] == dirty.count
    shutil.rmtree(folder / "kafka")
    return float(answer["nanoseconds"] / 1e9)


def _memory(dirty: DirtyLog) -> Result:
    """Measure how much more memory a process needs while it compacts."""
    tell(f"memory to clean: {_name(dirty)}")
    with scratch() as folder:
        dirty.copy(folder / "data")
        found = run_fresh("compaction", str(folder), str(_MAP_MEMORY), OCTAVO_KERNELS="compiled")
    name = f"memory to clean {dirty.count:,} records of {dirty.keys:,} keys, {_name(dirty)}"
    return within(name, found["peak_mib"], _MOST_MIB, "MiB")
