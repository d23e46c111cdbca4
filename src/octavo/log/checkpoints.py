"""The offset checkpoints of a data directory: four small files that cover all its partitions.

Data below the recovery point need no check after a crash. The recovery point may be too low, but never too high: it is
lowered on disk before a log is truncated, and raised from time to time. The start offset is raised on disk before
segments below it are removed, so that a crash during their deletion leaves no hole. The cleaner offset, up to which the
log is compacted, may be too low as well: compacting twice does no harm.

A file may name partitions that were deleted since it was last written: nobody looks for them. They are erased before
there is another partition of that name. So a deletion does not write the files, which name all partitions.

After a failed write the content of the file is unknown. So the next write is not skipped, even if nothing has changed.
Files that are written together share the time of their syncs. They do not depend on one another: a crash may leave some
of them old.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import BadDirectory, CorruptFile
from octavo.log.files.text_checkpoint import (
    CLEANER,
    LOG_START,
    RECOVERY_POINT,
    REPLICATION,
    read_offsets,
    write_offsets,
)
from octavo.log.names import METADATA_TOPIC, TopicPartition
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.ownership.owner import Owner
from octavo.log.recovery_report import IgnoredFile
from octavo.log.storage import FileStatus, Storage, is_full

Offsets = dict[TopicPartition, int]


class Kept(NamedTuple):
    """The checkpointed offsets of one partition."""

    recovery_point: int
    start_offset: int | None  # None: the base offset of the first segment
    high_watermark: int | None  # None: leave the recorded one as it is


class Checkpoints:
    """The checkpoints of one folder of a data directory."""

    def __init__(self, storage: Storage, folder: Path, owner: Owner | None = None) -> None:
        """Read the checkpoints. `owner`: the process that may write them; by default this one."""
        self.owner: Final = Owner(folder) if owner is None else owner
        self._storage = storage
        self._folder = folder
        self._lock = make_rlock()
        self.ignored: Final[list[IgnoredFile]] = []  # unreadable files; they are rewritten from the state of the logs
        names = (RECOVERY_POINT, LOG_START, REPLICATION, CLEANER)
        self._offsets: Final = {name: _read(storage, folder / name, self.ignored) for name in names}
        self._unsure: Final = {found.file for found in self.ignored}  # files that may differ from `_offsets`
        self._gone: Final[dict[str, set[TopicPartition]]] = {name: set() for name in names}  # still named in a file

    def recovery_point(self, partition: TopicPartition) -> int:
        """Return the offset below which the data of the partition are on the disk."""
        return self._offsets[RECOVERY_POINT].get(partition, 0)

    def has_recovery_point(self, partition: TopicPartition) -> bool:
        """Return whether a recovery point of the partition is recorded."""
        return partition in self._offsets[RECOVERY_POINT]

    def start_offset(self, partition: TopicPartition) -> int:
        """Return the first offset of the partition that may be read."""
        return self._offsets[LOG_START].get(partition, 0)

    def recorded_start(self, partition: TopicPartition) -> int | None:
        """Return the recorded start offset; None if there is none."""
        return self._offsets[LOG_START].get(partition)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the recorded high watermark; None if there is none."""
        return self._offsets[REPLICATION].get(partition)

    def cleaner_offset(self, partition: TopicPartition) -> int | None:
        """Return the offset up to which the partition was compacted; None if it never was."""
        return self._offsets[CLEANER].get(partition)

    def set_cleaner_offset(self, partition: TopicPartition, offset: int) -> None:
        """Persist the cleaner offset."""
        with self._lock:
            known = self._offsets[CLEANER]
            if known.get(partition) != offset or CLEANER in self._unsure:
                self._write({CLEANER: {**known, partition: offset}})

    def lower_cleaner_offset(self, partition: TopicPartition, offset: int) -> None:
        """Lower the recorded cleaner offset to `offset`, unless it is lower already."""
        with self._lock:
            known = self._offsets[CLEANER]
            if known.get(partition, 0) > offset or (partition in known and CLEANER in self._unsure):
                self._write({CLEANER: {**known, partition: min(known[partition], offset)}})

    def raise_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Record a recovery point that is `offset` or larger. Everything before it is on the disk."""
        with self._lock:
            known = self._offsets[RECOVERY_POINT]
            if known.get(partition, -1) < offset or RECOVERY_POINT in self._unsure:
                self._write({RECOVERY_POINT: {**known, partition: max(known.get(partition, 0), offset)}})

    def lower_recovery_point(self, partition: TopicPartition, offset: int) -> None:
        """Lower the recorded recovery point to `offset`, unless it is lower already."""
        with self._lock:
            known = self._offsets[RECOVERY_POINT]
            if known.get(partition, 0) > offset or RECOVERY_POINT in self._unsure:
                lowered = {partition: min(known[partition], offset)} if partition in known else {}
                self._write({RECOVERY_POINT: known | lowered})

    def set_start_offset(self, partition: TopicPartition, offset: int) -> None:
        """Persist the start offset."""
        with self._lock:
            known = self._offsets[LOG_START]
            if known.get(partition) != offset or LOG_START in self._unsure:
                self._write({LOG_START: {**known, partition: offset}})

    def write(self, kept: Iterable[tuple[TopicPartition, Kept]]) -> None:
        """Persist the offsets of these partitions. Those of all others stay as they are.

        `kept` is iterated under the lock. So a generator never yields values older than those already written.
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
            offsets = {RECOVERY_POINT: recovery_points, LOG_START: start_offsets}
            # An empty file would hide all partitions from readers.
            if high_watermarks or not recovery_points or self._gone[REPLICATION]:
                offsets[REPLICATION] = high_watermarks
            changed = {name: each for name, each in offsets.items() if self._has_changed(name, each)}
            if CLEANER in self._unsure or self._gone[CLEANER]:
                changed[CLEANER] = self._offsets[CLEANER]
            self._write(changed)

    @property
    def partitions(self) -> set[TopicPartition]:
        """All partitions that the checkpoints have."""
        return {partition for offsets in self._offsets.values() for partition in offsets}

    def may_name(self, partition: TopicPartition) -> bool:
        """Whether a checkpoint on disk may name the partition."""
        named = (*self._offsets.values(), *self._gone.values())
        return bool(self._unsure) or any(partition in each for each in named)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions that were deleted. The files lack them when they are next written."""
        with self._lock:
            for partition in partitions:
                for name, offsets in self._offsets.items():
                    if partition in offsets:
                        self._gone[name].add(partition)
                        del offsets[partition]

    def erase(self, partitions: Iterable[TopicPartition]) -> None:
        """Remove partitions from all checkpoints, and have the files lack them when this returns.

        A disk that is full raises no error: there the files are written later.
        """
        with self._lock:
            self.forget(partitions)
            # Do not create a file needlessly: readers treat a partition that it lacks as never replicated.
            left = {name: each for name, each in self._offsets.items() if self._gone[name] or name in self._unsure}
            try:
                if left:
                    self._write(left)
            except OSError as error:
                if not is_full(error):
                    raise

    def _has_changed(self, name: str, offsets: Offsets) -> bool:
        """Whether a file lacks some of these entries, in any order: Kafka orders the lines differently."""
        is_same = offsets == self._offsets[name] and not self._gone[name] and name not in self._unsure
        return not is_same or not (self._folder / name).exists()

    def _write(self, changed: Mapping[str, Offsets]) -> None:
        self.owner.check_lock()
        self._unsure.update(changed)
        write_offsets(self._storage, {self._folder / name: offsets for name, offsets in changed.items()})
        self._offsets.update(changed)
        for name in changed:
            self._gone[name].clear()
        self._unsure.difference_update(changed)  # last: until then `_offsets` must not be trusted


class WatchedCheckpoints:
    """The checkpoints of a folder that another process writes. Each is read again when its file has changed."""

    def __init__(self, storage: Storage, folder: Path) -> None:
        self._storage = storage
        self._folder = folder
        self._seen: dict[str, tuple[FileStatus | None, Offsets]] = {}

    def start_offset(self, partition: TopicPartition) -> int:
        """Return the first offset of the partition that may be read."""
        return self.recorded_start(partition) or 0

    def recorded_start(self, partition: TopicPartition) -> int | None:
        """Return the recorded start offset; None if there is none."""
        return self._now(LOG_START)[1].get(partition)

    def high_watermark(self, partition: TopicPartition) -> int | None:
        """Return the recorded high watermark; None if there is no checkpoint of high watermarks.

        It is 0, as in Kafka, if the checkpoint lacks this partition: its data may not be on any other replica yet.
        (For the metadata log it is None then: that log is never in the checkpoint.) Raises `BadDirectory` if the
        checkpoint cannot be read.
        """
        stamp, offsets = self._now(REPLICATION)
        return offsets.get(partition, None if stamp is None or partition.topic == METADATA_TOPIC else 0)

    def lacks_high_watermark(self, partition: TopicPartition) -> bool:
        """Whether there is a checkpoint of high watermarks that lacks this partition."""
        stamp, offsets = self._now(REPLICATION)
        return stamp is not None and partition not in offsets

    def _now(self, name: str) -> tuple[FileStatus | None, Offsets]:
        path = self._folder / name
        stamp = self._status(path)  # taken before reading, so that a change in between is noticed next time
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
    """Read high watermarks, as strictly as Kafka: they limit what may be read, and a read cannot be taken back."""
    try:
        return read_offsets(storage, path)
    except CorruptFile as error:
        problem = f"at byte {error.position}: {error.rule}. Kafka does not start with it either; without the file"
        raise BadDirectory(path, f"{problem}, logs are read to their ends") from None


def _read(storage: Storage, path: Path, ignored: list[IgnoredFile]) -> Offsets:
    try:
        return read_offsets(storage, path)
    except CorruptFile as error:
        # Kafka ignores such a file too, except for the high watermarks. That costs time, but no data.
        ignored.append(IgnoredFile(path.name, error.rule))
        return {}
