"""`octavo verify`: check every file of a data directory."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.cli.printable import printable
from octavo.cli.spark_job import add_spark_options

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from octavo.inspect.verify.problem import Problem
    from octavo.inspect.verify.tasks import Checked, Task

_DESCRIPTION: Final = """\
Checks segments, partition folders and data directories: every checksum, length, offset, record, index, snapshot and
checkpoint, each by itself and against the others. One line for each problem: the file, the position in it, the offset,
the rule that is broken, what that means, and what would repair it.

Nothing is changed and nothing is locked. A broker may be running: what it is in the middle of is not a problem.
docs/verify.md lists all rules.
"""

_EPILOG: Final = """\
examples:
  octavo verify /var/lib/kafka/data                     everything in a data directory
  octavo verify /var/lib/kafka/data/events-0 --json     one partition; each problem as a line of JSON
  octavo verify 00000000000000000000.log                one segment, with its indexes
  octavo verify --replicas /node1/data /node2/data      and where the replicas of each partition differ first
  octavo verify --master spark://host:7077 /mnt/data    each partition by a task of Spark

Exit codes: 0 no problems, 1 problems found, 2 something could not be checked.
"""


_FEW: Final = 50  # partitions that one process checks without help
_LITTLE: Final = 16 << 20  # bytes
_MOST_NOTES: Final = 10  # that are told


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo verify` and its options to the parser."""
    parser = commands.add_parser(
        "verify",
        help="check every file of a data directory",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a file, a partition folder or a data directory")
    parser.add_argument("--json", action="store_true", help="print each problem as a line of JSON")
    parser.add_argument("--jobs", metavar="N", type=_jobs, help="processes that check (default: one for each core)")
    parser.add_argument("--replicas", action="store_true", help="also compare the paths, which are replicas")
    parser.add_argument("--ignore", metavar="RULE", action="append", default=[], help="do not report this rule")
    add_spark_options(parser, "(default: processes of this machine, without Spark)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check all paths; print problems, and a summary on standard error."""
    from pathlib import Path

    _check_names(arguments.ignore)
    tasks, found = _tasks(list(map(Path, arguments.paths)))
    refused = len(arguments.paths) - len(found)
    report = _Report(arguments.json, is_held=sys.stderr.isatty() and sys.stdout.isatty())
    report.refused = refused
    if tasks and arguments.master is not None:
        _check_on_spark(tasks, arguments, report)
    elif tasks:
        _check(tasks, arguments.jobs or _worthwhile_jobs(tasks), arguments.ignore, report)
    _tell_remote(found)
    if arguments.replicas and (len(found) > 1 or not refused):
        _compare(found, arguments.ignore, report)
    report.summarise()
    return report.exit_code


def _tell_remote(paths: list[Path]) -> None:
    """Say which offsets cannot be checked, because they are in remote storage. That is no problem."""
    from octavo.log.names import TopicPartition
    from octavo.log.watched.remote_parts import remote_parts

    for path in paths:
        partition = TopicPartition.parse(path.absolute().name)
        folder = path if partition is None else path.absolute().parent
        if folder.is_dir():
            for part in remote_parts(folder):
                if partition in (None, part.partition):
                    _say(f"note: {part}")


def _check(tasks: list[Task], jobs: int, ignore: list[str], report: _Report) -> None:
    from octavo.cli.progress import progress
    from octavo.inspect.verify.tasks import check_all

    with progress(sum(task.size for task in tasks), at_terminal=True) as advance:
        for checked in check_all(tasks, jobs=jobs, ignore=ignore, on_progress=advance):
            report.take(checked)
    report.flush()


def _check_on_spark(tasks: list[Task], arguments: argparse.Namespace, report: _Report) -> None:
    """Check each partition in a task of Spark. The paths must lead to the same files on all workers."""
    from dataclasses import replace
    from functools import partial

    from octavo.cli.spark_job import spark_session
    from octavo.inspect.verify.tasks import check
    from octavo.spark.tables.on_workers import run_on_workers

    tasks = [replace(task, path=task.path.absolute()) for task in tasks]
    with spark_session(arguments, "octavo verify") as spark:
        for checked in run_on_workers(spark, partial(check, ignore=frozenset(arguments.ignore)), tasks):
            report.take(checked)
    report.flush()


def _compare(paths: list[Path], ignore: list[str], report: _Report) -> None:
    from octavo.inspect.verify.replicas import compare_replicas

    report.print([problem for problem in compare_replicas(paths) if problem.rule.name not in ignore])
    report.flush()


def _tasks(paths: list[Path]) -> tuple[list[Task], list[Path]]:
    """Return what is to be checked, and the paths at which there is something to check."""
    from octavo.errors import OctavoError
    from octavo.inspect.kinds import reason_of
    from octavo.inspect.verify.tasks import find_tasks

    tasks: list[Task] = []
    found: list[Path] = []
    for path in paths:
        try:
            tasks += find_tasks(path)
            found.append(path)
        except OctavoError as error:
            _say(str(error))
        except (OSError, ValueError) as error:  # ValueError: a null character in the path
            _say(f"{path}: {reason_of(error)}")
    return tasks, found


class _Report:
    """Prints problems and counts them."""

    def __init__(self, as_json: bool, *, is_held: bool) -> None:
        self.refused = 0  # paths and partitions that could not be checked
        self._as_json = as_json
        self._is_held = is_held  # lines wait until the progress bar, which is on the same terminal, is gone
        self._lines: list[str] = []
        self._checked: list[Task] = []
        self._problems = 0
        self._notes: list[str] = []
        self._files: set[str] = set()
        self._started = _now()

    @property
    def exit_code(self) -> int:
        """The code for what was found."""
        if self.refused:
            return COULD_NOT_RUN
        return DAMAGE_FOUND if self._problems else FINE

    def take(self, checked: Checked) -> None:
        """Print the problems of a task."""
        if checked.error is not None:
            _say(checked.error)
            self.refused += 1
        else:
            self._checked.append(checked.task)
            self._notes += checked.notes
        self.print(checked.problems)

    def print(self, problems: list[Problem]) -> None:
        """Print problems, unless lines are held back."""
        self._problems += len(problems)
        self._files.update(problem.file for problem in problems)
        self._lines += _json_lines(problems) if self._as_json else map(_line, problems)
        if not self._is_held:
            self.flush()

    def flush(self) -> None:
        """Print what was held back."""
        for line in self._lines:
            print(line)
        self._lines.clear()
        sys.stdout.flush()

    def summarise(self) -> None:
        """Say on standard error how much was checked, and how many problems there are."""
        tasks = self._checked
        if not tasks:
            return
        size, seconds = sum(task.size for task in tasks), max(_now() - self._started, 1e-3)
        found = "no problems"
        if self._problems:
            found = f"{_count(self._problems, 'problem')} in {_count(len(self._files), 'file')}"
        partitions = sum(task.what.value == "partition" for task in tasks)
        what = _count(partitions, "partition") if partitions else _count(len(tasks), "file")
        _say(f"{found}; {what}, {size / 1e6:,.1f} MB in {seconds:,.1f} s ({size / 1e6 / seconds:,.0f} MB/s)")
        for note in self._notes[:_MOST_NOTES]:
            _say(note)
        if len(self._notes) > _MOST_NOTES:
            _say(f"transactions are open in {len(self._notes) - _MOST_NOTES:,} more partitions")


def _line(problem: Problem) -> str:
    where = [printable(problem.file)]
    if problem.position is not None:
        where.append(f"position {problem.position}")
    if problem.offset is not None:
        where.append(f"offset {problem.offset}")
    found = f" ({printable(problem.found)})" if problem.found else ""
    return f"{', '.join(where)}: {problem.rule.name}{found}: {problem.rule.means} {problem.repair}"


def _json_lines(problems: Iterable[Problem]) -> list[str]:
    import json

    return [json.dumps(problem.as_json()) for problem in problems]


def _check_names(ignore: list[str]) -> None:
    from octavo.errors import InvalidInput
    from octavo.inspect.verify.problem import all_rules

    if ignore:
        unknown = set(ignore) - {rule.name for rule in all_rules()}
        if unknown:
            raise InvalidInput(f"there is no rule {', '.join(sorted(unknown))}; docs/verify.md lists them")


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes from 1 to 1024")
    return int(text)


def _worthwhile_jobs(tasks: list[Task]) -> int:
    """Return one job for each core, but only one where processes take longer to start than the work."""
    if len(tasks) < _FEW and sum(task.size for task in tasks) < _LITTLE:
        return 1
    from octavo.records.processors import usable_processors

    return usable_processors()


def _now() -> float:
    import time

    return time.monotonic()


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _say(text: str) -> None:
    print(f"octavo: {printable(text)}", file=sys.stderr)
