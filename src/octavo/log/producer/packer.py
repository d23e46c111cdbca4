"""Packs the waiting records of a topic into batches of its partitions: `Packer`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from octavo.log.names import TopicPartition
from octavo.log.producer.config import ProducerConfig
from octavo.log.producer.encoder import Encoded, Encoder, Parcel, Share, Writer
from octavo.log.producer.future import Delivery
from octavo.log.producer.identity import Identity
from octavo.log.producer.inbox import FUTURE, ITEMS, Inbox
from octavo.log.producer.partitioner import Sticky
from octavo.log.producer.record_columns import (
    NO_PARTITION,
    Int32s,
    Int64s,
    RecordColumns,
    add_partitions_of_keys,
    columns_of,
    reordered,
)
from octavo.records.kernels import kernels
from octavo.records.layout import BATCH_HEADER, MAX_INT16, NO_OFFSET

_TOGETHER: Final = 512 << 10  # bytes that are packed together; more is not faster
_FEW: Final = 4  # at most one in this many records may be left waiting for a full batch
_MOST_COLUMNS: Final = 1 << 30  # maximum bytes of one column, in which positions have 31 bits


class Packed(NamedTuple):
    """The batches that were packed, and the records that keep waiting."""

    parcels: list[Parcel]
    left: list[Any]  # items of the records that keep waiting
    assigned: list[int]  # partitions of those records
    has_waited: bool  # whether some of them were already in `Inbox.held`


class Packer:
    """Makes batches for all topics of a producer."""

    def __init__(
        self, config: ProducerConfig, identity: Identity, *, clock_unit: int, choose: Callable[[int], int]
    ) -> None:
        """`clock_unit` is the number of clock ticks in a millisecond. `choose` draws a partition."""
        self._identity: Final = identity
        self._is_transactional: Final = config.transactional_id is not None
        self._ignores_keys: Final = config.partitioner_ignore_keys
        self._encoder: Final = Encoder(config.compression_type, config.level, config.batch_size)
        self._clock_unit: Final = clock_unit
        self._choose: Final = choose
        self._sticky: Final[dict[str, Sticky]] = {}

    def pack(self, inbox: Inbox, items: list[Any], *, everything: bool, in_bulk: bool = False) -> Packed:
        """Pack these records into batches. Records whose batch is not full keep waiting.

        With `everything`, all are packed. With `in_bulk`, all are packed if more than a quarter would keep waiting,
        since those would have to be packed again. Afterwards the futures of packed records have their `Delivery`.
        """
        columns = columns_of(inbox, items, self._clock_unit)
        if columns.size > _MOST_COLUMNS and columns.count > 1:
            middle = columns.count // 2 * ITEMS
            assigned = inbox.assigned
            inbox.assigned = assigned[: columns.count // 2]
            packed = self.pack(inbox, items[:middle], everything=True)
            return packed._replace(left=items[middle:], assigned=assigned[columns.count // 2 :])
        chosen = kernels(columns.size)
        partitions = columns.partitions
        if inbox.partition_count == 1:
            partitions[:] = 0
        else:
            if inbox.has_keys and not self._ignores_keys:
                add_partitions_of_keys(columns, chosen.partition, inbox.partition_count, partitions)
            self._add_sticky(inbox, columns, partitions)
        order = _order(partitions, inbox.partition_count)
        if order is not None and columns.header_ends[-1]:  # headers cannot be reordered without their records
            items, partitions = reordered(items, order), partitions[order]
            columns, order = columns_of(inbox, items, self._clock_unit), None
        shares = self._shares(inbox, partitions if order is None else partitions[order])
        self._identity.ensure()
        writer = Writer(self._identity.producer_id, self._identity.epoch, self._is_transactional)
        batches = self._encoder.encode(columns, order, shares, writer, chosen)
        inbox.set_count(self._count_together(inbox, columns))
        left: list[Encoded] = []
        if not everything and columns.size <= inbox.share:
            full, left = _split(batches, self._encoder.max_size - columns.size // columns.count)
            if in_bulk and sum(batch.last - batch.first for batch in left) > columns.count // _FEW:
                left = []
            else:
                batches = full
        parcels = self._parcels(inbox, items, columns, partitions, order, shares, batches)
        waiting, assigned = _waiting(inbox, items, order, shares, left)
        return Packed(parcels, waiting, assigned, _has_any_of(left, order, len(inbox.assigned)))

    def _add_sticky(self, inbox: Inbox, columns: RecordColumns, partitions: Int32s) -> None:
        """Assign sticky partitions to the records that have no partition yet."""
        [rows] = np.nonzero(partitions == NO_PARTITION)
        if not len(rows):
            return
        sticky = self._sticky.get(inbox.topic)
        if sticky is None or sticky.count != inbox.partition_count:
            sticky = self._sticky[inbox.topic] = Sticky(inbox.partition_count, self._choose)
        first = 0
        limit = max(1, self._encoder.max_size - BATCH_HEADER.size)
        for partition, end in sticky.assign(columns.sizes()[rows], limit):
            partitions[rows[first:end]] = partition
            first = end

    def _shares(self, inbox: Inbox, partitions: Int32s) -> list[Share]:
        """Divide the rows into one share for each partition. The rows must be grouped by partition."""
        starts = [0, *(np.nonzero(np.diff(partitions))[0] + 1).tolist(), len(partitions)]
        shares = []
        for first, last in pairwise(starts):
            partition = int(partitions[first])
            sequence = self._identity.sequence(TopicPartition(inbox.topic, partition))
            shares.append(Share(partition, first, last, sequence))
        return shares

    def _count_together(self, inbox: Inbox, columns: RecordColumns) -> int:
        """Return how many records of this average size to pack together."""
        size = min(_TOGETHER, inbox.share)
        return size * columns.count // (columns.size + columns.count)

    def _parcels(
        self,
        inbox: Inbox,
        items: list[Any],
        columns: RecordColumns,
        partitions: Int32s,
        order: Int64s | None,
        shares: list[Share],
        batches: list[Encoded],
    ) -> list[Parcel]:
        """Make a parcel with the batches of each partition, and a delivery for their records."""
        if not batches:
            return []
        offsets = np.full(columns.count, NO_OFFSET, np.int64)
        delivery = Delivery(inbox.finisher, inbox.topic, columns.timestamps_ms, partitions, offsets)
        for index, future in enumerate(items[FUTURE::ITEMS]):
            future._index = index
            future._holder = delivery
        parcels = []
        at = 0
        for number, share in enumerate(shares):
            end = at
            while end < len(batches) and batches[end].share == number:
                end += 1
            if end > at:
                first, last = share.first, batches[end - 1].last
                sealed, data = self._encoder.seal(batches[at:end], first)
                rows = slice(first, last) if order is None else order[first:last]
                parcels.append(Parcel(share.partition, delivery, rows, sealed, data))
            at = end
        return parcels


def _order(partitions: Int32s, partition_count: int) -> Int64s | None:
    """The stable order that puts the records of each partition together; None if they already are."""
    if (partitions[1:] >= partitions[:-1]).all():
        return None
    small = partitions.astype(np.int16) if partition_count <= MAX_INT16 else partitions  # sorts ten times as fast
    return small.argsort(kind="stable")


def _split(batches: list[Encoded], full_size: int) -> tuple[list[Encoded], list[Encoded]]:
    """Separate full batches from others. Only a partition's last batch, if below `full_size`, is not full."""
    full: list[Encoded] = []
    left: list[Encoded] = []
    for batch, following in zip(batches, [*batches[1:], None], strict=True):
        is_last = following is None or following.share != batch.share
        (left if is_last and batch.size < full_size else full).append(batch)
    return full, left


def _has_any_of(left: list[Encoded], order: Int64s | None, first_count: int) -> bool:
    """Whether some of the first `first_count` records are in these batches."""
    return any((batch.first if order is None else order[batch.first]) < first_count for batch in left)


def _waiting(
    inbox: Inbox, items: list[Any], order: Int64s | None, shares: list[Share], left: list[Encoded]
) -> tuple[list[Any], list[int]]:
    """Return the records of batches that are not full, and their partitions. Their futures wait in the inbox again."""
    waiting: list[Any] = []
    assigned: list[int] = []
    for batch in left:
        rows = range(batch.first, batch.last) if order is None else order[batch.first : batch.last].tolist()
        assigned += [shares[batch.share].partition] * len(rows)
        for row in rows:
            record = items[row * ITEMS : row * ITEMS + ITEMS]
            record[FUTURE]._holder = inbox
            waiting += record
    return waiting, assigned
