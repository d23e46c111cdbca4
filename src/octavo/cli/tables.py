"""Print rows: as tables like those of Kafka's tools, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from octavo.cli.printable import printable

Row = Mapping[str, object]  # by the names of JSON; None where nothing is known

_NOTHING: Final = "-"


class Column(NamedTuple):
    """A column: its title, the name of its values in a row, and the least width."""

    title: str
    name: str
    width: int = 15


def print_table(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """Print a line of titles, and a line for each row."""
    lines = [[each.title for each in columns], *([_cell(row[each.name]) for each in columns] for row in rows)]
    widths = [max(column.width, *map(len, cells)) for column, *cells in zip(columns, *lines, strict=True)]
    for line in lines:
        print(" ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_json(rows: Sequence[Row]) -> None:
    """Print a JSON object for each row, one a line."""
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _NOTHING if value in (None, "") else printable(str(value))
