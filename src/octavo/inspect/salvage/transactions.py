"""Transactions of a salvaged log: those without a marker, and those whose marker may be that of another one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from octavo.inspect.salvage.report import DoubtfulTransaction, LostOffsets, OpenTransaction
from octavo.log.coordinator.markers import write_marker
from octavo.log.log import Log
from octavo.log.names import LOG
from octavo.log.producer_state.producer_batch import read_marker
from octavo.log.segment.damage import MARKER_SIZE
from octavo.log.segment.header_scan import scan_headers
from octavo.log.storage import DISK
from octavo.records.kernels import scan
from octavo.records.layout import Attributes

_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)


def end_open(log: Log, *, abort: bool, now_ms: int) -> list[OpenTransaction]:
    """Return the transactions that have no marker. `abort`: write one for each, at the end of the log."""
    found = []
    for first_offset, producer_id in sorted(log.producers.open_transactions.items()):
        entry = log.producers.entries[producer_id]
        last_offset = max(entry.last_offset, first_offset)
        if abort:
            # As Kafka's own tool does that aborts a hanging transaction: no coordinator has an epoch below 0.
            write_marker(
                log, producer_id, entry.epoch, max(entry.coordinator_epoch, 0), commit=False, timestamp_ms=now_ms
            )
        found.append(OpenTransaction(producer_id, entry.epoch, first_offset, last_offset, abort))
    return found


@dataclass(slots=True)
class _Open:
    """A transaction during the walk."""

    epoch: int
    first_offset: int
    last_offset: int
    lost: LostOffsets | None = None  # offsets that are lost in the middle of it


def doubtful(folder: Path, lost: Sequence[LostOffsets]) -> list[DoubtfulTransaction]:
    """Return the transactions of a log that have lost offsets between their first batch and their marker.

    A marker that was lost there may have ended them. Then their marker is that of a later transaction of the producer,
    and says nothing about the batches before the lost offsets.
    """
    found: list[DoubtfulTransaction] = []
    if not lost:
        return found
    starts = [each.first_offset for each in lost]
    opened: dict[int, _Open] = {}
    for producer_id, epoch, base_offset, last_offset, is_commit in _transactional(folder):
        known = opened.get(producer_id)
        if known is not None:
            at = bisect_left(starts, known.last_offset)
            if at < len(lost) and starts[at] < base_offset:
                known.lost = lost[at]
        if is_commit is None:
            if known is None:
                opened[producer_id] = _Open(epoch, base_offset, last_offset)
            else:
                known.last_offset = last_offset
        elif known is not None:
            del opened[producer_id]
            if known.lost is not None:
                found.append(
                    DoubtfulTransaction(
                        producer_id, known.epoch, known.first_offset, base_offset, is_commit, known.lost
                    )
                )
    return found


def _transactional(folder: Path) -> Iterator[tuple[int, int, int, int, bool | None]]:
    """Yield producer id, epoch, base and last offset of transactional batches, and for markers whether they commit."""
    columns = [
        scan.PRODUCER_ID, scan.PRODUCER_EPOCH, scan.BASE_OFFSET, scan.LAST_OFFSET, scan.ATTRIBUTES, scan.POSITION,
        scan.SIZE,
    ]  # fmt: skip
    for path in sorted(folder.glob(f"*{LOG}")):
        file = DISK.open(path)
        for table, shift in scan_headers(file, 0, file.size()):
            is_part = (table[:, scan.ATTRIBUTES] & _TRANSACTIONAL != 0) & (table[:, scan.MAGIC] == 2)
            for producer_id, epoch, base, last, attributes, position, size in table[is_part][:, columns].tolist():
                is_commit = None
                if attributes & _CONTROL:
                    marker = read_marker(file.read_at(min(size, MARKER_SIZE), shift + position))
                    if marker is None:
                        continue
                    is_commit = marker.is_commit
                yield producer_id, epoch, base, last, is_commit
