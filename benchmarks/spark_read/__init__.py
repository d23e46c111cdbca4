"""Compare `format("octavo")` with ready-made Arrow batches, and with Spark's Kafka connector and a broker.

All rows go into the JVM, to Spark's `noop` sink, which drops them. Contenders take turns in one Spark session. Its
first rounds are for warming up, and are not measured.
"""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.measure import Result, tell, within
from benchmarks.registry import Outcome
from benchmarks.spark_process import Session
from benchmarks.spark_read import logs, ready
from benchmarks.spark_read.serving import served_to_connector
from benchmarks.spark_read.spark import Query, ask
from tests.spark import sessions

CODECS = ("none", "lz4", "zstd")
SEGMENTS = 10  # number of segments: 10 gigabytes, and 87 million records


def run(*, repeat: int, quick: bool = False) -> Outcome:
    """Run all parts of this benchmark; `quick` uses a tenth of the data."""
    scale = 10 if quick else 1
    repeat = min(repeat, 5)  # a round takes a minute
    results: list[Result] = []
    for codec in CODECS:
        results += _scan(codec, scale=scale, repeat=repeat)
    large = logs.make("none", SEGMENTS, scale)
    results += _ranges(large, scale=scale, repeat=repeat)
    growth, details = _growth(large, scale=scale)
    results += growth
    results += _cores(scale=scale, repeat=repeat)
    return Outcome(results, details)


def _scan(codec: str, *, scale: int, repeat: int) -> list[Result]:
    """Measure a full scan, a scan of two columns, and a scan of committed data."""
    tell(f"full scan, {codec}")
    folder = logs.make(codec, 1, scale)
    count = logs.RECORDS // scale
    path = {"path": str(folder)}
    narrow = {**path, "columns": "offset,timestamp"}
    queries = [
        Query("ready", path, "ready"),
        Query("full", path),
        Query("columns", narrow),
        Query("ready columns", narrow, "ready"),
        Query("all", path, anew=True),
        Query("committed", {**path, "isolation.level": "read_committed"}, anew=True),
    ]
    for query in queries:
        if query.format == "ready":
            ready.prepare(query.options)
    with served_to_connector(folder) as address:
        settings = {}
        if address:
            options = {"kafka.bootstrap.servers": address, "subscribe": logs.TOPIC, "minPartitions": "8"}
            queries.append(Query("connector", options, "kafka"))
            settings = {"spark.driver.extraClassPath": sessions.connector_path()}
        answer = ask(queries, repeat=repeat, session=Session(settings=settings))
    name = "uncompressed" if codec == "none" else codec
    results = [
        answer.ratio(f"full scan, {name} vs ready-made batches", "full", "ready", count, 0.85),
        answer.ratio(f"offset and timestamp, {name} vs the full scan", "columns", "full", count, 3),
        answer.ratio(f"offset and timestamp, {name} vs ready-made batches", "columns", "ready columns", count, None),
        answer.ratio(f"committed data, {name}, planning included, vs all", "committed", "all", count, 0.9),
    ]
    if address:
        results.append(answer.ratio(f"full scan, {name} vs Spark's Kafka connector", "full", "connector", count, 3))
    return results


def _ranges(folder: Path, *, scale: int, repeat: int) -> list[Result]:
    """Measure reading a hundredth of the log, by offsets and by time."""
    tell("ranges of one in a hundred")
    count = SEGMENTS * logs.RECORDS // scale
    first, end = count // 2, count // 2 + count // 100
    path = {"path": str(folder)}
    times = _times(folder, scale)
    queries = [
        Query("full", path),
        Query("empty", {**path, "startingOffsets": _offsets(first), "endingOffsets": _offsets(first)}),
        Query("offsets", {**path, "startingOffsets": _offsets(first), "endingOffsets": _offsets(end)}),
        Query("time", {**path, "startingTimestamp": str(times[0]), "endingTimestamp": str(times[1])}),
    ]
    answer = ask(queries, repeat=min(repeat, 3), warm=1)
    nothing = answer.seconds("empty")
    full = answer.seconds("full") - nothing
    return [
        within(f"a range of 1 % by {name}, of the full scan's time", (answer.seconds(name) - nothing) / full, 0.05, "")
        for name in ("offsets", "time")
    ]


def _offsets(offset: int) -> str:
    return json.dumps({logs.TOPIC: {"0": offset}})


def _times(folder: Path, scale: int) -> tuple[int, int]:
    """Return the first and last timestamp of about a hundredth of the log, from its middle on."""
    from octavo.log.segment.index import TimeIndex
    from octavo.log.storage import DISK

    indexes = sorted((folder / f"{logs.TOPIC}-0").glob("*.timeindex"))
    first = TimeIndex(DISK, indexes[0], 0).lookup(2**62)
    last = TimeIndex(DISK, indexes[-1], 0).lookup(2**62)
    assert first is not None
    assert last is not None
    length = (last.timestamp_ms - first.timestamp_ms) * SEGMENTS // (SEGMENTS - 1)
    begin = last.timestamp_ms - length
    return begin + length // 2, begin + length // 2 + length // 100


def _growth(folder: Path, *, scale: int) -> tuple[list[Result], dict[str, object]]:
    """Measure how the time and memory of a query grow from one segment to ten."""
    count = logs.RECORDS // scale
    seconds = {}
    memory = {}
    for segments in (1, 2, 5, SEGMENTS):
        tell(f"{segments} of {SEGMENTS} segments")
        query = Query("full", {"path": str(folder), "endingOffsets": _offsets(segments * count)})
        answer = ask([query], repeat=2, warm=max(1, 4 - segments))
        seconds[segments] = answer.seconds("full")
        memory[segments] = answer.worker_mib
    growth = seconds[SEGMENTS] / seconds[1]
    return [
        Result(
            name="ten times the log takes how much longer than ten times",
            ratio=SEGMENTS / growth,
            ours=seconds[SEGMENTS],
            peer=seconds[1] * SEGMENTS,
            unit="s",
        ),
        within("memory of a worker on ten times the log", memory[SEGMENTS], 1.15 * memory[1], "MiB"),
    ], {"seconds_by_segments": seconds, "worker_mib_by_segments": memory}


def _cores(*, scale: int, repeat: int) -> list[Result]:
    """Compare a full scan on two cores with one on one core."""
    tell("one core and two")
    query = Query("full", {"path": str(logs.make("none", 1, scale))})
    one = ask([query], repeat=repeat, session=Session(cores=1)).seconds("full")
    two = ask([query], repeat=repeat).seconds("full")
    count = logs.RECORDS // scale
    return [
        Result(
            name="two cores vs one",
            ratio=one / two,
            ours=count / two,
            peer=count / one,
            unit="records/s",
            target=1.7,
        )
    ]
