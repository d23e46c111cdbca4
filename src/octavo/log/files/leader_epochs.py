"""The leader epochs of a partition: which leader wrote which offsets.

An epoch is a leader's term. Its records begin at its start offset and end where the next epoch begins. Epochs and start
offsets both increase from entry to entry. `assign` writes a new epoch to disk before it becomes visible, so the
checkpoint has every epoch that is in the log. After a crash it may also have epochs that the log lacks. So opening a
log drops entries past its end with `truncate_from_end`.

One thread changes the epochs at a time; any number of threads may read meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import CorruptFile, InvalidInput
from octavo.log.files.text_checkpoint import EpochEntry as EpochEntry
from octavo.log.files.text_checkpoint import read_epochs, write_epochs
from octavo.log.storage import Storage

UNDEFINED: Final = -1

_epoch: Final = attrgetter("epoch")
_start_offset: Final = attrgetter("start_offset")


class EpochEnd(NamedTuple):
    """The largest known epoch not above the requested one, and its end offset; -1 and -1 if none is known."""

    epoch: int
    end_offset: int


class LeaderEpochs:
    """The leader epochs of one partition. Without a storage they are kept in memory only."""

    __slots__ = ("_path", "_storage", "entries")

    def __init__(self, storage: Storage | None = None, path: Path | None = None, *, read_only: bool = False) -> None:
        """Read the checkpoint at `path`, if it exists. `read_only`: never write it. Raises `CorruptFile`."""
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
    def of(cls, entries: Iterable[EpochEntry]) -> LeaderEpochs:
        """Return epochs that are kept in memory only."""
        epochs = cls()
        epochs.entries = tuple(entries)
        return epochs

    @classmethod
    def open(cls, storage: Storage, path: Path) -> tuple[LeaderEpochs, CorruptFile | None]:
        """Read the checkpoint at `path`. If it is damaged, return empty epochs and the error."""
        try:
            return cls(storage, path), None
        except CorruptFile as error:
            return cls.new(storage, path), error

    @classmethod
    def new(cls, storage: Storage, path: Path) -> LeaderEpochs:
        """Return empty epochs, whatever is in the checkpoint at `path`. The first change replaces it."""
        epochs = cls(None, path)
        epochs._storage = storage
        return epochs

    def is_cut(self) -> bool:
        """Return whether the checkpoint exists but lacks its number of entries. (Kafka first creates such a file.)"""
        if self.entries or self._storage is None or self._path is None or not self._path.exists():
            return False
        return self._storage.open(self._path).read_at(64, 0).count(b"\n") < 2

    def rebuild(self, entries: Iterable[tuple[int, int]]) -> None:
        """Replace all epochs by `entries`, in the order of the log's batches. The checkpoint is written once."""
        rebuilt: list[EpochEntry] = []
        for epoch, start_offset in entries:
            _assign(rebuilt, EpochEntry(epoch, start_offset))
        self._write(tuple(rebuilt))
        self.entries = tuple(rebuilt)

    @property
    def latest(self) -> EpochEntry | None:
        """The entry of the newest epoch; None if there is none."""
        entries = self.entries
        return entries[-1] if entries else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Let `epoch` begin at `start_offset`, and drop entries that contradict it. Returns whether anything changed.

        Raises `OSError` if the checkpoint cannot be written; then nothing has changed.
        """
        if epoch < 0 or start_offset < 0:
            raise InvalidInput(f"epoch {epoch} cannot start at offset {start_offset}: neither is below 0")
        latest = self.latest
        if latest is not None and latest.epoch == epoch and latest.start_offset <= start_offset:
            return False  # as for nearly every append
        entries = list(self.entries)
        _assign(entries, EpochEntry(epoch, start_offset))
        self._write(tuple(entries))
        self.entries = tuple(entries)
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """Return the epoch and offset up to which a follower whose last epoch is `epoch` agrees with this log."""
        entries = self.entries
        if epoch == UNDEFINED or not entries or epoch > entries[-1].epoch:
            return EpochEnd(UNDEFINED, UNDEFINED)
        if epoch == entries[-1].epoch:
            return EpochEnd(epoch, log_end_offset)
        above = bisect_right(entries, epoch, key=_epoch)
        # Epochs before the first entry are no longer in the log: the follower should continue from the log's start.
        known = entries[above - 1].epoch if above else epoch
        return EpochEnd(known, entries[above].start_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch of the leader that wrote `offset`; None if it is below all known epochs."""
        entries = self.entries
        above = bisect_right(entries, offset, key=_start_offset)
        return entries[above - 1].epoch if above else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that start at or after `end_offset`. A negative offset is ignored."""
        if end_offset >= 0:
            self._replace(self.entries[: bisect_left(self.entries, end_offset, key=_start_offset)])

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs that end at or before `start_offset`. The epoch that contains it now starts there."""
        entries = self.entries
        above = bisect_right(entries, start_offset, key=_start_offset)
        if above:
            self._replace((EpochEntry(entries[above - 1].epoch, start_offset), *entries[above:]))

    def clear(self) -> None:
        """Drop all epochs."""
        self._replace(())

    def _replace(self, entries: tuple[EpochEntry, ...]) -> None:
        """Replace the entries. Memory comes first: the log has lost these offsets, even if the write fails."""
        if entries != self.entries:
            self.entries = entries
            self._write(entries)

    def _write(self, entries: tuple[EpochEntry, ...]) -> None:
        if self._storage is not None and self._path is not None:
            write_epochs(self._storage, self._path, entries)


def _assign(entries: list[EpochEntry], new: EpochEntry) -> None:
    """Add `new` and drop entries that contradict it, unless `new` is already covered."""
    if entries and entries[-1].epoch == new.epoch and entries[-1].start_offset <= new.start_offset:
        return
    while entries and (entries[-1].epoch >= new.epoch or entries[-1].start_offset >= new.start_offset):
        entries.pop()
    entries.append(new)
