"""Work out producers and transactions from the headers of batches, by a plain replay.

`ProducerReplay` is shown the batches of a partition in order. At any offset it can tell what each producer did last,
which transactions are open, and which were aborted. It shares no code with the log's own producer state, so that a
mistake there is not repeated here.

Compaction removes batches. Where it did, the replay does not know what was there; `whole_from` says from which offset
on no batch is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.inspect.verify.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    CONTROL_TYPE,
    COORDINATOR_EPOCH,
    COUNT,
    LAST_OFFSET,
    MAGIC,
    MAX_TIMESTAMP,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    Table,
)

ABORT: Final = 0
COMMIT: Final = 1

_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_NOWHERE: Final = -1


class DataBatch(NamedTuple):
    """A batch of records of a producer."""

    base_offset: int
    last_offset: int
    base_sequence: int
    max_timestamp: int
    records: int

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; 2147483647 is followed by 0. -1 if the batch has no sequence."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) % (1 << 31)

    @property
    def is_whole(self) -> bool:
        """Whether compaction removed none of its records, so that its maximum timestamp is the original one."""
        return self.records == self.last_offset - self.base_offset + 1

    def has(self, offset: int) -> bool:
        """Whether the offset lies in the batch."""
        return self.base_offset <= offset <= self.last_offset


class Marker(NamedTuple):
    """The end of a transaction."""

    offset: int
    producer_id: int
    kind: int  # ABORT or COMMIT
    timestamp: int
    coordinator_epoch: int


@dataclass(slots=True)
class Producer:
    """What one producer did last, as far as the log still has it."""

    epoch: int = -1
    last_event: int = _NOWHERE  # base offset of its last batch, whether data or marker
    data: DataBatch | None = None  # the last one with records
    forgotten_at: int = _NOWHERE  # offset of the last marker with a new epoch, at which Kafka forgets the data before
    marker: Marker | None = None  # the last one
    ended_nothing: bool = False  # whether that marker ended a transaction without records
    opened: DataBatch | None = None  # first batch of the open transaction

    @property
    def last_batch(self) -> DataBatch | None:
        """The batch that Kafka remembers, as far as the log has it."""
        return None if self.data is None or self.data.base_offset < self.forgotten_at else self.data


class Aborted(NamedTuple):
    """An aborted transaction, as the batches tell it."""

    marker: Marker
    first: DataBatch  # its first batch that still exists
    earlier_marker: int  # offset of the producer's marker before; -1 if there is none
    stable: DataBatch | None  # first batch of the oldest other transaction that was open then
    whole_from: int  # no batch is missing between this offset and the marker


class ProducerReplay:
    """The producers of one partition, replayed up to some offset."""

    def __init__(self, log_start: int) -> None:
        """Begin at the start of the log. Batches below `log_start` are deleted, even if their bytes still exist."""
        self.producers: dict[int, Producer] = {}
        self.opened: dict[int, DataBatch] = {}  # open transactions by producer id, the oldest first
        self.aborted: list[Aborted] = []  # those whose marker was replayed; the caller empties it
        self.markers: list[Marker] = []  # likewise: all markers
        self.begins: list[int] = []  # likewise: where transactions began
        self.whole_from = log_start
        self._log_start = log_start
        self._next_offset: int | None = None

    def replay(self, table: Table) -> None:
        """Replay the next batches of the log."""
        if len(table) and table[0, LAST_OFFSET] < self._log_start:
            table = table[table[:, LAST_OFFSET] >= self._log_start]
        if not len(table):
            return
        whole_from = self._note_gaps(table)
        flags = table[:, ATTRIBUTES]
        is_control = flags & _CONTROL != 0
        is_end = is_control & (flags & _TRANSACTIONAL != 0)
        is_end &= (table[:, CONTROL_TYPE] >= ABORT) & (table[:, CONTROL_TYPE] <= COMMIT)
        chosen = (table[:, MAGIC] == 2) & (table[:, PRODUCER_ID] >= 0) & (is_end | ~is_control)
        if not chosen.any():
            return
        rows = table[chosen]
        is_marker, is_transactional = is_end[chosen], flags[chosen] & _TRANSACTIONAL != 0
        if is_transactional.any():  # markers are transactional, too
            before, epoch_before = self._previous(rows)
            self._note_transactions(rows, is_marker, is_transactional, before, epoch_before, whole_from[chosen])
        self._note_last(rows, is_marker)

    def _note_gaps(self, table: Table) -> npt.NDArray[np.int64]:
        """Return for each batch the offset from which on no batch before it is missing."""
        expected = np.empty(len(table), np.int64)
        expected[0] = table[0, BASE_OFFSET] if self._next_offset is None else self._next_offset
        expected[1:] = table[:-1, LAST_OFFSET] + 1
        after_gap = np.where(table[:, BASE_OFFSET] > expected, table[:, BASE_OFFSET], self.whole_from)
        if self._next_offset is None:
            after_gap[0] = max(int(table[0, BASE_OFFSET]), self.whole_from)
        whole_from = np.maximum.accumulate(after_gap)
        self.whole_from = int(whole_from[-1])
        self._next_offset = int(table[-1, LAST_OFFSET]) + 1
        return whole_from

    def reach(self, offset: int) -> None:
        """Note that there is no further batch below `offset`, where a snapshot was taken or the next segment begins."""
        if self._next_offset is None:
            self.whole_from = max(self.whole_from, offset)
        elif offset > self._next_offset:
            self.whole_from, self._next_offset = offset, offset

    def _previous(self, rows: Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return for each row the row before of the same producer, -1 for none; and the producer's epoch before."""
        order = np.argsort(rows[:, PRODUCER_ID], kind="stable")
        ids = rows[order, PRODUCER_ID]
        before = np.full(len(rows), -1, np.int64)
        follows = ids[1:] == ids[:-1]
        before[order[1:][follows]] = order[:-1][follows]
        epochs = np.where(before >= 0, rows[before, PRODUCER_EPOCH], -1)
        for row in np.flatnonzero(before < 0).tolist():
            known = self.producers.get(int(rows[row, PRODUCER_ID]))
            epochs[row] = rows[row, PRODUCER_EPOCH] if known is None else known.epoch
        return before, epochs

    def _note_transactions(
        self,
        rows: Table,
        is_marker: npt.NDArray[np.bool_],
        is_transactional: npt.NDArray[np.bool_],
        before: npt.NDArray[np.int64],
        epoch_before: npt.NDArray[np.int64],
        whole_from: npt.NDArray[np.int64],
    ) -> None:
        """Replay what begins or ends a transaction, or makes Kafka forget a producer's batches."""
        is_data = is_transactional & ~is_marker
        goes_on = is_data & (before >= 0) & is_data[before]  # cannot begin a transaction
        interesting = np.flatnonzero(is_marker | (is_data & ~goes_on))
        columns = [PRODUCER_ID, PRODUCER_EPOCH, BASE_OFFSET, CONTROL_TYPE, MAX_TIMESTAMP, COORDINATOR_EPOCH]
        values = rows[interesting][:, columns].tolist()
        for row, (producer_id, epoch, offset, kind, timestamp, coordinator) in zip(
            interesting.tolist(), values, strict=True
        ):
            producer = self._producer(producer_id)
            if not is_marker[row]:
                if producer.opened is None:
                    producer.opened = self.opened[producer_id] = _data_batch(rows[row])
                    self.begins.append(offset)
                continue
            marker = Marker(offset, producer_id, kind, timestamp, coordinator)
            self._end(producer, marker, int(whole_from[row]))
            if epoch != epoch_before[row]:
                producer.forgotten_at = offset

    def _end(self, producer: Producer, marker: Marker, whole_from: int) -> None:
        first = self.opened.pop(marker.producer_id, None)
        producer.opened = None
        if first is not None and marker.kind == ABORT:
            earlier = _NOWHERE if producer.marker is None else producer.marker.offset
            oldest = next(iter(self.opened.values()), None)
            self.aborted.append(Aborted(marker, first, earlier, oldest, whole_from))
        producer.marker = marker
        producer.ended_nothing = first is None
        self.markers.append(marker)

    def _note_last(self, rows: Table, is_marker: npt.NDArray[np.bool_]) -> None:
        """Note the last batch of each producer, and the last one with records."""
        for row in _last_of_each(rows[:, PRODUCER_ID]):
            producer = self._producer(int(rows[row, PRODUCER_ID]))
            producer.epoch, producer.last_event = int(rows[row, PRODUCER_EPOCH]), int(rows[row, BASE_OFFSET])
        data = rows[~is_marker] if is_marker.any() else rows
        for row in _last_of_each(data[:, PRODUCER_ID]):
            self._producer(int(data[row, PRODUCER_ID])).data = _data_batch(data[row])

    def _producer(self, producer_id: int) -> Producer:
        return self.producers.setdefault(producer_id, Producer())


def _last_of_each(ids: npt.NDArray[np.int64]) -> list[int]:
    """Return the last row of each id."""
    _, firsts = np.unique(ids[::-1], return_index=True)
    last: list[int] = (len(ids) - 1 - firsts).tolist()
    return last


def _data_batch(row: npt.NDArray[np.int64]) -> DataBatch:
    return DataBatch(*row[[BASE_OFFSET, LAST_OFFSET, BASE_SEQUENCE, MAX_TIMESTAMP, COUNT]].tolist())
