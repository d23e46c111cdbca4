"""The `octavo` command.

Each sub-command is a module with two functions: `add_to` adds its options and help, and `run` does the work. Libraries
for the work are imported in `run`. So `--help` and `--version` import little more than argparse, and a small command
starts fast.

    exit 0      success
         1      damage was found
         2      could not run: a wrong option, a missing file, a full disk
         130    interrupted
         141    the output was closed by the program that read it (a broken pipe)
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

from octavo import __version__
from octavo.cli import (
    cluster,
    consume,
    demo,
    dump,
    explain,
    export,
    groups,
    handover,
    import_,
    produce,
    report,
    salvage,
    serve,
    topics,
    transactions,
    verify,
)
from octavo.cli.exits import BROKEN_PIPE, COULD_NOT_RUN, INTERRUPTED
from octavo.cli.printable import printable
from octavo.cli.tell import let_go_of_output
from octavo.errors import OctavoError

_EXAMPLES = """\
examples:
  octavo demo                              the whole of it in a minute
  octavo dump orders-0                     a partition: its segments, indexes
  octavo dump a.log --binary text | jq .value    only what the records say
  octavo dump broken.log --resync          go on after damage
  octavo explain a.log                     what every byte of a batch means
  octavo verify /var/lib/kafka/data        find whatever is wrong, also while a
                                           broker is running
  octavo salvage /data/orders-0 /safe/orders-0
                                           make a damaged partition valid
  octavo report /var/lib/kafka/data --html r.html
                                           a page about a data directory
  octavo serve --data /var/lib/octavo      be a broker for Kafka clients
  octavo topics --create --topic orders    and --list, --describe, --delete
  octavo produce orders < orders.txt       send lines to a topic
  octavo consume orders -o -10 -e          print the last records of a topic
  octavo groups --describe --all-groups    how far groups lag behind
  octavo transactions find-hanging         transactions that nobody will end
  octavo cluster status                    brokers, controllers, lag of replicas
  octavo handover /var/lib/octavo          let Apache Kafka go on with it
  octavo export /var/lib/kafka/data /lake/events
                                           make a table of topics
  octavo import /lake/events /var/lib/octavo
                                           make logs of a table again

`octavo COMMAND --help` says more.
Exit codes: 0 fine, 1 damage found, 2 could not run.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default the arguments of this process; return the exit code."""
    if sys.stderr is None:  # closed before Python started: the next file to be opened would get what is told
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for good
    if sys.stdout is None:  # closed before Python started: the next file to be opened would become standard output
        print("octavo: standard output is closed", file=sys.stderr)
        return COULD_NOT_RUN
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        code = BROKEN_PIPE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except (OctavoError, OSError) as error:
        code = COULD_NOT_RUN
        with contextlib.suppress(OSError):  # nobody may be left to tell
            print(f"octavo: {printable(str(error))}", file=sys.stderr, flush=True)
    if code >= COULD_NOT_RUN:
        let_go_of_output()
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="octavo",
        description="Octavo is Kafka's log, in Python: look at the very bytes\nthat Apache Kafka keeps on disk.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"octavo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    dump.add_to(commands)
    explain.add_to(commands)
    verify.add_to(commands)
    demo.add_to(commands)
    salvage.add_to(commands)
    handover.add_to(commands)
    serve.add_to(commands)
    topics.add_to(commands)
    groups.add_to(commands)
    transactions.add_to(commands)
    cluster.add_to(commands)
    produce.add_to(commands)
    consume.add_to(commands)
    export.add_to(commands)
    import_.add_to(commands)
    report.add_to(commands)
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as told:  # for --help, --version or a wrong option: argparse has already printed its message
        return told.code if isinstance(told.code, int) else COULD_NOT_RUN
    if "run" not in arguments:
        parser.print_help(sys.stderr)
        return COULD_NOT_RUN
    code: int = arguments.run(arguments)
    return code
