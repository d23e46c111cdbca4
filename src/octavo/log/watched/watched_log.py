"""Read a log that another process writes, Octavo or Apache Kafka, without a lock and without changing it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from octavo.errors import BadDirectory, CorruptFile, FormatError
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.config.log_config import LogConfig
from octavo.log.files.leader_epochs import EpochEntry, LeaderEpochs
from octavo.log.names import LEADER_EPOCHS, TopicPartition
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.reading.read_view import abort_bound
from octavo.log.reading.readable_log import ReadableLog
from octavo.log.segment.segment import Segment
from octavo.log.segment.transaction_index import AbortedEntry
from octavo.log.storage import DISK, FileStatus, Storage
from octavo.log.tiers import RemotePart, remote_part
from octavo.log.view import Isolation, View
from octavo.log.watched.found_transactions import FoundTransactions
from octavo.log.watched.log_end import Tail, find_tail
from octavo.log.watched.segment_files import SegmentFiles, find_segments

if TYPE_CHECKING:
    pass

T = TypeVar("T")
_ATTEMPTS: Final = 100  # tries to read a folder that keeps changing


class _Seen(NamedTuple):
    """The state of the partition at the last look."""

    view: View
    found: SegmentFiles
    tail: Tail
    high_watermark: int | None  # as recorded in the checkpoint


class WatchedLog(ReadableLog):
    """A partition's log as it was at the last look; `refresh` looks again.

    The log ends with the last batch that is complete and has a correct checksum. A batch that is being written is not
    seen. Damage before the end is reported when it is read.
    """

    def __init__(
        self,
        storage: Storage,
        folder: Path,
        partition: TopicPartition,
        config: LogConfig,
        checkpoints: WatchedCheckpoints | None = None,
    ) -> None:
        """Look at the log for the first time. `checkpoints` may be shared by all logs of one directory.

        Raises `NoSegments`, and `BadDirectory` if the folder is missing.
        """
        self.folder: Final = folder
        self.partition: Final = partition
        self.config: Final = config
        self._storage = storage
        self._checkpoints = WatchedCheckpoints(storage, folder.parent) if checkpoints is None else checkpoints
        self._lock = make_rlock()  # held while looking
        self._transactions = FoundTransactions()
        self._is_decided = False
        self._seen = self._look(None)
        self._shown = self._seen.view

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        """The leader epochs with their start offsets, read from their checkpoint now."""
        return LeaderEpochs(self._storage, self.folder / LEADER_EPOCHS, read_only=True).entries

    @property
    def view(self) -> View:
        """The log as it was at the last look."""
        return self._shown

    @property
    def _view(self) -> View:
        return self._shown

    @property
    def recorded_high_watermark(self) -> int | None:
        """The high watermark in the directory's checkpoint; None if there is no checkpoint.

        It may be beyond the end of the log. It is 0 if the checkpoint names only other partitions.
        """
        return self._seen.high_watermark

    @property
    def lacks_high_watermark(self) -> bool:
        """Whether the directory has recorded high watermarks, but none for this partition."""
        return self._checkpoints.lacks_high_watermark(self.partition)

    def remote_part(self, is_tiered: Callable[[], bool | None]) -> RemotePart | None:
        """Return the offsets that are in remote storage only; None if there are none.

        is_tiered: tells what the settings of the topic say, None if they are not known. Asked only if it matters
        """
        first, recorded = self.view.bases[0], self._checkpoints.recorded_start(self.partition)
        if first <= (0 if recorded is None else recorded) or (recorded is None and self._storage is not DISK):
            return None  # in a bucket, nobody asks for one more file of each partition
        epochs = self.epochs
        if recorded is None and (not epochs or epochs[0].start_offset >= first):
            return None
        return remote_part(self.partition, is_tiered=is_tiered(), recorded=recorded, epochs=epochs, first=first)

    def identity(self, base_offset: int) -> int:
        """Return a number that identifies a segment's file. A file that replaces it has another number."""
        return self._seen.found.files[base_offset].identity

    def path_of(self, base_offset: int) -> Path:
        """Return the path of a segment's file. The output of a compaction may still have its temporary `.swap` name."""
        return self.folder / self._seen.found.name(base_offset)

    def refresh(self) -> bool:
        """Look at the files again. Returns whether the log has changed."""
        with self._lock:
            before = self._seen
            self._look_again()
            return self._seen.view != before.view

    def finds_other_files(self) -> bool:
        """Look at the files again. Returns whether segment files were replaced or removed.

        Then data that were read before may be outdated.
        """
        with self._lock:
            before = self._seen.found.files
            self._look_again()
            now = self._seen.found.files
            return any(base not in now or now[base].identity != file.identity for base, file in before.items())

    def _look_again(self) -> None:
        self._seen = self._look(self._seen)
        if self._is_decided:
            self._decide()
        else:
            self._shown = self._seen.view

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset, found in the data. Each batch header is read only once."""
        self._decide()
        return self._view.last_stable_offset

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the first undecided transaction; None if there is none."""
        self._decide()
        return super().first_unstable_offset

    def _isolated(self, given: Isolation | str) -> Isolation:
        """For committed data, find aborted transactions in the data first: the writer's index may lag."""
        isolation = super()._isolated(given)
        if isolation is Isolation.READ_COMMITTED:
            self._decide()
        return isolation

    def _decide(self) -> None:
        """Find the undecided transactions in the current view, now and after every later look."""
        with self._lock:
            self._is_decided = False  # so that another look meanwhile does not recurse into this
            for _ in range(_ATTEMPTS):
                view = self._seen.view
                if self._transactions.generation != view.generation:
                    self._transactions = FoundTransactions(view.generation)
                try:
                    unstable = self._transactions.go_on(view)
                except (FileNotFoundError, CorruptFile):
                    if not self.finds_other_files():
                        raise
                else:
                    self._shown = view._replace(first_unstable_offset=unstable)
                    self._is_decided = True
                    return
            raise BadDirectory(self.folder, "its files change faster than they can be looked at")

    def _aborted(self, view: View, number: int, offset: int, end: int) -> list[AbortedEntry]:
        return self._transactions.between(offset, abort_bound(view, number, end), view.last_stable_offset)

    def close(self) -> None:
        """Close the files."""
        for segment in self._view.segments:
            segment.forget()

    def _in_view(self, ask: Callable[[View], T]) -> T:
        """Return `ask(view)`. If files were changed or removed meanwhile, refresh the view and try once more."""
        try:
            return ask(self._view)
        except (FileNotFoundError, FormatError):
            self.refresh()
            return ask(self._view)

    # ------------------------------------------------------------------------------------------------------- looking

    def _look(self, before: _Seen | None) -> _Seen:
        """Return the current state. If the writer renames or removes files meanwhile, try again."""
        for _ in range(_ATTEMPTS):
            try:
                return self._look_once(before)
            except FileNotFoundError:
                if not self._storage.is_folder(self.folder):
                    raise BadDirectory(self.folder, "there is no such folder, or no longer") from None
        raise BadDirectory(self.folder, "its files change faster than they can be looked at")

    def _look_once(self, before: _Seen | None) -> _Seen:
        recorded = self._checkpoints.high_watermark(self.partition)  # read first, so that the files hold all below it
        start_offset = self._checkpoints.start_offset(self.partition)
        found = find_segments(self._storage, self.folder)
        generation = 0 if before is None else before.view.generation
        if before is not None and not _goes_on(before, found.files):
            before = None
            generation += 1
        segments = self._segments(found, before)
        active = segments[-1]
        known = before.tail if before is not None and active is before.view.segments[-1] else None
        tail = find_tail(active, found.files[active.base_offset].size, known, recorded or 0)
        end_offset = tail.end_offset
        start_offset = min(max(start_offset, segments[0].base_offset), end_offset)
        view = View(
            tuple(segments),
            tuple(segment.base_offset for segment in segments),
            tail.end,
            start_offset,
            end_offset,
            end_offset if recorded is None else max(start_offset, min(recorded, end_offset)),
            generation,
        )
        return _Seen(view, found, tail, recorded)

    def _segments(self, found: SegmentFiles, before: _Seen | None) -> list[Segment]:
        """Return the segments, reusing those whose files are unchanged."""
        known = {} if before is None else {segment.base_offset: segment for segment in before.view.segments}
        last = max(found.files)
        segments = []
        for base_offset, file in found.files.items():
            segment = known.get(base_offset)
            if (
                segment is None
                or before is None
                or before.found.files[base_offset].identity != file.identity
                or (segment.size != file.size and base_offset != last)
            ):
                segment = Segment(found.storage, self.folder, base_offset, size=file.size, created_ms=0)
            segments.append(segment)
        return segments


def _goes_on(before: _Seen, files: Mapping[int, FileStatus]) -> bool:
    """Return whether the log has only grown or lost its oldest segments since the last look.

    A truncation removes the last batch, and a batch written in its place is longer, shorter or has another checksum.
    So it is enough to check that the last batch is still there.
    """
    view, tail = before.view, before.tail
    active = view.segments[-1]
    file = files.get(active.base_offset)
    return (
        file is not None
        and file.identity == before.found.files[active.base_offset].identity
        and file.size >= tail.end
        and active.file.read_at(len(tail.header), tail.position) == tail.header
    )
