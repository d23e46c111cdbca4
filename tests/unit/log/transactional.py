"""Transactions written batch by batch, and batches that are damaged."""

from __future__ import annotations

from pathlib import Path

from octavo.log import Log
from octavo.log.origin import Origin
from octavo.records import BatchBuilder, end_transaction_marker, read_batches
from tests.unit.log.logs import TIME_MS


def write(log: Log, producer_id: int, sequence: int = 0, key: bytes = b"k") -> None:
    """A record of a transaction."""
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True)
    builder.append(key, b"v", timestamp_ms=TIME_MS)
    log.append(builder.build())


def end(log: Log, producer_id: int, *, commit: bool) -> None:
    """The marker of a transaction."""
    marker = end_transaction_marker(
        commit, timestamp_ms=TIME_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
    )
    log.append(marker, origin=Origin.COORDINATOR)


def position_of(path: Path, offset: int) -> int:
    """Where the batch lies that begins at `offset`."""
    return next(batch.position for batch in read_batches(path.read_bytes()) if batch.base_offset == offset)


def damage(path: Path, offset: int, at: int) -> int:
    """Change a byte of the batch that begins at `offset`; its position."""
    position = position_of(path, offset)
    data = bytearray(path.read_bytes())
    data[position + at] ^= 0xFF
    path.write_bytes(data)
    return position
