"""The segment files of a log that is open for writing: `LogSegments`.

It creates the files of new segments. It writes segments to the disk, and knows up to which offset that was done (the
recovery point). It also removes the files of segments that have left the log: first they are renamed to `.deleted`;
after `file.delete.delay.ms`, or when the log is closed, they are removed. Until then, readers that have such a segment
in their view can read it.

The log's view says which segments belong to it. Retention (`Log.delete_oldest`), truncation and compaction decide which
segments leave it. The log's lock is held for everything except `sync`, which one thread at a time calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.log.clock import Deadline
from octavo.log.names import LOG, base_offset_of
from octavo.log.segment.open_files import with_room
from octavo.log.segment.segment import Segment
from octavo.log.storage import Storage
from octavo.log.view import View


class Synced(NamedTuple):
    """A segment that was written to the disk, and its `name_count` before that."""

    segment: Segment
    name_count: int


class LogSegments:
    """The segment files of one log."""

    def __init__(self, storage: Storage, folder: Path, *, recovery_point: int, now_ms: int) -> None:
        self.storage: Final = storage
        self.folder: Final = folder
        self.recovery_point = recovery_point  # everything before it is on the disk
        self.last_flush_ms = now_ms
        self.unsynced_snapshot: Path | None = None  # the last one that a roll has written
        self._leaving: list[Segment] = []  # segments that have left the log, files not yet renamed
        self._one_by_one = False  # each has to be gone from the disk before the next
        self._deleted: list[tuple[Deadline, Segment]] = []  # renamed segments, each with the time of its removal

    # ----------------------------------------------------------------------------------------------------------- make

    def create(self, base_offset: int, *, created_ms: int, preallocate: int = 0) -> Segment:
        """Make the files of an empty segment. If this raises `OSError`, `remove_half_made` must follow."""
        return Segment.create(self.storage, self.folder, base_offset, created_ms=created_ms, preallocate=preallocate)

    def remove_half_made(self, base_offset: int) -> None:
        """Remove the files of a half-made segment. They would hide what is appended to the segment before it."""
        for path in Segment(self.storage, self.folder, base_offset, size=0, created_ms=0).files():
            self.storage.remove(path)

    def remove_after(self, base_offset: int) -> None:
        """Remove the files of all segments that begin after `base_offset`. They must not be in the view."""
        for path in self.folder.iterdir():
            found = base_offset_of(path.name) if path.name.endswith(LOG) else None
            if found is not None and found > base_offset:
                self.remove_half_made(found)

    # ----------------------------------------------------------------------------------------------------------- sync

    def sync(self, view: View, current: Callable[[], View], *, count: int) -> list[Synced]:
        """Write the first `count` segments to the disk, as far as they are not. `current` returns the present view.

        The data and indexes come first, then the producer snapshot, which must not be believed without them.
        """
        behind = [
            Synced(segment, segment.name_count)  # before the sync: more files may be made meanwhile
            for number, segment in enumerate(view.segments[:count])
            if view.segment_end(number) > self.recovery_point or segment.is_new or segment.is_dirty
        ]
        for segment, _ in behind:
            try:
                segment.sync()
            except FileNotFoundError:
                if segment in current().segments:
                    raise  # otherwise it was deleted meanwhile
        snapshot = self.unsynced_snapshot
        if snapshot is not None:
            with contextlib.suppress(FileNotFoundError):  # deleted with its segment, or by a truncation
                with_room(lambda: self.storage.open(snapshot)).sync()
            if self.unsynced_snapshot is snapshot:  # otherwise there was another roll meanwhile
                self.unsynced_snapshot = None
        if any(segment.is_new for segment, _ in behind):
            self.sync_folder()
        return behind

    def note_synced(self, synced: Iterable[Synced], end_offset: int) -> None:
        """Record what `sync` has done: these segments, and everything before `end_offset`, are on the disk."""
        for segment, name_count in synced:
            segment.synced_names = name_count
        self.recovery_point = max(self.recovery_point, end_offset)

    def unflushed(self, view: View) -> tuple[int, int]:
        """Return the number and the bytes of the segments before the active one that may not be on the disk yet."""
        count = size = 0
        for number in range(len(view.segments) - 2, -1, -1):
            if view.bases[number + 1] <= self.recovery_point:
                break
            count += 1
            size += view.segments[number].size
        return count, size

    def sync_folder(self) -> None:
        """Write the names of the files to the disk."""
        with_room(lambda: self.storage.sync_folder(self.folder))

    # --------------------------------------------------------------------------------------------------------- remove

    @property
    def has_leaving(self) -> bool:
        """Whether there are segments that have left the log, but whose files are not renamed yet."""
        return bool(self._leaving)

    @property
    def has_removed(self) -> bool:
        """Whether there are segments that have left the log, and whose files are still there."""
        return bool(self._leaving or self._deleted)

    def leave(self, segments: Sequence[Segment], *, one_by_one: bool = False) -> None:
        """Note that these segments are about to leave the log. `put_away_leaving` renames their files.

        one_by_one: the start offset after them is not recorded, so each has to be gone from the disk before the next
        """
        self._leaving += segments
        self._one_by_one |= one_by_one

    def put_away_leaving(self, removal: Deadline) -> None:
        """Rename the files of segments that have left the log, also those that could not be renamed before."""
        while self._leaving:
            segment = self._leaving[0]
            segment.put_away()
            self._deleted.append((removal, segment))
            if len(self._leaving) == 1 or self._one_by_one:
                self.sync_folder()  # before the start offset is no longer recorded
            del self._leaving[0]
        self._one_by_one = False

    def put_away(self, segment: Segment, removal: Deadline) -> None:
        """Rename the files of a segment for deletion, and sync the folder."""
        segment.put_away()
        self._deleted.append((removal, segment))
        self.sync_folder()

    def remove_later(self, segments: Iterable[Segment], removal: Deadline) -> None:
        """Remove the files of these segments, which are renamed already, when `removal` is over."""
        self._deleted += [(removal, segment) for segment in segments]

    def due(self, now_ms: int) -> list[Segment]:
        """Return the segments whose files may be removed at `now_ms`."""
        return [segment for removal, segment in self._deleted if removal.is_over(now_ms)]

    def forget_removed(self, removed: Segment) -> None:
        """Note that the files of a segment that was `due` are removed."""
        self._deleted = [deleted for deleted in self._deleted if deleted[1] is not removed]

    def remove_all(self, now_ms: int) -> None:
        """Remove the files of all segments that have left the log, whatever their delay."""
        self.put_away_leaving(Deadline(now_ms, 0))
        for _, segment in self._deleted:
            segment.remove_deleted()
        self._deleted.clear()
