"""`octavo import`: make logs of a table again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from octavo.cli.exits import FINE
from octavo.cli.spark_job import (
    add_spark_options,
    add_table_options,
    job_progress,
    pairs,
    print_summary,
    spark_session,
)

if TYPE_CHECKING:
    from octavo.spark.tables.importing import ImportSummary

_DESCRIPTION: Final = """\
Writes the rows of a table to the logs of a data directory: the same keys, values, headers and timestamps, at the same
offsets. Indexes, snapshots and checkpoints are written with them. After `octavo handover TARGET`, Apache Kafka serves
the directory.

SOURCE is what `octavo export` wrote, or any table with the columns key, value, topic, partition and offset (and
timestamp, timestampType and headers, if there are any). A table that was exported without raw keys and values cannot
become a log again. If it was exported with --batch-info, batches have the limits, codecs, producer ids and sequence
numbers that they had. Control records and aborted transactions are not in a table: their offsets stay empty.

TARGET is a folder that all executors reach. It and the topics in it are made if they are missing, with the ids and the
settings that the topics had, but with retention.ms=-1, so that nothing is deleted before you say so; --config says
otherwise. Logs that have some of these offsets already are refused. Either everything is imported or nothing, whenever
it is interrupted.
"""

_EPILOG: Final = """\
examples:
  octavo import /lake/events /var/lib/octavo                         an export to Parquet
  octavo import /lake/events /var/lib/octavo --format delta --topic orders --topic payments
  octavo import 's3://bucket/events?region=eu-central-1' /mnt/shared/log --format delta --master spark://host:7077
  octavo import /lake/events /var/lib/octavo --config retention.ms=604800000 --config cleanup.policy=delete

Exit codes: 0 imported, 2 nothing was imported, 130 interrupted.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo import` and its options to the parser."""
    parser = commands.add_parser(
        "import",
        help="make logs of a table again, with their offsets",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="the table: a path or an address")
    parser.add_argument("target", metavar="TARGET", help="the data directory to write: a path")
    add_table_options(parser)
    parser.add_argument(
        "--compression",
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
        default="none",
        help="the codec of batches, if the table does not tell it (default: none)",
    )
    parser.add_argument(
        "--config",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the topics that are created; may be repeated",
    )
    parser.add_argument(
        "--staging", metavar="DIR", help="where batches wait for the commit (default: a hidden folder beside TARGET)"
    )
    add_spark_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Import the table, and print what was done."""
    config, options = pairs(arguments.config, "--config"), pairs(arguments.option, "--option")
    with spark_session(arguments, "octavo import") as spark, job_progress("importing") as on_progress:
        from octavo.spark.tables.importing import import_table

        done = import_table(
            spark,
            arguments.source,
            arguments.target,
            format=arguments.format,
            source_options=options,
            topics=arguments.topic,
            topic_config=config,
            compression=arguments.compression,
            staging_path=arguments.staging,
            on_progress=on_progress,
        )
    print_summary(arguments, _fields(done), _lines(done))
    return FINE


def _fields(done: ImportSummary) -> dict[str, object]:
    return {
        "target": str(done.target),
        "records": done.records,
        "bytes": done.size,
        "files": done.files,
        "seconds": round(done.seconds, 3),
        "created": list(done.created),
        "partitions": {str(of): [offsets.start, offsets.stop] for of, offsets in sorted(done.partitions.items())},
    }


def _lines(done: ImportSummary) -> list[str]:
    rate = done.records / max(done.seconds, 0.001)
    lines = [
        f"{done.target}: {done.records:,} records of {len(done.partitions):,} partitions, {done.size:,} bytes, from "
        f"{done.files:,} files in {done.seconds:.1f} s ({rate:,.0f} records/s)"
    ]
    shown = sorted(done.partitions.items())
    lines += [f"  {of}: offsets {offsets.start} to {offsets.stop - 1}" for of, offsets in shown[:_SHOWN]]
    if len(shown) > _SHOWN:
        lines.append(f"  and {len(shown) - _SHOWN:,} more")
    if done.created:
        lines.append(f"  created: {', '.join(done.created)}")
    lines += ["", "For Apache Kafka to serve them:", "", f"  octavo handover {done.target}"]
    return lines


_SHOWN: Final = 20  # partitions in the list; the others are only counted
