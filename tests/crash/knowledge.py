"""What a log must know of its producers and their transactions, and show of them: compared with what its batches tell.

Where segments have been deleted, a snapshot may know more than the batches that are left; but snapshots may be lost,
and then the batches are all there is. So of what was before the start of a log more or less may be known: `full` is
what all batches tell that ever were in it, `left` what those tell that are left.

A log that is compacted while it is open still knows what the batches told that it was opened with. This need be neither
of the two: compaction may remove a producer's last marker before an earlier one, whose transaction has data for longer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from octavo.log import Isolation, Log
from octavo.log.producer_state.states import ProducerEntry, RememberedBatch
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.records.checksum import crc32c
from tests.crash.model import Partition, Stored
from tests.crash.truth import Aborted, Producer, Seen, Told, Written, read, tell, visible


class Line(NamedTuple):
    """The batches of a log, and what was before them."""

    lineage: Sequence[Stored]  # all that ever were, and not cut off again
    written: list[Written]  # the same, read
    found: list[Written]  # what is there
    full: Told
    left: Told
    opened_with: Told | None = None  # what was left when the log was opened, where it was compacted since

    @classmethod
    def of(cls, lineage: Sequence[Stored], found: Sequence[Stored], opened_with: Told | None = None) -> Line:
        written = [read(batch.data) for batch in lineage]
        left = [read(batch.data) for batch in found]
        return cls(lineage, written, left, tell(written), tell(left), opened_with)

    def tellings(self, producer_id: int) -> Iterator[Producer]:
        """What may be known of a producer, whoever began to look where: all batches are told, or the last of them."""
        for told in (self.full, self.left, self.opened_with):
            if told is not None and producer_id in told.producers:
                yield told.producers[producer_id]
        for first in range(len(self.written)):
            told = tell(self.written[first:])
            if producer_id in told.producers:
                yield told.producers[producer_id]
            if self.written[first].base_offset in self.first_found:
                return

    @property
    def first_found(self) -> tuple[int, ...]:
        """The offset of the first batch that is there, if there is any."""
        return tuple(batch.base_offset for batch in self.found[:1])

    def below(self, offset: int) -> Line:
        """What was known when the log ended there."""
        written = [batch for batch in self.written if batch.next_offset <= offset]
        found = [batch for batch in self.found if batch.next_offset <= offset]
        return Line(self.lineage, written, found, tell(written), tell(found), self.opened_with)


def lines_of(partition: Partition, found: Sequence[Stored], end: int) -> list[Line]:
    """What may be known of a log that holds `found`."""
    found = [batch for batch in found if not partition.fills_gap(batch)]
    return [Line.of(lineage, found) for lineage in partition.lineages(found, end)]


def check_knowledge(log: Log, line: Line, random: Random, *, is_cleaned: bool = False) -> None:
    """The log knows its producers, and readers of committed data see what they should. Raises `AssertionError`."""
    check_producers(log.producers.entries, line, is_cleaned=is_cleaned)
    check_stable(log)
    check_txn_indexes(log, line)
    check_committed(log, line, random)


# ---------------------------------------------------------------------------------------------------------- producers


def check_producers(entries: Mapping[int, ProducerEntry], line: Line, *, is_cleaned: bool = False) -> None:
    """Nothing was forgotten that can be known, and nothing is known that is not true."""
    assert line.left.producers.keys() <= entries.keys() <= line.full.producers.keys(), (
        f"knows {sorted(entries)}; there are {sorted(line.left.producers)} among {sorted(line.full.producers)}"
    )
    for producer_id, entry in entries.items():
        full = line.full.producers[producer_id]
        if not any(_is_known(entry, known, is_cleaned=is_cleaned) for known in line.tellings(producer_id)):
            left = line.left.producers.get(producer_id)
            raise AssertionError(
                f"producer {producer_id}: {describe(entry)}; by all batches {full}, by the last {left}"
            )


def _is_known(entry: ProducerEntry, known: Producer, *, is_cleaned: bool) -> bool:
    """Whether an entry is what was told; where it was compacted, its batches may be others than the last five."""
    if (
        entry.epoch != known.epoch
        or entry.last_sequence != known.last_sequence
        or entry.last_offset != known.last_offset
        or entry.coordinator_epoch != known.coordinator_epoch
        or entry.last_timestamp_ms != known.timestamp_ms
        or entry.txn_first_offset != known.first_open
    ):
        return False
    batches = [batch[:3] for batch in entry.batches]  # a snapshot has one timestamp for batch and producer
    expected = [batch[:3] for batch in known.batches]
    return is_cleaned or batches == expected[len(expected) - len(batches) :]


def describe(entry: ProducerEntry) -> str:
    """For people."""
    return (
        f"epoch {entry.epoch}, coordinator's {entry.coordinator_epoch}, at {entry.last_timestamp_ms}, "
        f"open from {entry.txn_first_offset}, {entry.batches}"
    )


def check_stable(log: Log) -> None:
    """What is open keeps back readers of committed data, and nothing else does."""
    opened = [entry.txn_first_offset for entry in log.producers.entries.values() if entry.txn_first_offset >= 0]
    expected = max(min(opened), log.start_offset) if opened else log.high_watermark
    assert log.last_stable_offset == expected, f"{log.last_stable_offset} is stable; open: {opened}"


# ------------------------------------------------------------------------------------------------------- transactions


def check_txn_indexes(log: Log, line: Line) -> None:
    """Each aborted transaction stands in the index of the segment that has its marker, and nothing else does."""
    bases = [segment.base_offset for segment in log.segments]
    ends = [*bases[1:], log.end_offset]
    for segment, base, end in zip(log._view.segments, bases, ends, strict=True):
        entries = list(segment.txn_index.entries())
        expected = [one for one in line.full.aborted if base <= one.marker < end]
        markers = [entry.last_offset for entry in entries]
        assert markers == sorted(set(markers)), f"{segment.path.name}: {entries}"
        by_marker = {one.marker: one for one in expected}
        for entry in entries:
            assert entry.last_offset in by_marker, f"{segment.path.name}: {entry} is not among {expected}"
            _check_entry(entry, by_marker.pop(entry.last_offset), line)
        missing = [one for one in by_marker.values() if _must_be_indexed(one, line)]
        assert not missing, f"{segment.path.name}: {entries} lacks {missing}"


def _must_be_indexed(one: Aborted, line: Line) -> bool:
    """Whether something of an aborted transaction is left, and its marker."""
    there = {batch.base_offset for batch in line.found}
    return one.marker in there and not there.isdisjoint(one.offsets)


def _check_entry(entry: AbortedEntry, one: Aborted, line: Line) -> None:
    there = {batch.base_offset for batch in line.found}
    left = [offset for offset in one.offsets if offset in there]
    assert entry.producer_id == one.producer_id
    assert entry.first_offset in one.offsets, f"{entry} is not {one}"
    assert not left or entry.first_offset <= left[0], f"{entry} leaves out {left}"
    highest = next((same.last_stable_offset for same in line.left.aborted if same.marker == one.marker), one.marker + 1)
    assert one.last_stable_offset <= entry.last_stable_offset <= highest, f"{entry} is not {one}, nor {highest}"


def check_committed(log: Log, line: Line, random: Random) -> None:
    """A reader of committed data sees all that is committed and nothing else, wherever it begins."""
    expected = [
        record for record in visible(line.found, line.full, log.last_stable_offset) if record.offset >= log.start_offset
    ]
    offsets = sorted({log.start_offset, *(random.randint(log.start_offset, log.end_offset) for _ in range(2))})
    for offset in offsets:
        seen = list(committed(log, offset, random.choice((100, 300, 1 << 16))))
        assert seen == [record for record in expected if record.offset >= offset], f"from {offset}"


def committed(log: Log, offset: int, buffer_size: int = 1 << 16) -> Iterator[Seen]:
    """What a reader of committed data sees from `offset` on."""
    reader = log.reader(offset, isolation=Isolation.READ_COMMITTED, buffer_size=buffer_size)
    return (Seen(record.offset, record.key, record.value) for record in reader.records())


# ---------------------------------------------------------------------------------------------------------- snapshots

_ENTRY: Final = struct.Struct(">qhiqiqiq")


def read_snapshot(path: Path) -> dict[int, tuple[int, ...]] | None:
    """What a snapshot knows: epoch, last sequence, last offset, delta, timestamp, coordinator's epoch, first open
    offset of each producer; None where it is damaged.
    """
    data = path.read_bytes()
    if len(data) < 10:
        return None
    version, crc, count = struct.unpack_from(">hIi", data)
    if version != 1 or crc32c(data[6:]) != crc or len(data) != 10 + count * _ENTRY.size:
        return None
    return {row[0]: row[1:] for row in _ENTRY.iter_unpack(data[10:])}


def check_snapshots(log: Log, line: Line, *, is_cleaned: bool) -> None:
    """Of a closed log: there is one at its end, and none tells anything that is not so. (Damaged ones are not used.)"""
    folder, end = log.folder, log.end_offset
    offsets = sorted(int(path.stem) for path in folder.glob("*.snapshot"))
    assert end in offsets or end == log.start_offset, f"no snapshot at {end}: {offsets}"
    assert all(offset <= end for offset in offsets), f"snapshots at {offsets} of a log that ends at {end}"
    for offset in offsets:
        rows = read_snapshot(folder / f"{offset:020d}.snapshot")
        if rows is None:
            assert offset != end, f"the snapshot at {end} is damaged"
            continue
        below = line.below(offset)
        if is_cleaned and offset != end:  # made anew from compacted data it may know less
            assert rows.keys() <= below.full.producers.keys(), f"snapshot {offset}: {rows}"
            continue
        try:
            check_producers({key: _entry(*row) for key, row in rows.items()}, below, is_cleaned=is_cleaned)
        except AssertionError as error:
            error.add_note(f"in the snapshot at {offset}")
            raise


def _entry(
    epoch: int, sequence: int, offset: int, delta: int, timestamp_ms: int, coordinator_epoch: int, open_from: int
) -> ProducerEntry:
    batch = RememberedBatch(sequence, offset, delta, timestamp_ms) if offset >= 0 else None
    return ProducerEntry(epoch, coordinator_epoch, timestamp_ms, open_from, batch)
