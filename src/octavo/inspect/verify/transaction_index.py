"""The rules of `.txnindex` files: which aborted transactions a segment has.

An entry has 34 bytes: version (int16, 0), producer id, first offset, last offset (that of the marker) and last stable
offset (int64 each).

Releases before 2.8 also wrote entries for aborted transactions without records; their first offset is that of the
marker. A follower appends several batches at once, so that its last stable offsets may lie at a transaction that began
after the marker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple

from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.producer_replay import ABORT, Aborted, Marker
from octavo.inspect.verify.repairs import REBUILD_TRANSACTIONS

KIND: Final = "transaction index"

LENGTH: Final = Rule.declare(
    "txnindex-length",
    KIND,
    means="The file does not consist of whole entries; readers ignore the rest.",
    repair=REBUILD_TRANSACTIONS,
)
VERSION: Final = Rule.declare(
    "txnindex-version",
    KIND,
    means="An entry has an unknown version; Kafka refuses to read the index, and consumers of committed data fail.",
    repair=REBUILD_TRANSACTIONS,
)
RANGE: Final = Rule.declare(
    "txnindex-range",
    KIND,
    means="An entry has offsets or a producer id that no transaction of this segment can have.",
    repair=REBUILD_TRANSACTIONS,
)
ORDER: Final = Rule.declare(
    "txnindex-order",
    KIND,
    means="The last offsets of entries do not increase; readers stop too early and show aborted records.",
    repair=REBUILD_TRANSACTIONS,
)
MISSING: Final = Rule.declare(
    "txnindex-missing",
    KIND,
    means="A transaction was aborted but has no entry; consumers of committed data are shown its records.",
    repair=REBUILD_TRANSACTIONS,
)
SUPERFLUOUS: Final = Rule.declare(
    "txnindex-superfluous",
    KIND,
    means="An entry names a transaction that was not aborted there; committed records may be hidden from consumers.",
    repair=REBUILD_TRANSACTIONS,
)
FIRST_OFFSET: Final = Rule.declare(
    "txnindex-first-offset",
    KIND,
    means="An aborted transaction begins elsewhere than its entry says; consumers see or miss records of it.",
    repair=REBUILD_TRANSACTIONS,
)
STABLE_OFFSET: Final = Rule.declare(
    "txnindex-stable-offset",
    KIND,
    means="The last stable offset of an entry is wrong; readers may stop before other aborted transactions.",
    repair=REBUILD_TRANSACTIONS,
)

_ENTRY: Final = struct.Struct(">hqqqq")
_VERSION: Final = 0
assert _ENTRY.size == 34


class IndexEntry(NamedTuple):
    """An entry of a transaction index."""

    position: int  # in the file
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_entries(data: bytes) -> list[IndexEntry]:
    """Return the whole entries of an index."""
    whole = memoryview(data)[: len(data) - len(data) % _ENTRY.size]
    return [IndexEntry(at * _ENTRY.size, *each) for at, each in enumerate(_ENTRY.iter_unpack(whole))]


def check_form(name: str, size: int, entries: Sequence[IndexEntry], base: int, end: int | None) -> Iterator[Problem]:
    """Check the entries of the index of a segment from `base` to `end`, without looking at its batches."""
    if size % _ENTRY.size:
        yield LENGTH.broken(name, position=size - size % _ENTRY.size, found=f"{size % _ENTRY.size} bytes are left over")
    previous = -1
    for entry in entries:
        if entry.version != _VERSION:
            yield VERSION.broken(name, position=entry.position, found=f"version {entry.version}")
            continue
        wrong = _wrong_range(entry, base, end)
        if wrong:
            yield RANGE.broken(name, position=entry.position, offset=entry.last_offset, found=wrong)
        if entry.last_offset <= previous:
            found = f"{entry.last_offset} after {previous}"
            yield ORDER.broken(name, position=entry.position, offset=entry.last_offset, found=found)
        previous = max(previous, entry.last_offset)


def _wrong_range(entry: IndexEntry, base: int, end: int | None) -> str | None:
    if entry.producer_id < 0:
        return f"producer id {entry.producer_id}"
    if not base <= entry.last_offset or (end is not None and entry.last_offset >= end):
        return f"last offset {entry.last_offset} is not in the segment"
    if not 0 <= entry.first_offset <= entry.last_offset:
        return f"first offset {entry.first_offset}, last offset {entry.last_offset}"
    if entry.last_stable_offset < 0:
        return f"last stable offset {entry.last_stable_offset}"
    return None


class SegmentTransactions(NamedTuple):
    """What the batches of one segment tell about its transactions."""

    aborted: Mapping[int, Aborted]  # by the offset of the marker
    markers: Mapping[int, Marker]  # by offset: those at the offsets that entries name
    begins: Set[int]  # offsets of transactions' first batches, and of markers
    start: int  # the first offset that was read
    end: int  # the offset after the last that was read


def check_against_data(name: str, entries: Sequence[IndexEntry], data: SegmentTransactions) -> Iterator[Problem]:
    """Compare the entries of an index with the batches of its segment."""
    for entry in entries:
        if entry.version == _VERSION and data.start <= entry.last_offset < data.end:
            yield from _check_entry(name, entry, data)


def check_missing(name: str, entries: Sequence[IndexEntry], aborted: Mapping[int, Aborted]) -> Iterator[Problem]:
    """Find the aborted transactions that have no entry. Those without records need none."""
    named = {entry.last_offset for entry in entries}
    for offset, each in aborted.items():
        if offset not in named and each.first.records:
            found = (
                f"producer {each.marker.producer_id}, from offset {each.first.base_offset} to the marker at {offset}"
            )
            yield MISSING.broken(name, offset=offset, found=found)


def _check_entry(name: str, entry: IndexEntry, data: SegmentTransactions) -> Iterator[Problem]:
    marker = data.markers.get(entry.last_offset)
    aborted = data.aborted.get(entry.last_offset)
    if marker is None or marker.kind != ABORT or marker.producer_id != entry.producer_id:
        found = f"producer {entry.producer_id} aborted nothing at {entry.last_offset}"
        yield SUPERFLUOUS.broken(name, position=entry.position, offset=entry.last_offset, found=found)
        return
    if aborted is None:  # its records are gone, or there were none
        return
    if not _is_first(entry, aborted):
        found = f"{entry.first_offset}, but the first batch is at {aborted.first.base_offset}"
        yield FIRST_OFFSET.broken(name, position=entry.position, offset=entry.last_offset, found=found)
    if not _is_stable(entry, aborted, data.begins):
        expected = entry.last_offset + 1 if aborted.stable is None else aborted.stable.base_offset
        found = f"{entry.last_stable_offset} instead of {expected}"
        yield STABLE_OFFSET.broken(name, position=entry.position, offset=entry.last_offset, found=found)


def _is_first(entry: IndexEntry, aborted: Aborted) -> bool:
    first = aborted.first
    if first.base_offset == entry.first_offset:
        return True
    if entry.first_offset > first.base_offset:  # old releases: the last record, if a batch has no sequence
        return first.base_sequence < 0 and first.has(entry.first_offset)
    return aborted.earlier_marker < entry.first_offset < aborted.whole_from


def _is_stable(entry: IndexEntry, aborted: Aborted, begins: Set[int]) -> bool:
    stable = entry.last_stable_offset
    if aborted.stable is None:
        expected = stable == entry.last_offset + 1 or (stable > entry.last_offset and stable in begins)
    else:
        expected = stable == aborted.stable.base_offset or (
            aborted.stable.base_sequence < 0 and aborted.stable.has(stable)
        )
    return expected or stable < aborted.whole_from
