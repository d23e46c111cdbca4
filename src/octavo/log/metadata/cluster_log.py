"""Read a cluster's metadata log, `__cluster_metadata-0`, as a whole, and append to it.

    00000000000000000042-0000000003.checkpoint     a snapshot of all records below offset 42, taken in epoch 3
    00000000000000000000.log                       batches of records, in Kafka's message format

The newest snapshot and the batches after it give the `Image`. The log ends before an incomplete or damaged tail, as
for Kafka. Damage with good batches after it raises. An append is one batch with its checksum, synced: all of it counts,
or nothing. Kafka scans this log at every start and rebuilds the files beside it, so nothing but the batch
has to be written.

Only a single node may append here: if there are other controllers, a follower's log may still be truncated.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import BadDirectory, CorruptFile, FormatError, InvalidInput
from octavo.log.metadata.image import Image, Topic
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.names import CHECKPOINT, LOG, METADATA_TOPIC, TopicPartition, base_offset_of, file_name
from octavo.log.segment.batch_walk import walk
from octavo.log.segment.damage import BatchSearch
from octavo.log.storage import File, Storage
from octavo.records import Batch, BatchBuilder, read_batches
from octavo.records.control import Control, SnapshotFooter, read_control
from octavo.schemas.metadata.progress import AbortTransactionRecord
from octavo.schemas.metadata.record import MetadataRecord
from octavo.schemas.metadata.serde import UnknownRecord, read_metadata, write_metadata
from octavo.schemas.metadata.topics import PartitionRecord

FOLDER: Final = TopicPartition(METADATA_TOPIC, 0).folder
FIRST_EPOCH: Final = 1
MAX_BATCH: Final = 8 << 20  # maximum batch size of Kafka's quorum
DIRECTORIES_VERSION: Final = 17  # the metadata.version (3.7-IV2) from which on partitions name their directories

MAX_READ: Final = 256 << 20  # larger batches are not read into memory
_ATTEMPTS: Final = 5  # a running Kafka may remove files that were just listed
_SNAPSHOT_NAME: Final = re.compile(r"(\d{20})-(\d{10})" + re.escape(CHECKPOINT))


class SnapshotId(NamedTuple):
    """The id in a snapshot's file name: the offset after its last record, and that record's epoch."""

    offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.offset:020d}-{self.epoch:010d}{CHECKPOINT}"


class ClusterLog:
    """A metadata log that was read to its end. Get one from `read_cluster_log`."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self.folder: Final = folder
        self.image: Final = Image()
        self.topics: SortedMap[str, Topic] = SortedMap()  # as of `next_offset`, for any thread
        self.next_offset = 0
        self.leader_epoch = FIRST_EPOCH
        self._storage = storage
        self._segment: Path | None = None
        self._end = 0  # position after the last good batch of the segment
        self._log_end = 0  # offset after that batch
        self._ends_before_snapshot = False
        self.is_in_doubt = False  # an append was interrupted: the disk may have more than this object

    def append(self, records: Sequence[MetadataRecord | UnknownRecord], *, timestamp_ms: int) -> None:
        """Append records, all or none. They are on the disk when this returns.

        Raises `InvalidInput` if they are too many for one batch, and `BadDirectory` if Kafka has to repair the log
        first.
        """
        if self._ends_before_snapshot:
            raise BadDirectory(self.folder, "the newest snapshot is ahead of the log: let Kafka start on it once")
        records = [AbortTransactionRecord(), *records] if self.image.in_transaction else records
        builder = BatchBuilder(base_offset=self.next_offset, leader_epoch=self.leader_epoch)
        for record in records:
            builder.append(None, write_metadata(record, version=self._version_of(record)), timestamp_ms=timestamp_ms)
        batch = builder.build()
        if len(batch) > MAX_BATCH:
            raise InvalidInput(f"{len(records)} records of metadata take {len(batch):,} bytes, more than {MAX_BATCH:,}")
        self.is_in_doubt = True
        try:
            self._write(batch)
        except OSError:
            self.is_in_doubt = False  # nothing was appended
            raise
        for record in records:
            self.image.replay(record)
        self.topics = self.image.topics()  # before the offset, by which others know that it has changed
        self.next_offset += len(records)
        self.is_in_doubt = False

    def sync(self) -> None:
        """Sync what was read: the process that wrote it may have died before its own sync, and now it counts."""
        if self._segment is not None:
            self._storage.open_to_write(self._segment).sync()
        self._storage.sync_folder(self.folder)

    def _version_of(self, record: MetadataRecord | UnknownRecord) -> int | None:
        """Return the version in which a cluster with this metadata.version writes a record; None for the newest."""
        if isinstance(record, PartitionRecord):
            if record.eligible_leader_replicas or record.last_known_elr:
                return 2
            return 1 if self.image.metadata_version >= DIRECTORIES_VERSION else 0
        return None

    def _write(self, batch: bytes) -> None:
        new = self._segment is None
        path = self._segment or self.folder / file_name(self.next_offset, LOG)
        file = self._storage.open_to_write(path, create=new)
        try:
            if file.size() > self._end:
                file.truncate(self._end)  # an incomplete tail
            file.write_at([batch], self._end)
            file.sync()
            if new:
                self._storage.sync_folder(self.folder)
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(self._end)
            raise
        self._segment = path
        self._end += len(batch)

    # Reading

    def _read(self) -> None:
        names = sorted(path.name for path in self.folder.iterdir())
        snapshot = max(filter(None, map(snapshot_id_of, names)), default=None)
        if snapshot is not None:
            self._read_snapshot(snapshot)
        offsets = [base for name in names if name.endswith(LOG) and (base := base_offset_of(name)) is not None]
        needed = [base for base in offsets if base <= self.next_offset][-1:]
        needed += [base for base in offsets if base > self.next_offset]
        if needed and needed[0] > self.next_offset:
            raise BadDirectory(self.folder, f"no snapshot goes as far as offset {needed[0]}, where the log begins")
        start = self.next_offset
        self._log_end = needed[0] if needed else 0
        for base in needed:
            if base != self._log_end:
                raise BadDirectory(self.folder, f"offsets {self._log_end} to {base - 1} of the log are missing")
            self._read_segment(self.folder / file_name(base, LOG), base, is_last=base == needed[-1])
        self._ends_before_snapshot = bool(needed) and self._log_end < start
        self.topics = self.image.topics()

    def _read_snapshot(self, snapshot: SnapshotId) -> None:
        """Read a whole snapshot. Its records have offsets of their own, not those of the log."""
        path = self.folder / snapshot.file_name
        for content in snapshot_records(self._storage, path):
            try:
                if isinstance(content, MetadataRecord | UnknownRecord):
                    self.image.replay(content)
                else:
                    self.image.replay_control(content)
            except FormatError as error:
                raise CorruptFile(path, 0, error.rule) from None
        self.next_offset = snapshot.offset
        self.leader_epoch = max(snapshot.epoch, FIRST_EPOCH)

    def _read_segment(self, path: Path, base_offset: int, *, is_last: bool) -> None:
        file = self._storage.open(path)
        size = file.size()
        expected = base_offset
        self._segment, self._end = path, 0
        problem = "the bytes end inside a batch"
        try:
            for entry in walk(file, 0, size):
                batch = _batch(file, entry.position, entry.size)
                if batch.base_offset != expected:
                    raise CorruptFile(path, entry.position, f"offset {batch.base_offset} follows {expected - 1}")
                self._replay(batch, path)
                expected = batch.last_offset + 1
                self._end = entry.end
        except _Refused as error:
            raise CorruptFile(path, self._end, error.rule) from None
        except FormatError as error:
            problem = error.rule
        if self._end < size and (not is_last or self._goes_on(file, size, expected)):
            raise CorruptFile(path, self._end, problem)
        self._log_end = expected

    def _replay(self, batch: Batch, path: Path) -> None:
        try:
            for record in batch:
                if record.offset < self.next_offset:
                    continue  # it is in the snapshot
                if batch.is_control:
                    self.image.replay_control(read_control(record))
                else:
                    self.image.replay(read_metadata(record.value))
                self.next_offset = record.offset + 1
        except FormatError as error:
            raise _Refused(error.position, error.rule) from None
        self.next_offset = max(self.next_offset, batch.last_offset + 1)
        self.leader_epoch = max(self.leader_epoch, batch.leader_epoch)

    def _goes_on(self, file: File, size: int, next_offset: int) -> bool:
        """Return whether good batches of this log follow the damage."""
        search = BatchSearch()
        position = self._end
        while position < size:
            position = search.next_batch(file, position, size, next_offset - 1)
            entry = next(walk(file, position, size), None)
            if entry is not None and entry.base_offset >= next_offset:
                return True
        return False


class _Refused(FormatError):
    """A batch has the right checksum, but cannot be replayed. So it is not a torn tail."""


def read_cluster_log(storage: Storage, folder: Path) -> ClusterLog:
    """Read the metadata log in `folder`, even while Kafka writes it.

    Raises `CorruptFile` for damage, `BadDirectory` if parts are missing, and `OSError`.
    """
    for _ in range(_ATTEMPTS):
        log = ClusterLog(storage, folder)
        try:
            log._read()
        except FileNotFoundError:
            continue  # a newer snapshot has replaced a snapshot or a segment
        return log
    raise BadDirectory(folder, "its files go away faster than they can be read")


def has_cluster_log(folder: Path) -> bool:
    """Return whether there are metadata records in `folder`: a segment, or a snapshot above offset 0."""
    if not folder.is_dir():
        return False
    names = [path.name for path in folder.iterdir()]
    return any(name.endswith(LOG) and base_offset_of(name) is not None for name in names) or any(
        snapshot.offset > 0 for snapshot in map(snapshot_id_of, names) if snapshot is not None
    )


def snapshot_records(storage: Storage, path: Path) -> Iterator[Control | MetadataRecord | UnknownRecord]:
    """Yield the records of a snapshot, or of a `bootstrap.checkpoint`. Raises `CorruptFile` if it is incomplete."""
    file = storage.open(path)
    size = file.size()
    position = 0
    is_whole = False
    try:
        for entry in walk(file, 0, size):
            batch = _batch(file, entry.position, entry.size)
            for record in batch:
                content = read_control(record) if batch.is_control else read_metadata(record.value)
                is_whole = isinstance(content, SnapshotFooter)
                yield content
            position = entry.end
    except CorruptFile:
        raise
    except FormatError as error:
        raise CorruptFile(path, position, error.rule) from None
    if position != size or not is_whole:
        raise CorruptFile(path, position, "the snapshot is not whole: it has no footer at its end")


def snapshot_id_of(name: str) -> SnapshotId | None:
    """Return the id of the snapshot whose file has this name; None for other files."""
    found = _SNAPSHOT_NAME.fullmatch(name)
    return None if found is None else SnapshotId(int(found[1]), int(found[2]))


def _batch(file: File, position: int, size: int) -> Batch:
    """Read the batch at `position`, and check its checksum."""
    if size > MAX_READ:
        raise CorruptFile(file.path, position, f"a batch of metadata of {size:,} bytes is larger than any can be")
    batch = next(read_batches(file.read_at(size, position)), None)
    if batch is None:
        raise CorruptFile(file.path, position, "the file was cut while it was read")
    return batch
