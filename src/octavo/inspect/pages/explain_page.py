"""Make the page of `octavo explain --html`: the bytes of a batch beside their fields.

The page is complete without its script, which only lights up what belongs together. Each field has a number. Bytes have
the number of their field in `data-c`, lines of the list of fields have it in `data-f`; a group also has the number of
its last field in `data-last`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from octavo.inspect.bytemap.field import Field
from octavo.inspect.bytemap.hexrows import WIDTH, HexRow, Run, hex_rows
from octavo.inspect.bytemap.locate import ByteMap
from octavo.inspect.bytemap.meanings import Role
from octavo.inspect.pages.document import document, text

_MOST_FIELDS: Final = 6_000  # of one map; a browser stays quick with so many
_MOST_ROWS: Final = 6_000
_KEEP: Final = 8  # rows of a long field that are shown before its middle is left out
_HALF: Final = WIDTH // 2
_MOST_HEX: Final = 32  # bytes of a field that its line shows

_LEGEND: Final = {
    Role.OFFSET: "offsets",
    Role.LENGTH: "lengths",
    Role.CONTROL: "flags and checks",
    Role.TIME: "times",
    Role.PRODUCER: "producers",
    Role.KEY: "keys",
    Role.VALUE: "values",
    Role.PACKED: "compressed",
    Role.UNREAD: "not shown or not read",
}


def explain_page(explained: ByteMap, *, everything: bool = False) -> str:
    """Return the page for one map. `everything`: do not leave out the middle of long fields."""
    title = f"{explained.path.name} at byte {explained.position:,}"
    spaces = [
        ("Bytes in the file", "file", [field for field in explained.fields if not field.inflated]),
        ("Decompressed bytes", "inflated", [field for field in explained.fields if field.inflated]),
    ]
    parts = [_head(explained)]
    first = 0
    for name, key, fields in spaces:
        if fields:
            parts.append(_space(name, key, fields, first, everything=everything))
        first += len(fields)
    parts.append(_DETAIL)
    return document(title, "\n".join(parts), styles=("base.css", "explain.css"), script="explain.js")


_DETAIL: Final = """\
<aside id="detail" aria-live="polite" aria-atomic="true">
<p class="hint">Point at bytes or at a field, or press Tab and the arrow keys.
Enter or a click holds on to it; Escape lets go.</p>
</aside>"""


def _head(explained: ByteMap) -> str:
    end = explained.position + explained.size
    folder = explained.path.absolute().parent.name
    parts = [
        '<header class="top">',
        f"<h1><span>{text(folder)}/</span>{text(explained.path.name)}</h1>",
        f"<p>{_summary(explained)}</p>",
        f'<p class="quiet">bytes {explained.position:,} to {end:,} of {explained.file_size:,}'
        + (f"; the next batch begins at byte {explained.next_position:,}" if explained.next_position else "")
        + "</p>",
    ]
    said = [f"<li>{text(note)}</li>" for note in explained.notes]
    said += [
        f'<li class="wrong">{text(field.name)} at byte {field.position:,}'
        f"{' of the decompressed bytes' if field.inflated else ''}: {text(field.problem or '')}</li>"
        for field in islice(explained.problems, 20)
    ]
    if said:
        parts.append(f'<ul class="notes">{"".join(said)}</ul>')
    used = {field.role for field in explained.fields if not field.is_group}
    chips = "".join(f'<li class="r-{role}">{what}</li>' for role, what in _LEGEND.items() if role in used)
    parts.append(f'<ul class="legend" aria-label="Colours">{chips}</ul></header>')
    return "\n".join(parts)


def _summary(explained: ByteMap) -> str:
    if not explained.fields:
        return f"{text(explained.kind.value)}, which is empty"
    first = explained.fields[0]
    if first.name not in ("batch", "message", "wrapper"):
        return text(explained.kind.value)
    said = {field.name: field.value for field in reversed(explained.fields) if not field.inflated}
    count = said.get("record_count", "")
    records = f"{count} record{'' if count == '1' else 's'}" if count else ""
    offset = f"from offset {said['base_offset']} on" if said.get("base_offset") else ""
    return text(", ".join(part for part in (first.name, first.value, records, offset) if part))


def _space(title: str, key: str, fields: Sequence[Field], first: int, *, everything: bool) -> str:
    """Return bytes and fields of one range of bytes. `first` is the number of its first field."""
    size = sum(field.size for field in fields if not field.is_group)
    rows = hex_rows(fields, keep=None if everything else _KEEP)
    shown = "\n".join(_hex_row(row, fields, first) for row in islice(rows, _MOST_ROWS))
    is_more = next(rows, None) is not None
    notes = ""
    if is_more or len(fields) > _MOST_FIELDS:
        notes = (
            f'<p class="quiet">This is much: {size:,} bytes in {len(fields):,} fields. The page shows the first '
            f"{_MOST_ROWS:,} rows and {_MOST_FIELDS:,} fields of it.</p>"
        )
    items = "\n".join(_items(fields[:_MOST_FIELDS], first))
    return (
        f'<section class="space" aria-labelledby="t-{key}"><h2 id="t-{key}">{title} <small>{size:,}</small></h2>{notes}'
        f'<div class="panes"><div class="pane"><div class="hex {_width(fields)}" role="grid" '
        f'aria-label="{title}" aria-readonly="true">'
        f'\n{shown}\n</div></div><div class="pane"><div class="fields" role="tree" aria-label="Fields: {title}">'
        f"\n{items}\n</div></div></div></section>"
    )


def _hex_row(row: HexRow, fields: Sequence[Field], first: int) -> str:
    at = f'<span class="at" role="rowheader">{row.position}</span>'
    if not row.runs:
        name = text(fields[row.field].name)
        return (
            f'<div class="row gap" role="row">{at}<span class="more" role="gridcell" data-c="{first + row.field}">'
            f"{row.left_out:,} more bytes of {name}</span></div>"
        )
    cells, chars = ["", ""], ["", ""]
    column = 0
    for run, half in _halved(row.runs):
        field = fields[run.field]
        kind = f"r-{field.role}{' wrong' if field.problem else ''}"
        edge = " b" if run.data and _is_start(field, row.position + column) else ""
        number = first + run.field
        cells[half] += (
            f'<span class="{kind}{edge}" role="gridcell" tabindex="-1" data-c="{number}" data-x="{column}">'
            f"{run.data.hex(' ')}</span>"
        )
        shown = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in run.data)
        chars[half] += f'<span class="{kind}" data-c="{number}">{text(shown)}</span>'
        column += len(run.data)
    second = ""
    if cells[1]:
        second = f'<span class="h2">{cells[1]}</span><span class="c2" aria-hidden="true">{chars[1]}</span>'
    return (
        f'<div class="row" role="row">{at}<span class="h1">{cells[0]}</span>'
        f'<span class="c1" aria-hidden="true">{chars[0]}</span>{second}</div>'
    )


def _width(fields: Sequence[Field]) -> str:
    """Return the class for the width of the column of positions."""
    digits = max((len(str(field.position + field.size)) for field in fields), default=1)
    return next(f"w{width}" for width in (4, 7, 10, 19) if digits <= width)


def _is_start(field: Field, position: int) -> bool:
    return field.position == position


def _halved(runs: Sequence[Run]) -> Iterator[tuple[Run, int]]:
    """Cut the runs of a row in its middle, and say in which half each is."""
    column = 0
    for index, data in runs:
        before = max(0, min(len(data), _HALF - column))
        if before:
            yield Run(index, data[:before]), 0
        if before < len(data):
            yield Run(index, data[before:]), 1
        column += len(data)


def _items(fields: Sequence[Field], first: int) -> Iterator[str]:
    lasts = _lasts(fields)
    lowest = min((field.depth for field in fields), default=0)
    for number, field in enumerate(fields):
        level = field.depth - lowest + 1
        group = f' data-last="{first + lasts[number]}" aria-expanded="true"' if field.is_group else ""
        wrong = " wrong" if field.problem else ""
        shown = field.data[:_MOST_HEX].hex(" ") + (" …" if field.size > _MOST_HEX else "")
        raw = "" if field.is_group else f'<code class="raw">{shown}</code>'
        problem = f'<span class="problem">{text(field.problem)}</span>' if field.problem else ""
        yield (
            f'<div role="treeitem" class="f l{min(level, 5)} r-{field.role}{wrong}" id="f{first + number}" '
            f'tabindex="-1" aria-level="{level}" aria-selected="false" data-f="{first + number}"{group}>'
            f'<span class="name">{text(field.name)}</span><span class="value">{text(field.value)}</span>'
            f'<span class="place">byte {field.position:,}, {_bytes(field.size)}</span>{raw}'
            f'<span class="meaning">{text(field.meaning)}</span>{problem}</div>'
        )


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size:,} bytes"


def _lasts(fields: Sequence[Field]) -> list[int]:
    """Return for each field the number of the last field inside it: its own, if it is not a group."""
    lasts = list(range(len(fields)))
    groups: list[int] = []
    for number, field in enumerate(fields):
        while groups and fields[groups[-1]].depth >= field.depth:
            lasts[groups.pop()] = number - 1
        if field.is_group:
            groups.append(number)
    for group in groups:
        lasts[group] = len(fields) - 1
    return lasts
