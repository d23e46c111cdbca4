"""`octavo report`: write a page about a data directory."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.cli.printable import printable
from octavo.cli.tell import tell

_DESCRIPTION: Final = """\
Writes one page about a data directory: topics and partitions with sizes, offsets, times, codecs and compression,
how batches are filled, the segments over time, and the problems that `octavo verify` finds. Nothing is locked or
changed, and a broker may be running.
"""

_EPILOG: Final = """\
examples:
  octavo report /var/lib/kafka/data --html report.html
  octavo report /var/lib/kafka/data --html report.html --no-verify
  octavo report /var/lib/kafka/data/orders-0 --html orders.html

Without --no-verify every byte is checked, and the exit code is 1 if a problem was found. It is 2 if the page could not
be written, or if it lacks something that could not be read.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo report` and its options to the parser."""
    parser = commands.add_parser(
        "report",
        help="write a page about a data directory",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="a data directory, or the folder of a partition")
    parser.add_argument("--html", metavar="FILE", required=True, help="the page to write")
    parser.add_argument(
        "--no-verify",
        action="store_true",
        help="do not look for problems: checksums and records are hardly looked at, which is fast",
    )
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_jobs,
        help="processes that read (default: one for each core, if there is much)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page; return 1 if problems were found, and 2 if not everything could be read."""
    from datetime import UTC, datetime
    from pathlib import Path

    from octavo.cli.progress import progress
    from octavo.errors import InvalidInput
    from octavo.inspect.pages.report_page import report_page
    from octavo.inspect.pages.writing import check_target, write_page
    from octavo.inspect.report.gathering import find_partitions, gather

    if not arguments.directory:
        raise InvalidInput("the name of the directory is empty")
    path, target = Path(arguments.directory), Path(arguments.html)
    check_target(target)  # before much is read
    partitions = find_partitions(path)
    done = 0
    with progress(sum(task.size for task in partitions), at_terminal=True) as show:

        def advance(size: int) -> None:
            nonlocal done
            done += size
            show(done)

        summary = gather(path, partitions, verify=not arguments.no_verify, jobs=arguments.jobs, on_bytes=advance)
    write_page(target, report_page(summary, f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"))
    for part in summary.remote:
        tell(f"note: {part}")
    print(f"Written: {printable(str(target))}", file=sys.stderr)
    if summary.failures:
        tell(f"not everything could be read: {summary.failures[0]}")
        return COULD_NOT_RUN
    return DAMAGE_FOUND if summary.problem_count else FINE


def _jobs(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:6]) <= 256:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 256")
    return int(text)
