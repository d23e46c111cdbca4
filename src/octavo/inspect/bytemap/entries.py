"""Map the files beside a segment: indexes, snapshots of producers, checkpoints and properties.

A file of many entries is mapped around one place: the entries there one by one, the others as one field on each side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from octavo.inspect import descriptions
from octavo.inspect.bytemap.field import Field, Section
from octavo.inspect.kinds import Kind
from octavo.log.producer_state.snapshot import ENTRY, START
from octavo.log.segment.index import OffsetIndex, TimeIndex
from octavo.log.segment.transaction_index import ROW
from octavo.records.checksum import crc32c
from octavo.records.layout import Int32, Int64, Layout


class _OffsetIndexEntry(NamedTuple):
    relative_offset: Int32
    position: Int32


class _TimeIndexEntry(NamedTuple):
    timestamp_ms: Int64
    relative_offset: Int32


_OFFSET_ENTRY: Final = Layout(_OffsetIndexEntry)
_TIME_ENTRY: Final = Layout(_TimeIndexEntry)
assert _OFFSET_ENTRY.size == OffsetIndex.ENTRY_SIZE
assert _TIME_ENTRY.size == TimeIndex.ENTRY_SIZE
_COVERED_FROM: Final = START.at("entry_count")

Values = Mapping[str, str]


class _Format(NamedTuple):
    """The entries of one kind of file."""

    name: str  # of an entry
    layout: Layout[Any]
    describe: Callable[[Any, int], Values]  # of an entry and the file's base offset
    offset: Callable[[Any, int], int] | None  # the offset by which entries are ordered
    is_padded: bool  # zeros behind the entries are room for more


def _offset_values(entry: _OffsetIndexEntry, base: int) -> Values:
    offset = base + entry.relative_offset
    return {"relative_offset": f"{entry.relative_offset} (offset {offset})", "position": str(entry.position)}


def _time_values(entry: _TimeIndexEntry, base: int) -> Values:
    offset = base + entry.relative_offset
    return {
        "timestamp_ms": descriptions.timestamp(entry.timestamp_ms),
        "relative_offset": f"{entry.relative_offset} (offset {offset})",
    }


def _plain_values(entry: Any, base: int) -> Values:
    return {name: str(number) for name, number in entry._asdict().items()}


def _producer_values(entry: Any, base: int) -> Values:
    said = {name: descriptions.number_or_none(number) for name, number in entry._asdict().items()}
    return said | {"timestamp_ms": descriptions.timestamp(entry.timestamp_ms)}


_FORMATS: Final = {
    Kind.OFFSET_INDEX: _Format(
        "entry", _OFFSET_ENTRY, _offset_values, lambda entry, base: base + entry.relative_offset, True
    ),
    Kind.TIME_INDEX: _Format(
        "entry", _TIME_ENTRY, _time_values, lambda entry, base: base + entry.relative_offset, True
    ),
    Kind.TRANSACTION_INDEX: _Format("transaction", ROW, _plain_values, lambda entry, base: entry.last_offset, False),
    Kind.PRODUCER_SNAPSHOT: _Format("producer", ENTRY, _producer_values, None, False),
}
_LINES: Final = {  # the names of lines
    Kind.LEADER_EPOCHS: "epoch",
    Kind.OFFSET_CHECKPOINT: "offset",
    Kind.PARTITION_METADATA: "line",
    Kind.META_PROPERTIES: "line",
    Kind.QUORUM_STATE: "line",
}
KINDS: Final = frozenset({*_FORMATS, *_LINES})


def explain_entries(
    kind: Kind,
    data: bytes,
    *,
    base_offset: int = 0,
    offset: int | None = None,
    position: int = 0,
    max_entries: int | None = None,
) -> list[Field]:
    """Return the fields of a file of one of `KINDS`.

    base_offset: the offset that the file is named after; the offsets in an index count from it
    offset, position: begin with the last entry that is not behind this offset, or with the entry at this byte
    max_entries: map at most so many entries or lines one by one
    """
    fields: list[Field] = []
    section = Section(memoryview(data), fields)
    if kind in _LINES:
        _map_lines(section, data, _LINES[kind], position, max_entries)
        return fields
    form = _FORMATS[kind]
    start = _map_start(section, data) if kind is Kind.PRODUCER_SNAPSHOT else 0
    size = form.layout.size
    count = (len(data) - start) // size
    zeros = _padding(data, start, size, count) if form.is_padded else 0
    first = max(0, position - start) // size
    if offset is not None and form.offset is not None:
        first = _last_at(form, data, count - zeros, base_offset, offset)
    behind = count - zeros if max_entries is None else min(count - zeros, first + max_entries)
    _leave_out(section, "entries", start, 0, first, size)
    for number in range(first, behind):
        _map_entry(section, form, start + number * size, number, base_offset, start)
    _leave_out(section, "entries", start, behind, count - zeros, size)
    end = start + count * size
    section.leaf("zeros", end - zeros * size, end, f"{zeros:,} entries of zeros", 0)
    if end < len(data):
        section.leaf("rest", end, len(data), "", 0, f"the file ends inside an entry of {size} bytes")
    return fields


def _leave_out(section: Section, name: str, start: int, first: int, behind: int, size: int) -> None:
    said = f"{behind - first:,} not shown one by one"
    section.leaf(name, start + first * size, start + max(first, behind) * size, said, 0)


def _map_entry(section: Section, form: _Format, at: int, number: int, base: int, start: int) -> None:
    entry = form.layout.read(section.view, at)
    problem = None
    if form.offset is not None and at > start:
        before = form.layout.read(section.view, at - form.layout.size)
        if form.offset(before, base) >= form.offset(entry, base):
            problem = "its offset is not larger than that of the entry before it"
    end = at + form.layout.size
    section.group(f"{form.name} {number}", at, end, "", 0, problem)
    section.layout(form.layout, at, end, form.describe(entry, base), 1, {})


def _map_start(section: Section, data: bytes) -> int:
    """Map what is before the entries of a snapshot of producers; return where the entries begin."""
    section.group("start", 0, min(START.size, len(data)), "", 0)
    if len(data) < START.size:
        return section.layout(START, 0, len(data), dict.fromkeys(START.read(bytes(START.size))._fields, ""), 1, {})
    version, stored, count = START.read(data)
    crc, wrong = descriptions.checksum(stored, crc32c(memoryview(data)[_COVERED_FROM:]))
    room = (len(data) - START.size) // ENTRY.size
    problems = {
        "version": None if version == 1 else "there is only version 1",
        "crc": wrong,
        "entry_count": None if count == room else f"the file has room for {room}",
    }
    return section.layout(
        START, 0, START.size, {"version": str(version), "crc": crc, "entry_count": str(count)}, 1, problems
    )


def _padding(data: bytes, start: int, size: int, count: int) -> int:
    """Return how many entries at the end are zeros. A single entry of zeros is an entry."""
    if count <= 1:
        return 0
    used = len(data[start : start + count * size].rstrip(b"\0"))
    return count - -(-used // size)


def _last_at(form: _Format, data: bytes, count: int, base: int, offset: int) -> int:
    """Return the number of the last entry whose offset is at most `offset`; 0 if there is none."""
    assert form.offset is not None
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if form.offset(form.layout.read(data, middle * form.layout.size), base) <= offset:
            low = middle + 1
        else:
            high = middle
    return max(0, low - 1)


def _map_lines(section: Section, data: bytes, name: str, position: int, most: int | None) -> None:
    """Map a text file line by line, each with its line end. Checkpoints begin with a version and a count."""
    at = shown = left_out_from = 0
    start = ("version", "count") if name != "line" else ()
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines):
        end = at + len(line)
        if (number < len(start) or end > position) and (most is None or shown < most):
            section.leaf("lines", left_out_from, at, "not shown one by one", 0)
            said = descriptions.content(line.rstrip(b"\r\n")).strip('"')
            if number < len(start):
                problem = _count_problem(line, len(lines) - 2) if number else None
                section.leaf(start[number], at, end, said, 0, problem)
            else:
                section.leaf(f"{name} {number - len(start)}", at, end, said, 0)
            shown, left_out_from = shown + 1, end
        at = end
    section.leaf("lines", left_out_from, len(data), "not shown one by one", 0)


def _count_problem(line: bytes, count: int) -> str | None:
    digits = line.strip()
    is_right = digits.isdigit() and len(digits) < 10 and int(digits) == count
    return None if is_right else f"{count} lines follow"
