"""What a data directory remembers of its partitions between two openings: four small files, for all of them together.

The recovery point says up to where a partition needs no check after a crash. It may be too low, and must never be too
high: it is lowered on the disk before a log is truncated, and raised whenever there is time. The start offset is raised
on the disk before segments below it go, so that a crash amid their deletion leaves no hole. The cleaner's offset says
up to where a log is compacted. It may be too low as well: compacting twice does no harm.

After a write that failed nobody knows what the disk has, so the next that matters is done in any case.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import BadDirectory
from octavo.log.checkpoint import CLEANER, LOG_START, RECOVERY_POINT, REPLICATION, read_offsets, write_offsets
from octavo.log.fork_safe import make_rlock
from octavo.log.names import METADATA_TOPIC, TopicPartition
from octavo.log.owner import Owner
from octavo.log.report import Ignored
from octavo.log.small_file import CorruptFile
from octavo.log.storage import FileStatus, Storage, is_full

Offsets = dict[TopicPartition, int]


class Kept(NamedTuple):
    """What is remembered of one partition."""

    recovery_point: int
    start_offset: int | None  # None: where its first segment begins
    high_watermark: int | None  # None: as it is recorded, if it is


class Checkpoints:
    """The checkpoints of one folder."""

    def __init__(self, storage: Storage, folder: Path, owner: Owner | None = None) -> None:
        """`owner` is who may write them, which is this process where nobody is given."""
        self.owner: Final = Owner(folder) if owner is None else owner
        self._storage = storage
        self._folder = folder
        self._lock = make_rlock()
        self.ignored: Final[list[Ignored]] = []  # what could not be read; it is written anew, from what the logs tell
        names = (RECOVERY_POINT, LOG_START, REPLICATION, CLEANER)
        self._offsets: Final = {name: _read(storage, folder / name, self.ignored) for name in names}
        self._unsure: Final = {found.file for found in self.ignored}  # files that are not as they are known here

    def recovery_point(self, partition: TopicPartition) -> int:
        """Up to where the partition is on the disk."""
        return self._offsets[RECOVERY_POINT].get(partition, 0)

    def start_offset(self, partition: TopicPartition) -> int:
        """The first offset that readers may have."""
        return self._offsets[LOG_START].get(partition, 0)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The high watermark as it was last written; None where it never was."""
        return self._offsets[REPLICATION].get(partition)

    def cleaner_offset(self, partition: TopicPartition) -> int | None:
        """Up to where the partition was compacted; None where it never was."""
        return self._offsets[CLEANER].get(partition)

    def set_cleaner_offset(self, partition: TopicPartition, offset: int) -> None:
        """Have it on the disk up to where the partition is compacted."""
        with self._lock:
            known = self._offsets[CLEANER]
            if known.get(partition) != offset or CLEANER in self._unsure:
                self._write(CLEANER, {**known, partition: offset})

    def lower_cleaner_offset(self, partition: TopicPartition, offset: int) -> None:
        """Have it on the disk that the partition is compacted up to `offset` at most."""
        with self._lock:
            known = self._offsets[CLEANER]
            if known.get(partition, 0) > offset or (partition in known and CLEANER in self._unsure):
                self._write(CLEANER, {**known, partition: min(known[partition], offset)})

    def lower_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Have the recovery point on the disk at `offset` or below."""
        with self._lock:
            known = self._offsets[RECOVERY_POINT]
            if known.get(partition, 0) > offset or RECOVERY_POINT in self._unsure:
                self._write(RECOVERY_POINT, {**known, partition: min(known.get(partition, 0), offset)})

    def set_start_offset(self, partition: TopicPartition, offset: int) -> None:
        """Have the start offset on the disk."""
        with self._lock:
            known = self._offsets[LOG_START]
            if known.get(partition) != offset or LOG_START in self._unsure:
                self._write(LOG_START, {**known, partition: offset})

    def write(self, kept: Iterable[tuple[TopicPartition, Kept]]) -> None:
        """Have what is to be remembered of these partitions on the disk; of all others it stays as it is.

        `kept` is asked while nobody else writes: given as a generator, it tells nothing older than what is there.
        """
        with self._lock:
            recovery_points = dict(self._offsets[RECOVERY_POINT])
            start_offsets = dict(self._offsets[LOG_START])
            high_watermarks = dict(self._offsets[REPLICATION])
            for partition, (recovery_point, start_offset, high_watermark) in kept:
                recovery_points[partition] = recovery_point
                if high_watermark is not None:
                    high_watermarks[partition] = high_watermark
                if start_offset is None:
                    start_offsets.pop(partition, None)
                else:
                    start_offsets[partition] = start_offset
            self._write_if_changed(RECOVERY_POINT, recovery_points)
            self._write_if_changed(LOG_START, start_offsets)
            if high_watermarks or not recovery_points:  # a file that names none would hide them all from readers
                self._write_if_changed(REPLICATION, high_watermarks)
            if CLEANER in self._unsure:
                self._write(CLEANER, self._offsets[CLEANER])

    def may_know(self, partition: TopicPartition) -> bool:
        """Whether anything may be on the disk about a partition."""
        return bool(self._unsure) or any(partition in offsets for offsets in self._offsets.values())

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Remember nothing of these partitions.

        On a full disk the files are written later, for it may be that these partitions are deleted to make room.
        """
        gone = frozenset(partitions)
        with self._lock:
            for name, offsets in list(self._offsets.items()):
                stay = {partition: offset for partition, offset in offsets.items() if partition not in gone}
                # Without need no file is made: to who watches, what is not in a checkpoint was never replicated.
                if len(stay) < len(offsets) or name in self._unsure:
                    try:
                        self._write(name, stay)
                    except OSError as error:
                        if not is_full(error):
                            raise
                        self._offsets[name] = stay

    def _write_if_changed(self, name: str, offsets: Offsets) -> None:
        """Leave a file alone that says the same: Kafka's has its lines in another order."""
        self.owner.check_lock()
        if offsets != self._offsets[name] or name in self._unsure or not (self._folder / name).exists():
            self._write(name, offsets)

    def _write(self, name: str, offsets: Offsets) -> None:
        self.owner.check_lock()
        self._unsure.add(name)
        write_offsets(self._storage, self._folder / name, offsets)
        self._offsets[name] = offsets
        self._unsure.discard(name)  # last: until then nobody relies on what is known here


class WatchedCheckpoints:
    """The checkpoints of a folder that somebody else writes: each is read again when its file is another."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self._storage = storage
        self._folder = folder
        self._seen: dict[str, tuple[FileStatus | None, Offsets]] = {}

    def start_offset(self, partition: TopicPartition) -> int:
        """The first offset that readers may have."""
        return self._now(LOG_START)[1].get(partition, 0)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """The high watermark as it was last written; None where there is no checkpoint of any.

        It is 0, as for Kafka, where the checkpoint has none of this partition: what is new there may be on no other
        replica yet. (The metadata are never in it.) Raises `BadDirectory` where it cannot be read.
        """
        stamp, offsets = self._now(REPLICATION)
        return offsets.get(partition, None if stamp is None or partition.topic == METADATA_TOPIC else 0)

    def lacks_high_watermark(self, partition: TopicPartition) -> bool:
        """Whether there is a checkpoint of high watermarks that does not name this partition."""
        stamp, offsets = self._now(REPLICATION)
        return stamp is not None and partition not in offsets

    def _now(self, name: str) -> tuple[FileStatus | None, Offsets]:
        path = self._folder / name
        stamp = self._status(path)  # before it is read: what comes between is read once more
        seen = self._seen.get(name)
        if seen is None or seen[0] != stamp:
            read = _read_high_watermarks(self._storage, path) if name == REPLICATION else _read(self._storage, path, [])
            seen = self._seen[name] = (stamp, read)
        return seen

    def _status(self, path: Path) -> FileStatus | None:
        try:
            return self._storage.status(path)
        except FileNotFoundError:
            return None


def _read_high_watermarks(storage: Storage, path: Path) -> Offsets:
    """Strictly, as Kafka does: without them nobody knows what may be read, and what was read cannot be taken back."""
    try:
        return read_offsets(storage, path)
    except CorruptFile as error:
        problem = f"at byte {error.position}: {error.rule}. Kafka does not start with it either; without the file"
        raise BadDirectory(path, f"{problem}, logs are read to their ends") from None


def _read(storage: Storage, path: Path, ignored: list[Ignored]) -> Offsets:
    try:
        return read_offsets(storage, path)
    except CorruptFile as error:
        # Kafka takes it so, but for the high watermarks, without which it does not start. It costs time, and no data.
        ignored.append(Ignored(path.name, error.rule))
        return {}
