"""`octavo export`: topics become a table, each record once."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from octavo.cli.decoding_options import given_schema
from octavo.cli.exits import DAMAGE_FOUND, FINE
from octavo.cli.spark_job import (
    add_spark_options,
    add_table_options,
    job_progress,
    pairs,
    print_summary,
    spark_session,
)
from octavo.errors import FormatError, InvalidInput

if TYPE_CHECKING:
    from octavo.spark.tables.export import ExportSummary
    from octavo.values import ValueDecoder

_DESCRIPTION: Final = """\
Writes the records of logs to a table of Parquet files, a Delta table or an Iceberg table: key, value, topic, partition,
offset, timestamp, timestampType and headers, and the columns of the value if --value-format says what it is. The table
is partitioned by topic and by day (UTC) of the timestamp.

Run it again, and only what is new is added. Whatever is interrupted, no row is lost and none is there twice. Only
committed transactions are exported. What an export was told about columns holds for later ones, too.

If offsets are gone that should be exported, or the topic was created again, the export fails; with
--fail-on-data-loss false it goes on with what there is. It also fails if records of a tiered topic are in remote
storage, which Octavo does not read yet; --allow-partial exports those that are on this disk.

SOURCE is a data directory of Kafka or Octavo, or anything else that format("octavo") reads: a partition, a pattern, an
address. Tasks write the files themselves, so TARGET is a folder that all executors reach, or (not for plain Parquet) an
address of a bucket.
"""

_EPILOG: Final = """\
examples:
  octavo export /var/lib/kafka/data /lake/events                     all topics, to Parquet
  octavo export /var/lib/kafka/data /lake/orders --topic orders --format delta
  octavo export /var/lib/kafka/data /lake/orders --topic orders --value-format json --schema 'id BIGINT, what STRING'
  octavo export /var/lib/kafka/data /lake/events --follow            until it is interrupted
  octavo export /mnt/data /lake/events --master spark://host:7077 --conf spark.executor.memory=4g

Exit codes: 0 done, 1 the logs are damaged, 2 could not run, 130 interrupted.
"""

_SHOWN: Final = 20  # topics in the list; the others are only counted


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo export` and its options to the parser."""
    parser = commands.add_parser(
        "export",
        help="make a table of topics, each record once",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="SOURCE", help="the logs: a path, a pattern or an address")
    parser.add_argument("target", metavar="TARGET", help="the table: a path or an address")
    add_table_options(parser)
    _add_columns(parser)
    _add_running(parser)
    add_spark_options(parser)
    parser.set_defaults(run=run)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("columns, for a new table")
    group.add_argument(
        "--value-format",
        metavar="NAME",
        help="json, avro, protobuf, string or the format of a plug-in: values become columns",
    )
    group.add_argument(
        "--schema", metavar="TEXT", help="the schema of the values, or the file with it (JSON: inferred if not given)"
    )
    group.add_argument("--schema-folder", metavar="DIR", help="Avro: schemas by their ids, as a registry has them")
    group.add_argument("--message", metavar="NAME", help="Protobuf: the full name of the message")
    group.add_argument("--prefix", metavar="TEXT", help="put before the names of the value's columns")
    group.add_argument(
        "--no-raw", action="store_true", help="leave out key and value as they are in the log; such a table cannot be "
        "imported again"
    )  # fmt: skip
    group.add_argument(
        "--batch-info", action="store_true", help="add producer ids, sequence numbers and other fields of the batches"
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it runs")
    group.add_argument("--follow", action="store_true", help="go on until interrupted, and merge small files")
    group.add_argument(
        "--interval", metavar="SECONDS", type=float, default=10.0, help="pause between exports (default: 10)"
    )
    group.add_argument("--merge", action="store_true", help="merge small files after the export")
    group.add_argument(
        "--compression", choices=("snappy", "zstd", "gzip", "lz4", "none"), default="snappy", help="(default: snappy)"
    )
    group.add_argument(
        "--fail-on-data-loss", choices=("true", "false"), default="true", help="if offsets are gone (default: true)"
    )
    group.add_argument(
        "--allow-partial",
        action="store_true",
        help="warn of offsets that are gone, or in remote storage, and go on: the same as --fail-on-data-loss false",
    )
    group.add_argument(
        "--source-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help='an option of format("octavo"), such as startingTimestamp or isolation.level; may be repeated',
    )


def run(arguments: argparse.Namespace) -> int:
    """Export the logs, and print what was done."""
    source = {
        "path": arguments.source,
        "failOnDataLoss": "false" if arguments.allow_partial else arguments.fail_on_data_loss,
        **({"subscribe": ",".join(arguments.topic)} if arguments.topic else {}),
        **pairs(arguments.source_option, "--source-option"),
    }
    options = pairs(arguments.option, "--option")
    if arguments.schema and not arguments.value_format:
        raise InvalidInput("--schema is the schema of values of a format: give --value-format as well")
    stopping = _stopped_by_signals() if arguments.follow else nullcontext(None)
    with spark_session(arguments, "octavo export") as spark, job_progress("exporting") as on_progress, stopping as stop:
        from octavo.spark.tables.export import export_logs

        decoder = _decoder(arguments)
        try:
            summary = export_logs(
                spark,
                source,
                arguments.target,
                format=arguments.format,
                raw=False if arguments.no_raw else None,
                batch_info=True if arguments.batch_info else None,
                decoder=decoder,
                infer=arguments.value_format if decoder is None else None,
                prefix=arguments.prefix,
                compression=arguments.compression,
                merge=arguments.merge,
                target_options=options,
                on_progress=on_progress,
                stop=stop,
                interval_s=arguments.interval,
            )
        except FormatError as error:
            print(f"octavo: {error}", file=sys.stderr)
            return DAMAGE_FOUND
    print_summary(arguments, _fields(summary), _lines(summary))
    return FINE


def _decoder(arguments: argparse.Namespace) -> ValueDecoder | None:
    """Return the decoder of values; None if there is none, or its schema is to be inferred."""
    if arguments.value_format is None:
        return None
    from octavo.values import value_decoder
    from octavo.values.formats import find_format

    told = (arguments.schema, arguments.schema_folder, arguments.message)
    format_ = find_format(arguments.value_format)
    if not any(told) and (format_.needs or format_.takes):
        return None
    return value_decoder(
        arguments.value_format,
        schema=given_schema(arguments.schema, arguments.value_format),
        schema_folder=arguments.schema_folder,
        message=arguments.message,
    )


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets: the export that is under way is finished then.

    The second one interrupts it.
    """
    stop = threading.Event()

    def on_signal(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        print("octavo: stopping after this export", file=sys.stderr)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _fields(done: ExportSummary) -> dict[str, object]:
    return {
        "target": done.target,
        "format": done.format,
        "rounds": done.rounds,
        "records": done.row_count,
        "rejected": done.rejected,
        "files": done.file_count,
        "merged": done.merged,
        "bytes_read": done.size_read,
        "bytes_written": done.size_written,
        "seconds": round(done.seconds, 3),
        "topics": done.rows_by_topic,
    }


def _lines(done: ExportSummary) -> list[str]:
    if not done.rounds:
        return [f"{done.target}: nothing new", *_merged(done)]
    rate = done.row_count / max(done.seconds, 0.001)
    lines = [
        f"{done.target}: {done.row_count:,} records in {done.file_count:,} files, {done.size_written:,} bytes, from "
        f"{done.size_read:,} bytes of logs in {done.seconds:.1f} s ({rate:,.0f} records/s)"
    ]
    topics = sorted(done.rows_by_topic.items())
    lines += [f"  {topic}: {count:,}" for topic, count in topics[:_SHOWN]]
    if len(topics) > _SHOWN:
        lines.append(f"  and {len(topics) - _SHOWN:,} more topics")
    if done.rejected:
        lines.append(f"  {done.rejected:,} values do not fit: the column parse_error says why")
    return lines + _merged(done)


def _merged(done: ExportSummary) -> list[str]:
    return [f"  {done.merged:,} small files were merged"] if done.merged else []
