"""What commands that run on Spark have in common: options, a session, a progress bar, and errors in one line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from octavo.errors import InvalidInput, OctavoError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"  # set by spark-submit, which has chosen a master
_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


def add_spark_options(parser: argparse.ArgumentParser, without: str = "(default: all cores of this machine)") -> None:
    """Add the options that say where and how Spark runs. `without` says what happens without them."""
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master",
        metavar="URL",
        help=f"where Spark runs: local[2], spark://host:7077, yarn, … {without}",
    )
    group.add_argument(
        "--conf",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of Spark, such as spark.executor.memory=4g; may be repeated",
    )


def add_table_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which table it is, which topics, and how the summary is printed."""
    parser.add_argument(
        "--format", choices=("parquet", "delta", "iceberg"), default="parquet", help="(default: parquet)"
    )
    parser.add_argument("--topic", metavar="NAME", action="append", help="only this topic; may be repeated")
    parser.add_argument(
        "--option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="how the table is reached: a storage option of Delta, or a property of Iceberg's catalog; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")


def print_summary(arguments: argparse.Namespace, fields: dict[str, object], lines: list[str]) -> None:
    """Print what was done, as `--json` says."""
    for line in [json.dumps(fields)] if arguments.json else lines:
        print(line)


def pairs(given: list[str], option: str) -> dict[str, str]:
    """Return the values of an option that is given as NAME=VALUE, several times. Raises `InvalidInput`."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InvalidInput(f"{option} takes NAME=VALUE, not {text!r}")
        found[name.strip()] = value
    return found


@contextmanager
def spark_session(arguments: argparse.Namespace, name: str) -> Iterator[SparkSession]:
    """Run a Spark session. What Spark raises in it becomes one line of an `OctavoError`. Raises `InvalidInput`."""
    settings = {**_SETTINGS, **pairs(arguments.conf, "--conf")}
    try:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        import octavo.spark  # noqa: F401 - has the workers run this Python
    except ImportError as missing:
        raise InvalidInput(f"this command runs on Spark: pip install 'octavo[spark]' brings it ({missing})") from None
    builder = SparkSession.builder.appName(name)
    if arguments.master is not None:
        builder = builder.master(arguments.master)
    elif "spark.master" not in settings and _SUBMITTED not in os.environ:
        builder = builder.master("local[*]")
    for setting, value in settings.items():
        builder = builder.config(setting, value)
    borrowed = SparkSession.getActiveSession() is not None  # by a program that calls `main`
    try:
        spark = builder.getOrCreate()
    except Exception as error:  # py4j has errors of its own, such as that there is no Java
        raise OctavoError(f"Spark does not start: {one_line(error)}") from error
    try:
        spark.sparkContext.setLogLevel("OFF")  # what matters is raised
        yield spark
    except (PySparkException, Py4JError) as error:
        raise OctavoError(one_line(error)) from error
    finally:
        if not borrowed:
            spark.stop()


def one_line(error: PySparkException | Exception) -> str:
    """Return what a person needs of an error of Spark: the last line of a worker's traceback, or Spark's first line."""
    text = str(error).partition("\n\nJVM stacktrace")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(" SQLSTATE: ")]
    if lines and lines[0].startswith("An error occurred while calling "):  # py4j's, before what Java says
        lines = [lines[0] if len(lines) == 1 else lines[1].removeprefix(": "), *lines[2:]]
    if not lines:
        return type(error).__name__
    return lines[-1] if any(line.startswith("Traceback (most recent call last)") for line in lines) else lines[0]


@contextmanager
def job_progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar while a job runs, with rate and time left, if standard error is a terminal.

    Yields a function to call with the number of bytes that are done, and of those that there are.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
