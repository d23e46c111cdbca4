"""The `octavo` command.

Each sub-command is a module with `add_to`, which adds its options and help and is cheap, and a function that does the
work and imports what that needs. So `--help` and `--version` import nothing but argparse, and a small command starts at
once.

    exit 0      fine
         1      damage was found
         2      could not run: a wrong option, a missing file, a full disk
         130    interrupted
         141    the reader of the output went away
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from octavo import __version__
from octavo.cli import demo, dump, handover
from octavo.cli.exits import BROKEN_PIPE, COULD_NOT_RUN, INTERRUPTED
from octavo.errors import OctavoError

_EXAMPLES = """\
examples:
  octavo demo                                    the whole of it in a minute
  octavo dump 00000000000000000000.log           every record as a line of JSON
  octavo dump *.log --binary text | jq .value    only what they say
  octavo dump broken.log --resync                go on after damage
  octavo handover /var/lib/octavo                let Apache Kafka serve what Octavo wrote

`octavo COMMAND --help` says more. Exit codes: 0 fine, 1 damage found, 2 could not run.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line, by default that of the process; return the exit code."""
    if sys.stdout is None:  # closed before Python started: a file that is opened now would take its place
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
        print(f"octavo: {error}", file=sys.stderr)
        code = COULD_NOT_RUN
    if code >= COULD_NOT_RUN:
        _let_go_of_output()
    return code


def _run(argv: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="octavo",
        description="Octavo is Kafka's log, in Python: look at the very bytes that Apache Kafka keeps on disk.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"octavo {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    dump.add_to(commands)
    demo.add_to(commands)
    handover.add_to(commands)
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as told:  # --help, --version, or a wrong option: argparse has printed everything
        return told.code if isinstance(told.code, int) else COULD_NOT_RUN
    if "run" not in arguments:
        parser.print_help(sys.stderr)
        return COULD_NOT_RUN
    code: int = arguments.run(arguments)
    return code


def _let_go_of_output() -> None:
    """Discard output that cannot be written: else Python would try again at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
