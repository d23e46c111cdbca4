"""`octavo explain`: show what every byte of a batch means, in the terminal or as a page."""

from __future__ import annotations

import argparse
import io
import sys
from typing import TYPE_CHECKING, Final

from octavo.cli.exits import DAMAGE_FOUND, FINE
from octavo.cli.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

    from octavo.inspect.bytemap.field import Field
    from octavo.inspect.bytemap.locate import ByteMap

_DESCRIPTION: Final = """\
Shows every byte of one batch: first as hex, coloured by field, then field by field with name, bytes, value and
meaning, down to records and headers. If the records are compressed, the decompressed bytes follow in the same way.
All formats that Kafka ever stored are read. Indexes, snapshots of producers and checkpoints are explained, too.
"""

_EPILOG: Final = """\
examples:
  octavo explain orders-0/00000000000000000000.log
  octavo explain orders-0/00000000000000000000.log --offset 4711
  octavo explain orders-0/00000000000000000000.log --position 16384 --html batch.html
  octavo explain orders-0/00000000000000000000.timeindex --offset 4711

A damaged batch is explained as far as it goes; what is wrong stands where it was found, and the exit code is 1.
Colours are left out if the output is no terminal, or if NO_COLOR is set.
"""

RECORDS: Final = 8  # records that are shown one by one, unless more are asked for
PAGE_RECORDS: Final = 200  # the same for a page
_WIDEST: Final = 120
_NARROW: Final = 80  # the width where there is no terminal


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo explain` and its options to the parser."""
    parser = commands.add_parser(
        "explain",
        help="show what every byte of a batch means",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="a segment, a metadata snapshot, an index, a checkpoint")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--offset", metavar="N", type=_number, help="the batch with this offset (default: the first)")
    place.add_argument("--position", metavar="P", type=_number, help="the batch that covers this byte of the file")
    parser.add_argument(
        "--records",
        metavar="N",
        type=_number,
        help=f"show N records or entries one by one (default: {RECORDS}, in a page {PAGE_RECORDS})",
    )
    parser.add_argument(
        "--all", action="store_true", help="show all records, and leave out nothing of long keys and values"
    )
    parser.add_argument("--html", metavar="FILE", help="write a page to this file, to look at in a browser")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain one batch; return 1 if it is damaged."""
    from pathlib import Path

    from octavo.inspect.bytemap.locate import explain_file

    usual = PAGE_RECORDS if arguments.html is not None else RECORDS
    most = arguments.records if arguments.records is not None else usual
    explained = explain_file(
        Path(arguments.file),
        offset=arguments.offset,
        position=arguments.position,
        max_records=None if arguments.all else most,
    )
    if arguments.html is not None:
        _write_page(explained, Path(arguments.html), everything=arguments.all)
    else:
        _print(explained, everything=arguments.all)
    return DAMAGE_FOUND if explained.problems and not explained.is_torn else FINE


def _print(explained: ByteMap, *, everything: bool) -> None:
    from octavo.cli.console import OutputConsole

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where the locale has no middle dots
    console = OutputConsole(highlight=False, soft_wrap=True)
    width = min(console.width, _WIDEST) if console.is_terminal else _NARROW
    for line in _lines(explained, width, everything=everything):
        line.rstrip()
        sys.stdout.write(_drawn(console, line) if console.is_terminal else f"{line.plain}\n")


def _drawn(console: Console, line: Text) -> str:
    """Return a line with its colours."""
    with console.capture() as drawn:
        console.print(line)
    return drawn.get()


def _lines(explained: ByteMap, width: int, *, everything: bool) -> Iterator[Text]:
    from rich.text import Text

    from octavo.cli.bytemap import field_lines, hex_lines, wrapped

    yield Text(printable(str(explained.path)), style="bold")
    yield from wrapped(Text(_headline(explained)), width)
    for note in explained.notes:
        yield from wrapped(Text(note, style="yellow"), width)
    for field in explained.problems:
        place = "the decompressed bytes" if field.inflated else "the file"
        said = f"wrong: {field.name} at byte {field.position:,} of {place}: {field.problem}"
        yield from wrapped(Text(said, style="bold red"), width)
    known: set[tuple[str, str]] = set()
    for title, fields in parts(explained):
        yield Text()
        if title:
            yield Text(title, style="bold")
            yield Text()
        yield from hex_lines(fields, width=width, everything=everything)
        yield Text()
        yield from field_lines(fields, width=width, explained=known)
    if explained.next_position is not None:
        yield Text()
        yield Text(f"The next batch: --position {explained.next_position}", style="dim")


def parts(explained: ByteMap) -> Iterator[tuple[str, list[Field]]]:
    """Yield the fields in the file, and with a title those in the decompressed bytes, if there are any."""
    stored = [field for field in explained.fields if not field.inflated]
    if stored:
        yield "", stored
    inflated = [field for field in explained.fields if field.inflated]
    if inflated:
        size = sum(field.size for field in inflated if not field.is_group)
        yield f"Decompressed: {size:,} bytes", inflated


def _headline(explained: ByteMap) -> str:
    if not explained.fields:
        return f"{explained.kind.value}, which is empty"
    end = explained.position + explained.size
    place = f"bytes {explained.position:,} to {end:,} of {explained.file_size:,}"
    first = explained.fields[0]
    if first.name in ("batch", "message", "wrapper"):
        return f"{first.name}: {first.value}; {place}"
    return f"{explained.kind.value}; {place}"


def _write_page(explained: ByteMap, target: Path, *, everything: bool) -> None:
    from octavo.inspect.pages.explain_page import explain_page
    from octavo.inspect.pages.writing import write_page

    write_page(target, explain_page(explained, everything=everything))
    print(f"Written: {printable(str(target))}", file=sys.stderr)


def _number(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 19:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(digits)
