"""Snapshots that a node writes by itself, so that its log need not be kept for ever: `OwnSnapshots`.

Every node of a cluster does so, each for itself. A snapshot is due when so many bytes of records were applied, or so
much time has passed, since the last one. Old snapshots, and the segments of the log before the oldest snapshot that is
left, are removed when together they are too large or too old. The newest snapshot stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from octavo.log.followed.snapshots import Snapshots
from octavo.log.log import Log
from octavo.log.metadata.cluster_log import SnapshotId
from octavo.log.metadata.image import Image
from octavo.log.metadata.image_records import image_records
from octavo.log.storage import Storage
from octavo.records import BatchBuilder
from octavo.records.control import Control, KRaftVersion, KRaftVoters, SnapshotFooter, SnapshotHeader, control_batch

_BATCH_BYTES: Final = 256 << 10
_BATCH_RECORDS: Final = 1024
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLimits:
    """How large segments are, when a snapshot is due, and how much of the past is kept, by Kafka's settings."""

    metadata_log_segment_bytes: int = 1 << 30
    metadata_log_segment_ms: int = 7 * _DAY_MS
    metadata_log_max_record_bytes_between_snapshots: int = 20 << 20
    metadata_log_max_snapshot_interval_ms: int = _DAY_MS // 24  # 0: never because of the time
    metadata_max_retention_bytes: int = 100 << 20  # negative: no limit
    metadata_max_retention_ms: int = 7 * _DAY_MS


class OwnSnapshots:
    """Writes snapshots of a metadata log, and removes what they make superfluous."""

    def __init__(self, storage: Storage, snapshots: Snapshots, log: Log, limits: MetadataLimits, now_ms: int) -> None:
        self._storage = storage
        self._snapshots: Final = snapshots
        self._log: Final = log
        self._limits: Final = limits
        self._bytes = 0  # of records that were applied since the last snapshot
        self._last_ms = now_ms
        self._is_under_way = False

    def applied(self, size: int) -> None:
        """Note that records of so many bytes were applied."""
        self._bytes += size

    def begin_anew(self, now_ms: int) -> None:
        """Note that there is a snapshot of everything that was applied."""
        self._bytes, self._last_ms = 0, now_ms

    def is_due(self, image: Image, now_ms: int) -> bool:
        """Return whether it is time for a snapshot of this image, and one can be written."""
        if self._is_under_way or not self._bytes or image.in_transaction or image.unknown:
            return False
        limits = self._limits
        interval_ms = limits.metadata_log_max_snapshot_interval_ms
        is_late = interval_ms > 0 and not 0 <= now_ms - self._last_ms < interval_ms  # the clock may have been set back
        return self._bytes >= limits.metadata_log_max_record_bytes_between_snapshots or is_late

    def write(self, snapshot: SnapshotId, image: Image, *, timestamp_ms: int, now_ms: int) -> None:
        """Write a snapshot of an image, which nobody changes. It is on the disk when this returns. Raises `OSError`.

        timestamp_ms: of the last record that the image has
        """
        self._is_under_way = True
        self.begin_anew(now_ms)
        part = self._snapshots.new_part(snapshot)
        try:
            file = self._storage.open_to_write(part, create=True)
            position = 0
            for batch in snapshot_batches(image, snapshot.epoch, timestamp_ms=timestamp_ms, now_ms=now_ms):
                file.write_at([batch], position)
                position += len(batch)
            file.sync()
            self._snapshots.put_in_place(part, snapshot)
        except OSError:
            self._snapshots.remove_part(part)
            raise
        finally:
            self._is_under_way = False
        self.clean_up(now_ms)

    def clean_up(self, now_ms: int) -> None:
        """Remove snapshots and segments that are not needed, and too large or too old. Raises `OSError`."""
        limits = self._limits
        oldest, *newer = self._snapshots.statuses()
        size = self._log.size + oldest.size + sum(each.size for each in newer)
        while newer:
            is_large = 0 <= limits.metadata_max_retention_bytes < size
            if not is_large and now_ms - oldest.modified_ms <= limits.metadata_max_retention_ms:
                break
            self._snapshots.remove(oldest.id)
            size -= oldest.size
            oldest, *newer = newer
        following = self._log.segments[1:]
        self._log.delete_oldest(sum(segment.base_offset <= oldest.id.offset for segment in following), now_ms)
        self._log.delete_files(now_ms)


def snapshot_batches(image: Image, epoch: int, *, timestamp_ms: int, now_ms: int) -> Iterator[bytes]:
    """Yield the batches of a snapshot of an image. `timestamp_ms`: of the last record that the image has."""
    head: list[Control] = [SnapshotHeader(last_contained_log_timestamp_ms=timestamp_ms)]
    if image.kraft_version > 0:
        head += [KRaftVersion(kraft_version=image.kraft_version), KRaftVoters(voters=image.voter_details)]
    yield control_batch(head, timestamp_ms=now_ms, leader_epoch=epoch)
    offset = len(head)
    builder, count, size = BatchBuilder(base_offset=offset, leader_epoch=epoch), 0, 0
    for value in image_records(image):
        builder.append(None, value, timestamp_ms=now_ms)
        count, size = count + 1, size + len(value)
        if count == _BATCH_RECORDS or size >= _BATCH_BYTES:
            yield builder.build()
            offset += count
            builder, count, size = BatchBuilder(base_offset=offset, leader_epoch=epoch), 0, 0
    if count:
        yield builder.build()
    yield control_batch([SnapshotFooter()], base_offset=offset + count, timestamp_ms=now_ms, leader_epoch=epoch)
