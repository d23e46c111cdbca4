"""Query the data directory as a table with Spark SQL, if Spark is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.markup import escape

from octavo.cli.demo.stage import Stage, table

SQL: Final = """\
SELECT topic, get_json_object(CAST(value AS STRING), '$.pages') AS pages,
       count(*) AS orders, max(timestamp) AS last
FROM log WHERE topic IN ('orders', 'returns') GROUP BY ALL ORDER BY topic, pages"""
_TIMEOUT_S: Final = 180


def show(stage: Stage, folder: Path) -> None:
    """Query the directory that the earlier chapters have written."""
    stage.chapter("Ask: the log as a table, by Spark SQL")
    stage.code(f'spark.read.format("octavo").load(folder).createOrReplaceTempView("log")\nspark.sql("""{SQL}""")')
    missing = what_is_missing()
    if missing:
        stage.say(escape(f"Not now: {missing}."))
        return
    with stage.waiting("Spark takes some seconds to start."):
        rows = ask(folder)
    if not rows:
        stage.say("Spark did not start here; docs/spark.md says what it needs.")
        return
    drawn = table(*rows[0], right=("pages", "orders"))
    for row in rows:
        drawn.add_row(*row.values())
    stage.show(drawn)
    stage.say(
        "No broker was asked: the tasks read the segments, and decode only what is between the offsets asked for."
    )


def what_is_missing() -> str:
    """Return a sentence that says what is missing to run Spark; an empty string if nothing is."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed; pip install 'octavo[spark]' brings it"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Spark needs Java, 17 or later, and there is none on the PATH"
    return ""


def ask(folder: Path) -> list[dict[str, str]]:
    """Return the rows of the query; an empty list if Spark fails."""
    command = [sys.executable, "-m", "octavo.cli.demo.query", str(folder), SQL]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return []
    if done.returncode:
        return []
    rows: list[dict[str, str]] = json.loads(done.stdout.splitlines()[-1])
    return rows
