"""Query the data directory with Spark SQL, write the answer to it, and export it to a table, if Spark is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from rich.markup import escape

from octavo.cli.demo import round_trip
from octavo.cli.demo.serving import Clicks
from octavo.cli.demo.stage import Stage, table
from octavo.errors.root import Signal

SQL: Final = """\
SELECT topic, get_json_object(CAST(value AS STRING), '$.pages') AS pages,
       count(*) AS orders, max(timestamp) AS last
FROM log WHERE topic IN ('orders', 'returns') GROUP BY ALL ORDER BY topic, pages"""
TOPIC: Final = "totals"
_WRITE: Final = f"""\
totals.selectExpr("topic AS key", "to_json(struct(*)) AS value").write.format("octavo") \\
    .options(topic="{TOPIC}", partitions="2").mode("append").save(folder)"""
_TIMEOUT_S: Final = 500
_NUMBERS: Final = ("pages", "orders", "partition", "offset", "records", "the newest was produced")

Rows = list[dict[str, str]]


class SparkFailed(Signal):
    """The process with Spark failed, and this is the last that it said."""


def show(stage: Stage, folder: Path, clicks: Clicks | None = None) -> None:
    """Query the directory that the earlier chapters have written, and write to it; and one that a broker serves."""
    stage.chapter("Ask: the log as a table, by Spark SQL")
    stage.code(
        f'spark.read.format("octavo").load(folder).createOrReplaceTempView("log")\ntotals = spark.sql("""{SQL}""")'
    )
    missing = what_is_missing()
    if missing:
        stage.say(escape(f"Not now: {missing}."))
        return
    try:
        if clicks is not None:
            clicks.go_on()
        with stage.waiting("Spark takes some seconds to start."):
            answer, written, trip, seen = ask(folder, None if clicks is None else clicks.folder)
    except SparkFailed as failed:
        stage.say(escape(f"Spark failed here; docs/spark.md says what it needs. Its last line: {failed}"))
        return
    _show_rows(stage, answer)
    stage.say(
        "No broker was asked: the tasks read the segments, and decode only what is between the offsets asked for."
    )
    if seen:
        _show_live(stage, seen)
    stage.chapter("Answer: a table as a topic, each row once")
    stage.code(_WRITE)
    _show_rows(stage, written)
    stage.say("The topic is new, with two partitions, and rows are in those that Kafka's producer would choose.")
    round_trip.show(stage, trip)


def _show_live(stage: Stage, seen: Rows) -> None:
    stage.chapter("Meanwhile: what clients produce over the wire, read from the files")
    stage.code('spark.read.format("octavo").load(served)  # to which librdkafka goes on producing')
    _show_rows(stage, seen)
    stage.say("The broker notes twice a second how far its files may be read, so readers are never far behind.")


def _show_rows(stage: Stage, rows: Rows) -> None:
    drawn = table(*rows[0], right=_NUMBERS)
    for row in rows:
        drawn.add_row(*map(escape, row.values()))
    stage.show(drawn)


def what_is_missing() -> str:
    """Return a sentence that says what is missing to run Spark; an empty string if nothing is."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed; pip install 'octavo[spark]' brings it"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Spark needs Java, 17 or later, and there is none on the PATH"
    return ""


def ask(folder: Path, served: Path | None = None) -> tuple[Rows, Rows, dict[str, Any], Rows]:
    """Return the rows of the query, those of the topic that they were written to, and what `round_trip` has done.

    Last comes what was seen of the directory `served`, to which a broker is writing. Raises `SparkFailed`.
    """
    command = [sys.executable, "-m", "octavo.cli.demo.query", str(folder), SQL, TOPIC]
    if served is not None:
        command.append(str(served))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise SparkFailed(f"there was no answer for {_TIMEOUT_S} s") from None
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise SparkFailed(said[-1] if said else f"it ended with {done.returncode}")
    answer, written, trip, seen = json.loads(done.stdout.splitlines()[-1])
    return answer, written, trip, seen
