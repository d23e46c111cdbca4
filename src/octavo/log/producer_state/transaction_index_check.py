"""Check a transaction index against the batches that it names.

For each entry, the marker is read, and the transaction's first batch if it still exists. Afterwards readers and
compaction trust the index; one that lies would show aborted records. If the whole segment can be read quickly, all
entries are compared with its batches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from octavo.errors import CorruptFile
from octavo.log.producer_state.aborted import ABORT, DATA, EVENT, TransactionScan
from octavo.log.producer_state.producer_batch import ProducerBatch, has_producer, producer_batch
from octavo.log.segment.damage import MARKER_SIZE
from octavo.log.segment.segment import Segment
from octavo.log.segment.transaction_index import AbortedEntry, TransactionIndex
from octavo.records.layout import BATCH_HEADER, MAGIC_AT, MAX_INT64, NO_OFFSET

QUICK: Final = 16 << 20  # bytes of a segment that can be read while a caller waits for a log to open


def check_txn_index(segments: Sequence[Segment], number: int, start_offset: int = 0) -> None:
    """Check that the index of segment `number` matches its data. Raises `CorruptFile`."""
    index = segments[number].txn_index
    behind = segments[number + 1].base_offset if number + 1 < len(segments) else MAX_INT64
    index.check(behind)
    entries = list(index.entries())
    for at, entry in enumerate(entries):
        if not _is_true(segments, number, entry):
            rule = f"producer {entry.producer_id} did not abort what it wrote from {entry.first_offset} on there"
            raise CorruptFile(index.path, at * TransactionIndex.ENTRY_SIZE, rule)
    if segments[number].size <= QUICK:
        _compare(segments[number], entries, start_offset)


def _is_true(segments: Sequence[Segment], number: int, entry: AbortedEntry) -> bool:
    end = _batch_at(segments[number], entry.last_offset)
    if end is None or end.producer_id != entry.producer_id or end.marker is None or end.marker.is_commit:
        return False
    if entry.last_stable_offset > entry.last_offset + 1:
        return False
    first = bisect_right(segments, entry.first_offset, key=attrgetter("base_offset")) - 1
    begin = None if first < 0 else _batch_at(segments[first], entry.first_offset)
    # The first batch may have been deleted or compacted away. If another producer's batch is there, the entry lies.
    return begin is None or (begin.producer_id == entry.producer_id and begin.is_transactional and not begin.is_control)


def _batch_at(segment: Segment, offset: int) -> ProducerBatch | None:
    """Return the batch that begins at `offset`; None if there is none or it is damaged."""
    try:
        found = segment.find(offset, segment.size)
    except CorruptFile:
        return None
    if found is None or found.base_offset != offset:
        return None
    data = segment.file.read_at(min(found.size, MARKER_SIZE), found.position)
    if data[MAGIC_AT] < 2 or not has_producer(data):
        return ProducerBatch(-1, -1, -1, -1, offset, found.last_offset, -1, False, False, None)
    return producer_batch(data[: BATCH_HEADER.size], data[BATCH_HEADER.size :])


def _compare(segment: Segment, entries: Sequence[AbortedEntry], start_offset: int) -> None:
    """Compare the entries with the batches: which transactions were aborted, and which were open at that time.

    An entry may know an earlier start of its transaction: the first batches may be deleted or compacted away.
    """
    scan = TransactionScan()
    begin = segment.find(start_offset, segment.size)
    scan.note_file(segment.file, segment.size if begin is None else begin.position, segment.size)
    numbers = {entry.last_offset: at for at, entry in enumerate(entries)}
    seen = [entry for entry in entries if entry.last_offset >= start_offset]  # below it, markers are deleted
    earlier = {entry.producer_id: entry.first_offset for entry in reversed(seen)}
    opened = {producer_id: first for producer_id, first in earlier.items() if first < segment.base_offset}
    ended: dict[int, int] = {}  # offset of the last marker of each producer
    for at in range(0, len(scan.events), EVENT):
        offset, producer_id, what = scan.events[at : at + EVENT]
        if what == DATA:
            opened.setdefault(producer_id, offset)
            continue
        first_offset = opened.pop(producer_id, None)
        after, ended[producer_id] = ended.get(producer_id, NO_OFFSET), offset
        if what != ABORT or first_offset is None:
            continue
        number = numbers.get(offset)
        entry = None if number is None else entries[number]
        stable = min(opened.values(), default=offset + 1)
        if entry is None or not after < entry.first_offset <= first_offset or entry.last_stable_offset > stable:
            rule = f"producer {producer_id} aborted at {offset} what it wrote from {first_offset} on; it has {entry}"
            raise CorruptFile(segment.txn_index.path, (number or 0) * TransactionIndex.ENTRY_SIZE, rule)
