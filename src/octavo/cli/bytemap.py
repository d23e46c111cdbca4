"""Draw the map of a batch's bytes on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.table import Table
from rich.text import Text

from octavo.inspect.field import Field

_STYLES: Final = {"key": "green", "value": "green", "crc": "magenta", "magic": "magenta", "attributes": "magenta"}


def draw(fields: Iterable[Field], *, bytes_a_line: int) -> Table:
    """Draw a table with one row per field: position, bytes in hex, name, meaning. Problems are red."""
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    drawn.add_column("at", justify="right", style="dim")
    drawn.add_column("bytes", width=2 * bytes_a_line, overflow="fold", no_wrap=False)
    drawn.add_column("field", no_wrap=True)
    drawn.add_column("meaning", overflow="fold")
    for field in fields:
        drawn.add_row(*_row(field))
    return drawn


def _row(field: Field) -> tuple[Text, Text, Text, Text]:
    indent = "  " * field.depth
    style = _STYLES.get(field.name, "yellow" if field.name.endswith(("length", "count")) else "cyan")
    if field.problem:
        style = "bold red"
    says = Text(field.value)
    if field.problem:
        says.append(f"{' ' if field.value else ''}← {field.problem}", style="bold red")
    if field.is_group:
        return Text(), Text(), Text(indent + field.name, style="bold"), says
    where = f"*{field.position}" if field.inflated else str(field.position)
    return Text(where), Text(field.data.hex(), style=style), Text(indent + field.name), says
