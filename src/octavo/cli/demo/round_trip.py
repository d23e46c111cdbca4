"""Export the data directory to a table, read the table, and import it into another directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.markup import escape

from octavo.cli.demo.stage import Stage, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CODE: Final = """\
from octavo.spark.tables import export_logs, import_table

export_logs(spark, folder, lake)        # octavo export FOLDER LAKE
export_logs(spark, folder, lake)        # only what is new
spark.read.parquet(lake)                # or Polars, DuckDB, pandas, ...
import_table(spark, lake, restored)     # octavo import LAKE RESTORED"""
_SQL: Final = """\
SELECT topic, day, count(*) AS rows, count(DISTINCT partition) AS partitions, max(offset) AS last_offset
FROM lake GROUP BY ALL ORDER BY topic, day"""
_ALL_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")


def run(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Take the logs in `folder` to a table and back, and return what was done, for `show`."""
    from octavo.spark.tables import export_logs, import_table

    lake, restored = folder.with_name(f"{folder.name}-table"), folder.with_name(f"{folder.name}-restored")
    first = export_logs(spark, str(folder), str(lake))
    again = export_logs(spark, str(folder), str(lake))
    spark.read.parquet(str(lake)).createOrReplaceTempView("lake")
    rows = [{name: str(value) for name, value in row.asDict().items()} for row in spark.sql(_SQL).collect()]
    imported = import_table(spark, lake, restored)
    options = {"isolation.level": "read_committed", "columns": ",".join(_ALL_COLUMNS)}
    logs = [spark.read.format("octavo").options(**options).load(str(each)) for each in (folder, restored)]
    ends = [f"{of}: {offsets.stop}" for of, offsets in sorted(imported.partitions.items())]
    return {
        "lake": str(lake),
        "exported": first.row_count,
        "files": first.file_count,
        "again": again.row_count,
        "rows": rows,
        "restored": str(restored),
        "imported": imported.records,
        "ends": ends,
        "different": logs[0].exceptAll(logs[1]).count() + abs(first.row_count - imported.records),
    }


def show(stage: Stage, done: dict[str, Any]) -> None:
    """Show what `run` has done, and where it lies."""
    stage.chapter("There and back: logs become a table, and logs again")
    stage.code(CODE)
    drawn = table("step", "what was done", "where it lies")
    lake, restored = Path(done["lake"]), Path(done["restored"])
    drawn.add_row("export", f"{done['exported']:,} rows in {done['files']:,} files", escape(f"{lake.name}/"))
    drawn.add_row("export again", f"{done['again']:,} rows: nothing was new", "")
    drawn.add_row(
        "import", f"{done['imported']:,} records of {len(done['ends'])} partitions", escape(f"{restored.name}/")
    )
    drawn.add_row("compare", f"{done['different']:,} records differ or have another offset", "")
    stage.show(drawn)
    stage.say(escape(f"Both lie in {lake.parent}."))
    stage.say("What Spark SQL finds in the table:")
    by_day = table(*done["rows"][0], right=("rows", "partitions", "last_offset"))
    for row in done["rows"]:
        by_day.add_row(*map(escape, row.values()))
    stage.show(by_day)
    stage.say(
        "Aborted records are not in the table, and their offsets stay empty in the new logs, which end where the old "
        "ones did."
    )
