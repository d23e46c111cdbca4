"""Find out how much of a pending commit is in a log already.

The journal has the offset at which the staged batches were to begin. If the log ends there or before, none of them is
in it: in a power cut a log loses its end, never its middle. Otherwise the batches from this offset on are compared with
the staged ones, by offset, size and checksum, as far as they agree. Other records may follow, or be there instead of
them, if Apache Kafka or another thread has appended meanwhile.

This cannot be told if records from that offset on may have been deleted or compacted.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from octavo.errors import CommitUnresolved
from octavo.log.log import Log
from octavo.log.staging.appending import StagedBatches
from octavo.log.staging.journal import PendingPartition, Piece, pack_pieces
from octavo.log.staging.windows import Window, whole_batches
from octavo.log.view import Isolation
from octavo.records.kernels import scan

_COMPARED: Final = [scan.BASE_OFFSET, scan.SIZE, scan.CRC]


def missing_part(
    journal: Path, staged: StagedBatches, partition: PendingPartition, log: Log, *, keep_offsets: bool
) -> PendingPartition | None:
    """Return what the log lacks of a pending commit, to be appended at its end; None if it has everything.

    Raises `CommitUnresolved`, with the path of the `journal`, if this cannot be told, or the rest cannot be appended.
    """
    if log.start_offset > partition.base_offset or (log.cleaner_offset or 0) > partition.base_offset:
        raise CommitUnresolved(
            journal,
            f"records of {log.partition} from offset {partition.base_offset} on were deleted or compacted since then, "
            "so it cannot be told which of them were appended",
        )
    found = 0  # bytes
    digest = 0
    rest_offset: int | None = None
    for window in staged.windows(partition, log.leader_epoch):
        rows = _matching_rows(window, log) if rest_offset is None else 0
        if rows < len(window.rows):
            if rest_offset is None:
                rest_offset = int(window.rows[rows, scan.BASE_OFFSET])
                found += int(window.rows[rows, scan.POSITION])
            digest = Window(window.data, window.rows[rows:]).digest(digest)
        else:
            found += window.size
    if rest_offset is None:
        return None
    if not keep_offsets:
        rest_offset = log.end_offset
    elif rest_offset < log.end_offset:
        raise CommitUnresolved(journal, f"other records have taken offset {rest_offset} of {log.partition}")
    pieces = pack_pieces(_pieces_after(partition.pieces, found))
    return replace(partition, base_offset=rest_offset, digest=digest, packed_pieces=pieces)


def _matching_rows(window: Window, log: Log) -> int:
    """Return how many batches of the window, from its first on, are in the log."""
    rows = 0
    while rows < len(window.rows):
        offset = int(window.rows[rows, scan.BASE_OFFSET])
        if offset >= log.end_offset:
            break
        size = window.size - int(window.rows[rows, scan.POSITION])
        there = whole_batches(bytearray(log.read(offset, size, isolation=Isolation.LOG_END).records)).rows
        count = min(len(there), len(window.rows) - rows)
        same = (there[:count, _COMPARED] == window.rows[rows : rows + count, _COMPARED]).all(axis=1)
        matching = count if same.all() else int(np.argmin(same))
        rows += matching
        if not matching or matching < count:
            break
    return rows


def _pieces_after(pieces: list[Piece], size: int) -> list[Piece]:
    """Return the pieces without their first `size` bytes."""
    rest = []
    for piece in pieces:
        skipped = min(size, piece.size)
        size -= skipped
        if skipped < piece.size:
            rest.append(piece._replace(position=piece.position + skipped, size=piece.size - skipped))
    return rest
