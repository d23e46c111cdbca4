"""Restore the producer state of a partition from its newest usable snapshot and the batches after it.

Snapshots may be missing, damaged, or taken before the log was cut; the data decide. A snapshot that cannot be used is
reported and removed. Doubtful transaction indexes are rebuilt along the way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.errors import CorruptFile
from octavo.log.names import SNAPSHOT, base_offset_of, file_name
from octavo.log.producer_state.producer_batch import ProducerBatch, read_marker
from octavo.log.producer_state.snapshot import read_snapshot, write_snapshot
from octavo.log.producer_state.states import EXPIRATION_MS, ProducerEntry, ProducerStates
from octavo.log.recovery_report import IgnoredFile, RecoveryReport
from octavo.log.segment.damage import MARKER_SIZE
from octavo.log.segment.segment import Segment
from octavo.log.storage import File, Storage
from octavo.log.view import segment_ends
from octavo.records.layout import MAX_SEQUENCE, NO_OFFSET, NO_SEQUENCE, Attributes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)


def snapshots_of(folder: Path) -> list[int]:
    """Return the offsets of the snapshots in a partition's folder, in order."""
    offsets = (base_offset_of(path.name) for path in folder.iterdir() if path.name.endswith(SNAPSHOT))
    return sorted(offset for offset in offsets if offset is not None)


class Replay:
    """Rebuilds the producer state of one partition."""

    def __init__(
        self,
        storage: Storage,
        folder: Path,
        report: RecoveryReport | None = None,
        *,
        expiration_ms: int = EXPIRATION_MS,
    ) -> None:
        self.states: Final = ProducerStates()
        self.offset = 0  # every batch below it is part of the state
        self.snapshot_offset = 0  # offset of the newest snapshot; none is written at 0, where there is no state
        self._storage = storage
        self._folder = folder
        self._report = report
        self._expiration_ms = expiration_ms

    def begin(self, start_offset: int, limit: int, now_ms: int) -> None:
        """Load the newest usable snapshot at or below `limit`. Those above it, or up to `start_offset`, are removed."""
        offsets = snapshots_of(self._folder)
        usable = [offset for offset in offsets if start_offset < offset <= limit]
        for offset in offsets:
            if offset not in usable:
                self._remove(offset)
        self.states.clear()
        while usable:
            offset = usable.pop()
            path = self.path(offset)
            try:
                entries = self._read(offset)
            except CorruptFile as error:
                if self._report is not None:
                    self._report.ignored.append(IgnoredFile(path.name, error.rule))
                self._remove(offset)
                continue
            self.states.load(entries, now_ms, self._expiration_ms)
            self.offset = self.snapshot_offset = offset
            return
        self.offset = self.snapshot_offset = start_offset

    def _read(self, offset: int) -> dict[int, ProducerEntry]:
        """Read a snapshot. Raises `CorruptFile`, also if it names a batch at or above its own offset."""
        path = self.path(offset)
        entries = read_snapshot(self._storage, path)
        latest = max((max(entry.last_offset, entry.txn_first_offset) for entry in entries.values()), default=NO_OFFSET)
        if latest >= offset:
            raise CorruptFile(path, 0, f"it is of the offset {offset}, and knows of a batch at {latest}")
        return entries

    def run(self, segments: Sequence[Segment], end_offset: int, rebuild: Collection[Segment] = ()) -> None:
        """Apply the batches from `offset` to `end_offset`. `rebuild`: segments whose transaction index was cleared."""
        for segment, end in zip(segments, segment_ends(segments, end_offset), strict=True):
            if end > self.offset and segment.size:
                self._run_segment(segment, rebuild)
        self.offset = max(self.offset, end_offset)

    def _run_segment(self, segment: Segment, rebuild: Collection[Segment]) -> None:
        from octavo.log.segment.header_scan import scan_headers

        found = segment.find(self.offset, segment.size)
        if found is not None:
            for table, shift in scan_headers(segment.file, found.position, segment.size):
                self.take(segment, table, shift, rebuild=segment in rebuild)

    def take(self, segment: Segment, table: npt.NDArray[np.int64], shift: int, *, rebuild: bool) -> None:
        """Apply the batches in a table of headers (see `kernels.scan`). `rebuild`: also fill the transaction index."""
        from octavo.records.kernels import scan

        with_producer = table[:, scan.PRODUCER_ID] >= 0
        if not with_producer.any():
            return
        columns = [
            scan.PRODUCER_ID,
            scan.PRODUCER_EPOCH,
            scan.BASE_SEQUENCE,
            scan.BASE_OFFSET,
            scan.LAST_OFFSET,
            scan.MAX_TIMESTAMP,
            scan.ATTRIBUTES,
            scan.POSITION,
            scan.SIZE,
        ]
        index = segment.txn_index if rebuild else None
        for row in table[with_producer][:, columns].tolist():
            self.states.take(_batch_of(row, segment.file, shift), index)

    def take_snapshot(self, offset: int, *, sync: bool = False) -> bool:
        """Write a snapshot of the state at `offset`, unless one at or above it exists. Returns whether it did so."""
        if offset <= self.snapshot_offset:
            return False
        write_snapshot(self._storage, self.path(offset), self.states.entries, sync=sync)
        self.snapshot_offset = offset
        return True

    def forget_expired(self, now_ms: int) -> None:
        """Forget producers that have been idle longer than the expiration time.

        After each segment that it recovers, Kafka reads the snapshot that it has just written, and skips expired
        producers.
        """
        self.states.expire(now_ms, self._expiration_ms)

    def remove_strays(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Remove snapshots that belong to no segment, except the newest one above the base of the last segment.

        That one was written when the log was closed. A snapshot beyond the end of the log is removed as well:
        otherwise it would be trusted as soon as the log has grown past it.
        """
        bases = {segment.base_offset for segment in segments}
        last_base = max(bases, default=0)
        strays = [offset for offset in snapshots_of(self._folder) if offset not in bases]
        kept = max((offset for offset in strays if last_base < offset <= end_offset), default=None)
        for offset in strays:
            if offset != kept:
                self._remove(offset)

    def _remove(self, offset: int) -> None:
        self._storage.remove(self.path(offset))

    def path(self, offset: int) -> Path:
        """Return the path of the snapshot at `offset`."""
        return self._folder / file_name(offset, SNAPSHOT)


def _batch_of(row: list[int], file: File, shift: int) -> ProducerBatch:
    producer_id, epoch, sequence, base_offset, last_offset, max_timestamp_ms, attributes, position, size = row
    is_control = attributes & _CONTROL != 0
    marker = read_marker(file.read_at(min(size, MARKER_SIZE), shift + position)) if is_control else None
    last_sequence = (sequence + last_offset - base_offset) & MAX_SEQUENCE if sequence >= 0 else NO_SEQUENCE
    is_transactional = attributes & _TRANSACTIONAL != 0
    return ProducerBatch(
        producer_id,
        epoch,
        sequence,
        last_sequence,
        base_offset,
        last_offset,
        max_timestamp_ms,
        is_transactional,
        is_control,
        marker,
    )
