"""A log in memory that does what `octavo.log.Log` does for a replica."""

from __future__ import annotations

import struct
from random import Random
from typing import Final, NamedTuple

from octavo.log.files.leader_epochs import EpochEnd, LeaderEpochs

_ENTRY: Final = struct.Struct(">ii")


class Entry(NamedTuple):
    """A record, and the epoch of the leader that has written it."""

    epoch: int
    value: int


class MemoryLog:
    """One replica's log. What was not flushed may be lost when the power goes."""

    def __init__(self) -> None:
        self.start_offset = 0
        self.entries: list[Entry] = []
        self.epochs = LeaderEpochs()
        self.leader_epoch = 0
        self.high_watermark = 0
        self._flushed_to = 0
        self._checkpoint = 0  # the high watermark on the disk

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        """The last epoch of the log; -1 if it has none."""
        latest = self.epochs.latest
        return -1 if latest is None else latest.epoch

    def become_leader(self, epoch: int) -> int:
        """Begin an epoch at the end of the log."""
        self.epochs.assign(epoch, self.end_offset)
        self.leader_epoch = epoch
        return self.epochs.entries[-1].start_offset

    def append(self, value: int) -> None:
        """Append as a leader."""
        self.entries.append(Entry(self.leader_epoch, value))

    def read(self, offset: int, count: int, end_offset: int) -> bytes:
        """Return up to `count` records from `offset` on."""
        first = offset - self.start_offset
        entries = self.entries[first : min(first + count, end_offset - self.start_offset)]
        return offset.to_bytes(8) + b"".join(_ENTRY.pack(*entry) for entry in entries) if entries else b""

    def append_as_follower(self, records: bytes, leader_epoch: int) -> None:
        """Append what a leader has written."""
        assert int.from_bytes(records[:8]) == self.end_offset
        for entry in map(Entry._make, _ENTRY.iter_unpack(records[8:])):
            if entry.epoch > leader_epoch:
                return
            if entry.epoch != self.last_epoch:
                self.epochs.assign(entry.epoch, self.end_offset)
            self.entries.append(entry)

    def advance_high_watermark(self, offset: int) -> None:
        """Set the high watermark, within the log."""
        self.high_watermark = max(self.start_offset, min(offset, self.end_offset))

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        """Return where an epoch ends."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def truncate_to(self, offset: int) -> None:
        """Remove everything from `offset` on."""
        del self.entries[max(0, offset - self.start_offset) :]
        self.start_offset = min(self.start_offset, offset)
        self.epochs.truncate_from_end(self.end_offset)
        self._flushed_to = min(self._flushed_to, offset)
        self.advance_high_watermark(self.high_watermark)

    def truncate_to_epoch(self, epoch: int, end_offset: int) -> None:
        """Remove what a leader does not have."""
        own = self.end_offset_for_epoch(epoch)
        offset = end_offset
        if own.epoch >= 0:
            offset = min(own.end_offset, end_offset) if own.epoch == epoch else own.end_offset
        self.truncate_to(min(offset, self.end_offset))

    def follow_start(self, offset: int) -> None:
        """Move the start of the log, at most to the high watermark."""
        offset = min(offset, self.high_watermark)
        if offset > self.start_offset:
            del self.entries[: offset - self.start_offset]
            self.start_offset = offset
            self.epochs.truncate_from_start(offset)

    def restart_at(self, offset: int) -> None:
        """Empty the log, and begin it at `offset`."""
        self.entries.clear()
        self.epochs = LeaderEpochs()
        self.start_offset = self.high_watermark = offset
        self._flushed_to = min(self._flushed_to, offset)

    def flush(self) -> None:
        """Have everything on the disk."""
        self._flushed_to, self._checkpoint = self.end_offset, self.high_watermark

    def wipe(self) -> None:
        """Be on a new disk."""
        self.restart_at(0)
        self._flushed_to = self._checkpoint = 0

    def lose_power(self, random: Random) -> None:
        """Lose some of what was not flushed."""
        self.truncate_to(random.randint(min(self._flushed_to, self.end_offset), self.end_offset))
        self.advance_high_watermark(min(self.high_watermark, self._checkpoint))
