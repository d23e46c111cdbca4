"""Compare exports of logs to tables with Spark's Kafka connector, and with Parquet that is written without Spark.

Contenders take turns in one Spark session, whose first rounds are not measured. Each pass writes a new table, whose
rows are counted and which is removed. All tables are compressed with the same codec.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.data import FOLDER
from benchmarks.measure import Result, tell, within
from benchmarks.registry import Outcome
from benchmarks.spark_export import json_log
from benchmarks.spark_export.spark import Export, run_exports
from benchmarks.spark_process import Session
from benchmarks.spark_read import logs
from benchmarks.spark_read.serving import served_to_connector
from tests.spark import sessions

SEGMENTS = 10  # number of segments: 10 gigabytes, and 87 million records
_LAKES = ("delta", "iceberg")


def run(*, repeat: int, quick: bool = False) -> Outcome:
    """Run all parts of this benchmark; `quick` uses a tenth of the data, and leaves out how an export grows."""
    scale = 10 if quick else 1
    repeat = min(repeat, 5)  # a round takes minutes
    results: list[Result] = []
    for codec in ("none", "lz4"):
        results += _parquet(codec, scale=scale, repeat=repeat)
    results += _json(scale=scale, repeat=repeat)
    details: dict[str, object] = {}
    if not quick:
        growth, details = _growth()
        results += growth
    return Outcome(results, details)


def _parquet(codec: str, *, scale: int, repeat: int) -> list[Result]:
    """Compare an export to Parquet with the connector, and with pyarrow alone; and other formats with Parquet."""
    name = "uncompressed" if codec == "none" else codec
    tell(f"export, {name}")
    folder = logs.make(codec, 1, scale)
    count = logs.RECORDS // scale
    source = {"path": str(folder)}
    exports = [Export("parquet", "export", source), Export("alone", "alone", source)]
    if codec == "none":
        exports += [Export(each, "export", {**source, "format": each}) for each in _LAKES]
    with served_to_connector(folder) as address:
        settings = {}
        if address:
            broker = {"kafka.bootstrap.servers": address, "subscribe": logs.TOPIC, "minPartitions": "8"}
            exports.append(Export("connector", "connector", {**broker, "startingOffsets": "earliest"}))
            settings = {"spark.driver.extraClassPath": sessions.connector_path()}
        answer = run_exports(exports, count=count, repeat=repeat, session=Session(settings=settings))
    results = []
    if address:
        title = f"export to Parquet, {name} vs Spark's Kafka connector"
        results.append(answer.ratio(title, "parquet", "connector", count, 3))
    title = f"export to Parquet, {name} vs decoding and writing with pyarrow alone"
    results.append(answer.ratio(title, "parquet", "alone", count, 0.6))
    if codec == "none":
        results += [
            answer.ratio(f"export to {each.title()}, {name} vs Parquet", each, "parquet", count, None)
            for each in _LAKES
        ]
    return results


def _json(*, scale: int, repeat: int) -> list[Result]:
    """Compare values that workers parse with Spark's `from_json` on the rows of our source."""
    tell("JSON to typed columns")
    count = logs.RECORDS // scale
    source = {"path": str(json_log.make(count)), "schema": json_log.SCHEMA}
    exports = [
        Export("typed table", "typed", source),
        Export("from_json table", "from_json", source),
        Export("typed rows", "typed rows", source),
        Export("from_json rows", "from_json rows", source),
    ]
    answer = run_exports(exports, count=count, repeat=repeat, session=Session())
    return [
        answer.ratio("JSON to typed columns of a table vs from_json", "typed table", "from_json table", count, 2),
        answer.ratio("JSON to typed columns in Spark vs from_json", "typed rows", "from_json rows", count, 2),
    ]


def _growth() -> tuple[list[Result], dict[str, object]]:
    """Measure how the time and memory of an export grow from one segment to ten."""
    seconds, memory = {}, {}
    large = logs.make("none", SEGMENTS, 1)
    with tempfile.TemporaryDirectory(dir=FOLDER) as work:
        for segments in (1, SEGMENTS):
            tell(f"{segments} of {SEGMENTS} segments")
            folder = _linked(large, segments, Path(work))
            export = Export("parquet", "export", {"path": str(folder)})
            count = segments * logs.RECORDS
            answer = run_exports([export], count=count, repeat=2, session=Session(), warm=1)
            seconds[segments], memory[segments] = answer.seconds("parquet"), answer.worker_mib
    return [
        Result(
            name="export of ten times the log: how much longer than ten times",
            ratio=SEGMENTS * seconds[1] / seconds[SEGMENTS],
            ours=seconds[SEGMENTS],
            peer=seconds[1] * SEGMENTS,
            unit="s",
        ),
        within("memory of a worker that exports, on ten times the log", memory[SEGMENTS], 1.15 * memory[1], "MiB"),
    ], {"seconds_by_segments": seconds, "worker_mib_by_segments": memory}


def _linked(folder: Path, segments: int, work: Path) -> Path:
    """Return a directory with the first segments of a log."""
    target = work / f"{segments}"
    for partition in folder.iterdir():
        (target / partition.name).mkdir(parents=True)
        names = sorted({path.name.split(".")[0] for path in partition.glob("0*")})[:segments]
        for path in partition.iterdir():
            if path.name.split(".")[0] in names or not path.name.startswith("0"):
                (target / partition.name / path.name).hardlink_to(path)
    return target
