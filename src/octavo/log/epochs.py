"""Which leader wrote which offsets of a partition.

An epoch is a leader's term; what it wrote starts at its start offset and ends where the next begins. Epochs and start
offsets both increase from entry to entry. `assign` has a new epoch on the disk before it shows it: the checkpoint is
never without an epoch that is in the log. The other way round it may be behind, after a crash: a log that is opened
drops entries past its end, by `truncate_from_end`, and so does this when it is told to before it is written.

One thread changes it at a time; any number may read meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import InvalidInput
from octavo.log.checkpoint import EpochEntry as EpochEntry
from octavo.log.checkpoint import read_epochs, write_epochs
from octavo.log.small_file import CorruptFile
from octavo.log.storage import Storage

UNDEFINED: Final = -1

_epoch: Final = attrgetter("epoch")
_start_offset: Final = attrgetter("start_offset")


class EpochEnd(NamedTuple):
    """The largest known epoch that is not above the one asked for, and where it ends; -1 and -1 where none is known."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The leader epochs of one partition. Without a storage they are kept in memory alone."""

    __slots__ = ("_path", "_storage", "entries")

    def __init__(self, storage: Storage | None = None, path: Path | None = None, *, read_only: bool = False) -> None:
        """Read the checkpoint at `path`, if there is one; raises `CorruptFile`. `read_only`: never write it."""
        self.entries: tuple[EpochEntry, ...] = ()
        self._storage: Storage | None = None
        self._path = path
        if storage is not None and path is not None:
            entries: list[EpochEntry] = []
            for entry in read_epochs(storage, path):
                _assign(entries, entry)
            self.entries = tuple(entries)
            if not read_only:
                self._storage = storage

    @classmethod
    def open(cls, storage: Storage, path: Path) -> tuple[LeaderEpochs, CorruptFile | None]:
        """The checkpoint at `path`; where it is damaged, one without entries, and what is wrong."""
        try:
            return cls(storage, path), None
        except CorruptFile as error:
            empty = cls(None, path)
            empty._storage = storage
            return empty, error

    def is_cut(self) -> bool:
        """Whether there is a checkpoint that does not even say that it has no entries. (Kafka makes such, at first.)"""
        if self.entries or self._storage is None or self._path is None or not self._path.exists():
            return False
        return self._storage.open(self._path).read_at(64, 0).count(b"\n") < 2

    def rebuild(self, entries: Iterable[tuple[int, int]]) -> None:
        """Put these epochs, from the oldest batch of the log to the newest, in place of all; at once, on the disk."""
        rebuilt: list[EpochEntry] = []
        for epoch, start_offset in entries:
            _assign(rebuilt, EpochEntry(epoch, start_offset))
        self._write(tuple(rebuilt))
        self.entries = tuple(rebuilt)

    @property
    def latest(self) -> EpochEntry | None:
        """The entry of the newest epoch."""
        entries = self.entries
        return entries[-1] if entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Have `epoch` begin at `start_offset`, in place of what contradicts it; whether that changed anything.

        Raises `OSError` where it cannot be written, and has then changed nothing.
        """
        if epoch < 0 or start_offset < 0:
            raise InvalidInput(f"epoch {epoch} cannot start at offset {start_offset}: neither is below 0")
        latest = self.latest
        if latest is not None and latest.epoch == epoch and latest.start_offset <= start_offset:
            return False  # as it is for nearly every append
        entries = list(self.entries)
        _assign(entries, EpochEntry(epoch, start_offset))
        self._write(tuple(entries))
        self.entries = tuple(entries)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Where a follower, whose last epoch is `epoch`, has what this log has."""
        entries = self.entries
        if epoch == UNDEFINED or not entries or epoch > entries[-1].epoch:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == entries[-1].epoch:
            return EpochEnd(epoch, log_end_offset)
        above = bisect_right(entries, epoch, key=_epoch)
        # What was before the first entry is no longer in the log: to go on from its start is right for the follower.
        known = entries[above - 1].epoch if above else epoch
        return EpochEnd(known, entries[above].start_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch of the leader that wrote `offset`; None below all that are known."""
        entries = self.entries
        above = bisect_right(entries, offset, key=_start_offset)
        return entries[above - 1].epoch if above else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget the epochs that start at or after `end_offset`; below 0 it means nothing."""
        if end_offset >= 0:
            self._replace(self.entries[: bisect_left(self.entries, end_offset, key=_start_offset)])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget the epochs that end at or before `start_offset`; the one that holds it now starts there."""
        entries = self.entries
        above = bisect_right(entries, start_offset, key=_start_offset)
        if above:
            self._replace((EpochEntry(entries[above - 1].epoch, start_offset), *entries[above:]))

    def clear(self) -> None:
        """Forget all epochs."""
        self._replace(())

    def _replace(self, entries: tuple[EpochEntry, ...]) -> None:
        """Memory first: the log has lost these offsets, whether or not that can be written."""
        if entries != self.entries:
            self.entries = entries
            self._write(entries)

    def _write(self, entries: tuple[EpochEntry, ...]) -> None:
        if self._storage is not None and self._path is not None:
            write_epochs(self._storage, self._path, entries)


def _assign(entries: list[EpochEntry], new: EpochEntry) -> None:
    """Add `new` in place of what contradicts it, unless it says nothing new."""
    if entries and entries[-1].epoch == new.epoch and entries[-1].start_offset <= new.start_offset:
        return
    while entries and (entries[-1].epoch >= new.epoch or entries[-1].start_offset >= new.start_offset):
        entries.pop()
    entries.append(new)
