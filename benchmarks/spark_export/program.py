"""Write tables in several ways in turns, in a separate Spark process, and print how long each took.

    python -m benchmarks.spark_export.program < questions.json

Each export in the JSON has a name, a kind (a key of `KINDS`) and options. The output has the seconds of each round
after the warm-up rounds, and the peak memory of the Python workers.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from benchmarks.spark_export.alone import Alone
from benchmarks.spark_process import answering
from benchmarks.spark_read.program import peak_of_workers
from octavo.spark.tables import export_logs
from octavo.values import value_decoder

Options = dict[str, str]
Kind = Callable[[SparkSession, Options, str, str], None]  # the session, the options, the target, and Parquet's codec

_ALONE: Final = Alone()


def main() -> None:
    """Run the exports, and print the measurements as JSON on the last line."""
    with answering() as (spark, asked):
        times: dict[str, list[float]] = {export["name"]: [] for export in asked["exports"]}
        target = Path(asked["folder"], "table")
        for turn in range(asked["warm"] + asked["repeat"]):
            for export in asked["exports"]:
                os.sync()  # what the pass before has left to be written does not slow this one
                begin = perf_counter()
                KINDS[export["kind"]](spark, export["options"], str(target), asked["codec"])
                taken = perf_counter() - begin
                print(f"    {export['name']}: {taken:.2f} s", file=sys.stderr, flush=True)
                if turn >= asked["warm"]:
                    times[export["name"]].append(taken)
                check(target, export, asked["count"])
                shutil.rmtree(target, ignore_errors=True)
        print(json.dumps({"times": times, "worker_mib": peak_of_workers(os.getpid())}), flush=True)
        _ALONE.close()


def check(target: Path, export: dict[str, Any], count: int) -> None:
    """Check that all rows are in the table. Raises `RuntimeError`."""
    if not target.exists():
        return  # rows that only went into the JVM
    files = [path for path in target.rglob("*.parquet") if not any(part.startswith("_") for part in path.parts)]
    found = ds.dataset(files, format="parquet", schema=None).count_rows()
    if found != count:
        raise RuntimeError(f"{export['name']} has {found:,} rows of {count:,}")


def exported(spark: SparkSession, options: Options, target: str, codec: str) -> None:
    """Export to a table."""
    export_logs(
        spark,
        options["path"],
        target,
        format=options.get("format", "parquet"),
        decoder=value_decoder("json", schema=options["schema"]) if "schema" in options else None,
        compression=codec,
    )


def connected(spark: SparkSession, options: Options, target: str, codec: str) -> None:
    """Read through a broker with Spark's connector, and write with Spark."""
    spark.read.format("kafka").options(**options).load().write.option("compression", codec).parquet(target)


def alone(spark: SparkSession, options: Options, target: str, codec: str) -> None:
    """Write with pyarrow on all cores, without Spark."""
    _ALONE.write(options["path"], target, codec)


def parsed(spark: SparkSession, options: Options, target: str, codec: str) -> None:
    """Read with our source, parse with Spark, and write with Spark."""
    from_json(spark, options).write.option("compression", codec).parquet(target)


def parsed_rows(spark: SparkSession, options: Options, target: str, codec: str) -> None:
    """Read with our source, parse with Spark, and drop the rows."""
    from_json(spark, options).drop("value", "parsed").write.format("noop").mode("overwrite").save()


def typed_rows(spark: SparkSession, options: Options, target: str, codec: str) -> None:
    """Read and parse with our source, which gives fields instead of the value, and drop the rows."""
    reader = spark.read.format("octavo").option("valueFormat", "json").option("valueSchema", options["schema"])
    reader.load(options["path"]).write.format("noop").mode("overwrite").save()


def from_json(spark: SparkSession, options: Options) -> DataFrame:
    """Return the rows of our source with their values parsed by Spark."""
    rows = spark.read.format("octavo").load(options["path"])
    schema = options["schema"].replace("'", "\\'")
    return rows.selectExpr("*", f"from_json(CAST(value AS STRING), '{schema}') AS parsed").select("*", "parsed.*")


KINDS: Final[dict[str, Kind]] = {
    "export": exported,
    "typed": exported,
    "connector": connected,
    "alone": alone,
    "from_json": parsed,
    "from_json rows": parsed_rows,
    "typed rows": typed_rows,
}

if __name__ == "__main__":
    main()
