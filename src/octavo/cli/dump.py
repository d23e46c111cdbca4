"""`octavo dump`: print the records of files as lines of JSON."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from octavo.cli.exits import COULD_NOT_RUN, DAMAGE_FOUND, FINE
from octavo.errors import FormatError, InvalidInput, Unreadable

if TYPE_CHECKING:
    from octavo.inspect import Dump

_DESCRIPTION: Final = """\
Prints every record of Kafka's segment files, of any format that Kafka ever stored, as one JSON object a line:

  topic, partition     from the folder <topic>-<partition> of a .log file, else null
  offset, timestamp    the timestamp in milliseconds, -1 where there is none
  timestampType        CreateTime, LogAppendTime or NoTimestampType
  key, value           see --binary; null is not ""
  headers              a list of [key, value]
  producerId, producerEpoch, sequence, isTransactional, isControl, magic, compression
  file, position       where the record's batch begins
  control              what a control record says
"""

_EPILOG: Final = """\
examples:
  octavo dump orders-0/00000000000000000000.log
  octavo dump orders-0/*.log --offsets 1000:2000 --binary text
  octavo dump broken.log --resync > saved.jsonl

Damage ends the dump of a file, after all records before it, with one sentence on standard error and exit code 1; with
--resync it is passed over and reported. A last batch that is not all there (a writer died, or the file
is being written to) is told, and no damage. Exit code 2: a file could not be read, or is no segment.
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo dump` and its options to the parser."""
    parser = commands.add_parser(
        "dump",
        help="print the records of segment files",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", metavar="FILE", nargs="+", help="a segment file, as Kafka wrote it")
    parser.add_argument(
        "--format", choices=["jsonl"], default="jsonl", help="jsonl, one object a record; there is no other yet"
    )
    parser.add_argument(
        "--binary",
        choices=["hex", "base64", "text"],
        default="hex",
        help='how keys and values are printed (default: hex). text is UTF-8, and {"hex": "ff00"} for what is not UTF-8',
    )
    parser.add_argument(
        "--offsets",
        metavar="A:B",
        type=_offsets,
        default=(None, None),
        help="only offsets from A on and below B; either may be left out",
    )
    parser.add_argument("--no-verify", action="store_true", help="do not compare checksums")
    parser.add_argument("--resync", action="store_true", help="go on after damage, with the next batch that is whole")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Dump all files, in order; return the highest of their exit codes."""
    return max([_dump(file, arguments) for file in arguments.files])


def _dump(file: str, arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from octavo.inspect import Binary, Dump

    try:
        dump = Dump(
            Path(file),
            binary=Binary(arguments.binary),
            verify=not arguments.no_verify,
            resync=arguments.resync,
            offsets=arguments.offsets,
        )
    except (Unreadable, InvalidInput) as error:
        print(f"octavo: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    found = None
    try:
        _write_lines(dump)
    except FormatError as error:
        found = error
    return _report(file, dump, found)


def _write_lines(dump: Dump) -> None:
    """Write all lines up to damage, in UTF-8 regardless of the terminal's locale."""
    from octavo.cli.progress import progress

    sys.stdout.flush()
    with progress(dump.size) as advance:
        try:
            for block in dump.blocks():
                _write(block)
                advance(dump.position)
        finally:
            sys.stdout.buffer.flush()


def _write(data: bytes | memoryview) -> None:
    """Write all bytes to standard output. If PYTHONUNBUFFERED is set, one call may write only a part of them."""
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]


def _report(file: str, dump: Dump, found: FormatError | None) -> int:
    for position, size, error in dump.damage:
        _say(file, f"damaged at byte {position}, {size} bytes passed over: {error.rule}")
    if found is not None:
        _say(file, f"damaged {found} (--resync goes on after it)")
    if dump.torn_tail is not None:
        left = dump.size - dump.torn_tail
        _say(file, f"the last batch, at byte {dump.torn_tail}, is not all there: its {left} bytes are left out")
    return DAMAGE_FOUND if found is not None or dump.damage else FINE


def _say(file: str, text: str) -> None:
    print(f"octavo: {file}: {text}", file=sys.stderr)


def _offsets(text: str) -> tuple[int | None, int | None]:
    """Parse a range of offsets: `A:B`, `A:` or `:B`."""
    first, colon, behind = text.partition(":")
    try:
        if not colon:
            raise ValueError
        return (int(first) if first else None, int(behind) if behind else None)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not A:B, like 1000:2000, 1000: or :2000") from None
