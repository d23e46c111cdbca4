"""Print records and entries as a readable table, as wide as the terminal.

Records of one batch stand together, below a line about the batch. Keys and values are shown as text if they are
printable text, otherwise as hexadecimal digits; what does not fit is cut. A terminal obeys the bytes that it is sent,
so no character is printed that could move its cursor or change its state.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Final

from octavo.cli.printable import printable
from octavo.errors import FormatError
from octavo.inspect.control import control_content
from octavo.inspect.decoding.record_decoding import NOT_DECODED, DecodedRecord, RecordDecoding, decoded_records
from octavo.inspect.descriptions import time_of
from octavo.inspect.segment_file import SegmentFile
from octavo.records import Batch, Record, read_control

_NARROWEST: Final = 40
_TIME_WIDTH: Final = len("2026-11-16 03:00:00.000")
_GAP: Final = "  "
_LEAST_ROOM: Final = 12  # columns for key and value: where there are fewer, times are left out
_PAIR: Final = ("name", "value")  # the fields of entries that are never made a list
_SAMPLE: Final = 1000  # entries whose widths decide how wide the columns of a table are

_STYLES: Final = {
    "bold": "1",
    "dim": "2",
    "red": "1;31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}


class Paint:
    """Colours text with the escape sequences of terminals, or leaves it as it is."""

    def __init__(self, *, colours: bool) -> None:
        self._colours: Final = colours

    def __call__(self, style: str, text: str) -> str:
        """Return the text in a style: a name from `_STYLES`."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self._colours and text else text


def wants_colours() -> bool:
    """Return whether standard output takes colours: a terminal does, unless NO_COLOR or TERM say otherwise."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """Return the number of columns to print."""
    return max(_NARROWEST, shutil.get_terminal_size().columns)


class TableWriter:
    """Makes the lines of the table, without their line breaks."""

    def __init__(self, *, width: int, colours: bool) -> None:
        self._width: Final = width
        self._paint: Final = Paint(colours=colours)

    def heading(self, path: Path, what: str) -> str:
        """Return the line above everything in a file."""
        name = fit(printable(str(path)), self._width, keep_end=True)
        return self._paint("bold", name) + "\n" + self._paint("dim", fit(what, self._width))

    def batch(self, segment: SegmentFile, batch: Batch, decoding: RecordDecoding | None = None) -> Iterator[str]:
        """Yield the lines of a batch and its records. What is decoded stands in place of the bytes."""
        yield self._paint("dim", fit(_about(batch), self._width))
        offset_width = max(8, len(str(batch.last_offset)))
        room = self._width - offset_width - 2 * len(_GAP)
        has_times = room - _TIME_WIDTH - len(_GAP) >= _LEAST_ROOM
        if has_times:
            room -= _TIME_WIDTH + len(_GAP)
        key_width = max(6, room // (4 if decoding is None else 2))
        for record, decoded in _records(segment, batch, decoding):
            line = [self._paint("cyan", f"{record.offset:>{offset_width}}")]
            if has_times:
                time = fit(_to_the_millisecond(record.timestamp_ms), _TIME_WIDTH)
                line.append(self._paint("dim", f"{time:<{_TIME_WIDTH}}"))
            line += self._content(record, decoded, batch, key_width, room - key_width)
            yield _GAP.join(line)
            if decoded.error is not None:
                problem = fit(printable(f"cannot be decoded: {decoded.error}"), self._width - offset_width - len(_GAP))
                yield " " * offset_width + _GAP + self._paint("red", problem)
            yield from self._headers(record, offset_width)

    def _content(
        self, record: Record, decoded: DecodedRecord, batch: Batch, key_width: int, value_width: int
    ) -> Iterator[str]:
        if batch.is_control:
            content = control_content(read_control(record, position=batch.position))
            kind = content.pop("type")
            fields = " ".join(f"{name}={value}" for name, value in content.items())
            yield self._paint("magenta", fit(f"{kind} {fields}", key_width + len(_GAP) + value_width))
            return
        key, value = (text if text is None else text.encode() for text in decoded.for_people())
        yield self._bytes(record.key if key is None else key, key_width, "green", padded=True)
        yield self._bytes(record.value if value is None else value, value_width, None, padded=False)

    def _bytes(self, data: bytes | None, width: int, style: str | None, *, padded: bool) -> str:
        from rich.cells import cell_len

        text = shown(data, width)
        padding = " " * (width - cell_len(text)) if padded else ""
        if data is None:
            return self._paint("dim", text) + padding
        return (text if style is None else self._paint(style, text)) + padding

    def _headers(self, record: Record, indent: int) -> Iterator[str]:
        from rich.cells import cell_len

        for key, value in record.headers:
            room = self._width - indent - len(_GAP)
            name = fit(printable(key), max(4, room // 3))
            text = shown(value, max(4, room - cell_len(name) - 1))
            yield " " * indent + _GAP + self._paint("yellow", name) + self._paint("dim", f"={text}")

    def entries(self, fields: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
        """Yield a table with a column for each field, as wide as the first rows need, or a list if that is too wide."""
        found = (_texts(fields, row) for row in rows)
        first: list[Sequence[str]] = []
        error = None
        try:
            first.extend(islice(found, _SAMPLE))
        except FormatError as damage:
            error = damage
        if first:
            yield from self._columns(fields, first, found if error is None else iter(()))
        elif error is None:
            yield self._paint("dim", "no entries")
        if error is not None:
            raise error

    def _columns(
        self, fields: Sequence[str], first: Sequence[Sequence[str]], rest: Iterator[Sequence[str]]
    ) -> Iterator[str]:
        columns = list(zip(*first, strict=True))
        widths = [max(map(len, (name, *texts))) for name, texts in zip(fields, columns, strict=True)]
        if sum(widths) + len(_GAP) * (len(widths) - 1) > self._width and len(fields) > len(_PAIR):
            for texts in chain(first, rest):
                yield from self._list(fields, texts)
            return
        sides = [">" if all(map(is_number, texts)) else "<" for texts in columns]

        def line(texts: Sequence[str]) -> str:
            parts = [f"{text:{side}{width}}" for text, side, width in zip(texts, sides, widths, strict=True)]
            return fit(_GAP.join(parts).rstrip(), self._width)

        yield self._paint("dim", line(fields))
        yield from map(line, chain(first, rest))

    def _list(self, fields: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
        """Yield an entry as `name value` pairs, as many in a line as fit. The lines after the first are indented."""
        used = 0
        parts: list[str] = []
        for name, text in zip(fields, texts, strict=True):
            pair = fit(f"{name} {text}", self._width - len(_GAP))
            if parts and used + len(_GAP) + len(pair) > self._width:
                yield _GAP.join(parts)
                parts, used = [""], 0
            used += len(pair) + (len(_GAP) if parts else 0)
            parts.append(self._paint("dim", name) + pair[len(name) :])
        yield _GAP.join(parts)


def _texts(fields: Sequence[str], row: Sequence[object]) -> Sequence[str]:
    """Return the values of an entry as text, timestamps as times."""
    return [
        _to_the_millisecond(value) if isinstance(value, int) and name.lower().endswith("timestamp") else _text(value)
        for name, value in zip(fields, row, strict=True)
    ]


def _to_the_millisecond(timestamp_ms: int) -> str:
    time = time_of(timestamp_ms)
    return f"{time}.000" if len(time) == _TIME_WIDTH - len(".000") and time[0].isdecimal() else time


def _records(
    segment: SegmentFile, batch: Batch, decoding: RecordDecoding | None
) -> Iterable[tuple[Record, DecodedRecord]]:
    records = segment.records(batch)
    if decoding is None or batch.is_control:
        return ((record, NOT_DECODED) for record in records)
    return decoded_records(decoding, records)


def is_number(text: str) -> bool:
    """Return whether a text is a whole number, or stands for none."""
    return text == "-" or text.removeprefix("-").isdecimal()


def _text(value: object) -> str:
    return "-" if value is None else printable(str(value))


def _about(batch: Batch) -> str:
    """Describe a batch in one line."""
    count = "a wrapper" if batch.count is None else f"{batch.count} record{'' if batch.count == 1 else 's'}"
    words = [f"batch at {batch.position}", count, f"{batch.size} bytes", f"magic {batch.magic}"]
    if batch.is_compressed:
        words.append(batch.codec.name.lower())
    if batch.leader_epoch >= 0:
        words.append(f"epoch {batch.leader_epoch}")
    if batch.producer_id >= 0:
        words.append(f"producer {batch.producer_id}/{batch.producer_epoch}")
    if batch.base_sequence >= 0:
        words.append(f"sequence {batch.base_sequence}")
    if batch.is_transactional:
        words.append("transactional")
    return "── " + ", ".join(words)


def shown(data: bytes | None, width: int) -> str:
    """Return bytes as printable text, or as hexadecimal digits, cut to a width."""
    if data is None:
        return fit("null", width)
    start = data[: 4 * width + 4]  # enough to fill the width, whatever the characters are
    try:
        text = start.decode()
    except UnicodeDecodeError as error:
        if len(start) == len(data) or error.start < len(start) - 3:
            return fit(f"0x{data[:width].hex()}", width, is_cut=2 * len(data) + 2 > width)
        text = start[: error.start].decode()
    if sum(map(str.isprintable, text)) < 0.7 * len(text) and data.strip():
        return fit(f"0x{data[:width].hex()}", width, is_cut=2 * len(data) + 2 > width)
    return fit(printable(text), width, is_cut=len(start) < len(data))


def fit(text: str, width: int, *, is_cut: bool = False, keep_end: bool = False) -> str:
    """Cut a text to a number of columns, with an ellipsis where something is missing."""
    if text.isascii() and len(text) <= width and not is_cut:
        return text
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width and not is_cut:
        return text
    if keep_end:
        text = text[max(0, len(text) - width + 1) :]
        while cell_len(text) > width - 1:
            text = text[1:]
        return "…" + text
    return set_cell_size(text, min(width - 1, cell_len(text))).rstrip(" ") + "…"
