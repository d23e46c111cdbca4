"""Draw a map of bytes on a terminal: rows of bytes in hex, coloured by field, and a table of the fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from octavo.inspect.bytemap.field import Field
from octavo.inspect.bytemap.hexrows import WIDTH, HexRow, hex_rows
from octavo.inspect.bytemap.meanings import Role

_STYLES: Final = {
    Role.GROUP: "bold",
    Role.OFFSET: "cyan",
    Role.LENGTH: "yellow",
    Role.CONTROL: "magenta",
    Role.TIME: "bright_blue",
    Role.PRODUCER: "bright_magenta",
    Role.KEY: "green",
    Role.VALUE: "default",
    Role.PACKED: "default",
    Role.UNREAD: "dim",
}
_BROKEN: Final = "bold red"
_KEEP: Final = 3  # rows of a long field that are shown before its middle is left out
_GAP: Final = 8  # bytes after which a row has a wider gap
_FIELD_COLUMN: Final = 20  # the width of the names, with their indent
_LEAST: Final = 16  # columns for a text, however narrow the screen is
_MOST_HEX: Final = 8  # bytes of a field that are shown beside its name


def draw(fields: Iterable[Field], *, bytes_a_line: int) -> Table:
    """Draw a table with one row per field: position, bytes in hex, name, value. Problems are red."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    drawn.add_column("at", justify="right", style="dim")
    drawn.add_column("bytes", width=2 * bytes_a_line, overflow="fold", no_wrap=False)
    drawn.add_column("field", no_wrap=True)
    drawn.add_column("value", overflow="fold")
    for field in fields:
        drawn.add_row(*_row(field))
    return drawn


def hex_lines(fields: Sequence[Field], *, width: int, everything: bool) -> Iterable[Text]:
    """Draw the bytes of fields that lie one after another: position, bytes, text. Each field has its colour.

    width: the columns of the screen; on a narrow one, rows have half as many bytes
    everything: leave nothing out, however long a field is
    """
    at_width = max((len(str(field.position + field.size)) for field in fields), default=1)
    a_row = WIDTH if at_width + 2 + len(_columns(WIDTH)) - len("text") + WIDTH <= width else _GAP
    yield Text(" " * at_width + "  " + _columns(a_row), style="dim")
    emphasis = _alternating(fields)
    for row in hex_rows(fields, keep=None if everything else _KEEP, width=a_row):
        yield _hex_line(row, fields, emphasis, at_width, a_row)


def field_lines(fields: Iterable[Field], *, width: int, explained: set[tuple[str, str]]) -> Iterable[Text]:
    """Draw the fields, a line each: position, bytes, name, value; below it what it means, if that was not said before.

    explained: the meanings that were shown already, with the names of their fields; new ones are added
    """
    fields = list(fields)
    at_width = max([2, *(len(str(field.position)) for field in fields)])
    yield Text(f"{'at':>{at_width}}  {'bytes':<16}  {'field':<{_FIELD_COLUMN}}value", style="bold")
    for field in fields:
        yield from _field_lines(field, at_width, width, explained)


def _field_lines(field: Field, at_width: int, width: int, explained: set[tuple[str, str]]) -> Iterable[Text]:
    style = style_of(field)
    line = Text(f"{field.position:>{at_width}}  ", style="dim")
    shown = "" if field.is_group else bytes(field.data[:_MOST_HEX]).hex()
    if len(field.data) > _MOST_HEX and shown:
        shown = shown[:-2] + " …"
    line.append(f"{shown:<16}  ", style=f"not dim {style}")
    name = "  " * field.depth + field.name
    line.append(f"{name:<{_FIELD_COLUMN}}", style=f"not dim {'bold' if field.is_group else 'default'}")
    indent = len(line)
    said = Text(field.value, style="not dim default")
    if len(name) >= _FIELD_COLUMN:
        said = Text(" ") + said
    yield from wrapped(said, width, line)
    if field.problem:
        yield from wrapped(Text(f"← {field.problem}", style=_BROKEN), width, Text(" " * indent))
    known = (field.name.rstrip("0123456789 "), field.meaning)
    if field.meaning and known not in explained:
        explained.add(known)
        at = at_width + 2 + 18 + 2 * field.depth
        yield from wrapped(Text(field.meaning, style="dim italic"), width, Text(" " * at))


def wrapped(said: Text, width: int, first: Text | None = None) -> Iterable[Text]:
    """Yield text in lines of at most `width` columns. `first` is put before it, and further lines are indented."""
    first = first if first is not None else Text()
    indent = len(first)
    lines = said.wrap(_console(), max(width - indent, _LEAST), overflow="fold")
    for number, line in enumerate(lines or [Text()]):
        line.rstrip()
        yield first + line if number == 0 else Text(" " * indent) + line


@cache
def _console() -> Console:
    """Return a console for what asks for one and prints nothing."""
    return Console()


def style_of(field: Field) -> str:
    """Return rich's style for the bytes of a field."""
    return _BROKEN if field.problem else _STYLES[field.role]


def _alternating(fields: Sequence[Field]) -> list[bool]:
    """Return which fields are underlined, so that neighbours of the same colour can be told apart."""
    marks: list[bool] = []
    before: Field | None = None
    mark = False
    for field in fields:
        if field.is_group or not field.size:
            marks.append(False)
            continue
        mark = before is not None and style_of(before) == style_of(field) and not mark
        marks.append(mark)
        before = field
    return marks


def _hex_line(row: HexRow, fields: Sequence[Field], emphasis: Sequence[bool], width: int, a_row: int) -> Text:
    line = Text(f"{row.position:>{width}}  ", style="dim")
    if not row.runs:
        line.append(f"··· {row.left_out:,} more bytes of {fields[row.field].name}", style="dim italic")
        return line
    shown = Text(style="not dim")
    column = 0
    for index, data in row.runs:
        style = f"not dim {style_of(fields[index])}{' underline' if emphasis[index] else ''}"
        for number, byte in enumerate(data):
            line.append(f"{byte:02x}", style=style)
            column += 1
            if column < a_row:
                # The blank between two bytes belongs to their field, if both do.
                inner = style if number < len(data) - 1 else ""
                line.append(" ", style=inner)
                if column == _GAP:
                    line.append(" ", style=inner)
            shown.append(chr(byte) if 32 <= byte < 127 else "·", style=style)
    line.append(" " * (len(_columns(a_row)) - len("text") + width + 2 - len(line)))
    return line + shown


def _columns(a_row: int) -> str:
    numbers = [f"+{number:x}" for number in range(a_row)]
    return "  ".join(" ".join(numbers[at : at + _GAP]) for at in range(0, a_row, _GAP)) + "  text"


def _row(field: Field) -> tuple[Text, Text, Text, Text]:
    indent = "  " * field.depth
    says = Text(field.value)
    if field.problem:
        says.append(f"{' ' if field.value else ''}← {field.problem}", style=_BROKEN)
    if field.is_group:
        return Text(), Text(), Text(indent + field.name, style="bold"), says
    where = f"*{field.position}" if field.inflated else str(field.position)
    return Text(where), Text(field.data.hex(), style=style_of(field)), Text(indent + field.name), says
