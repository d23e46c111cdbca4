"""Open the files of a partition: finish or undo interrupted work, check unflushed data, find the log end offset.

The steps and their order are Kafka's (`LogLoader`). Files left over from deletions are removed. Half-written output of
a compaction is removed, and finished output replaces its input. After an unclean shutdown every batch after the
recovery point is checked, the log is cut at the first bad batch, and the indexes of the checked segments are rebuilt.

Every step can be interrupted and repeated. Segments after a cut are removed from the last to the first; each removal
is on disk before the next one, and the cut itself comes last. So the log never has a hole.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import os
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from octavo.errors import BadDirectory, CorruptFile, Truncated, WouldLoseRecords
from octavo.log.files.leader_epochs import LeaderEpochs
from octavo.log.files.text_checkpoint import LOG_START
from octavo.log.names import (
    CLEANED,
    INDEX,
    LEADER_EPOCHS,
    LOG,
    LOST,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    TopicPartition,
    file_name,
)
from octavo.log.producer_state.replay import Replay, snapshots_of
from octavo.log.producer_state.transaction_index_check import check_txn_index
from octavo.log.recovery.leftovers import base_offset_in, finish_what_was_under_way
from octavo.log.recovery.recover import Recover
from octavo.log.recovery_report import Cut, IgnoredFile, OnProgress, Progress, RecoveryReport
from octavo.log.segment.index import OffsetIndex, TimeIndex
from octavo.log.segment.segment import Segment
from octavo.log.storage import Storage, is_full
from octavo.log.view import segment_ends
from octavo.records.layout import BATCH_HEADER, MAGIC_AT, NO_LEADER_EPOCH, NO_OFFSET

if TYPE_CHECKING:
    from octavo.log.recovery.checking import Found, Scanner

_log = logging.getLogger("octavo.log")

_INDEXES = (INDEX, TIME_INDEX, TXN_INDEX)
_SEGMENT_FILES = (LOG, *_INDEXES)
_FILES = (*_SEGMENT_FILES, SNAPSHOT)


class Loaded(NamedTuple):
    """The state of a partition after it was opened."""

    segments: list[Segment]
    start_offset: int
    end_offset: int  # everything before it is on disk
    replay: Replay  # holds the producer state at the end offset
    report: RecoveryReport


def load_new(storage: Storage, folder: Path, partition: TopicPartition, *, clean: bool, now_ms: int) -> Loaded:
    """Make the first segment of a partition whose folder was just made."""
    report = RecoveryReport(partition, was_clean=clean, segments=1)
    segment = Segment.create(storage, folder, 0, created_ms=now_ms)
    return Loaded([segment], 0, 0, Replay(storage, folder, report), report)


def check_partition(
    storage: Storage,
    folder: Path,
    *,
    start_offset: int,
    may_have_gaps: bool,
    end_offset: int | None = None,
    recovers_from: int | None = None,
) -> None:
    """Check a partition's folder for states that neither Kafka nor Octavo can have left. Nothing is changed.

    `end_offset`: where the log ended when it was closed cleanly. `recovers_from`: the recovery point of a log that was
    not closed cleanly. Loading cuts such a log where a power cut has taken something after that point, and cuts off
    damage; neither is a reason to refuse the folder. Raises `BadDirectory`, `Unsupported` or `CorruptFile`, and
    `OSError` for files that cannot be read.
    """
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise BadDirectory(folder, "there is no permission to read and write in this folder")
    segments = []
    swaps = False
    for entry in sorted(os.scandir(folder), key=attrgetter("name")):
        suffix = entry.name[entry.name.find(".") :]
        if suffix in _FILES and not entry.is_file():
            raise BadDirectory(entry.path, "this should be a file of a segment, and is none")
        if suffix in _SEGMENT_FILES:
            base_offset = base_offset_in(folder, entry.name)
            if suffix == LOG:
                segments.append(Segment(storage, folder, base_offset, size=entry.stat().st_size, created_ms=0))
        swaps |= entry.name.endswith((SWAP, CLEANED))
    LeaderEpochs.open(storage, folder / LEADER_EPOCHS)
    for segment, limit in zip(segments, segment_ends(segments, end_offset), strict=True):
        segment.check_format(limit)
    if swaps or may_have_gaps:
        return
    for segment, following in itertools.pairwise(segments):
        seen = segment.sound_end_offset()
        if recovers_from is not None and following.base_offset > recovers_from:
            break
        if (
            seen is not None
            and seen < following.base_offset > start_offset
            and segment.verified_end_offset() == seen  # otherwise the header that says so is damaged
        ):
            raise BadDirectory(
                folder,
                f"no segment holds the offsets {seen} to {following.base_offset - 1}: a file is missing "
                f"between {segment.path.name} and {following.path.name}; put it back, or open with may_have_gaps=True",
            )


class Loader:
    """Opens one partition for writing. A loader is used once."""

    def __init__(
        self,
        storage: Storage,
        folder: Path,
        partition: TopicPartition,
        *,
        clean: bool,
        recovery_point: int,
        may_have_gaps: bool,
        start_offset: int,
        index_interval: int,
        epochs: LeaderEpochs,
        epochs_damage: CorruptFile | None,
        now_ms: int,
        on_progress: OnProgress | None,
        recover: Recover = Recover.REFUSE,
    ) -> None:
        """`recover`: whether sound batches behind damage may be cut off."""
        self._storage = storage
        self._recover_as = recover
        self._folder = folder
        self._clean = clean
        self._recovery_point = recovery_point
        self._may_have_gaps = may_have_gaps
        self._start_offset = start_offset
        self._index_interval = index_interval
        self._epochs = epochs
        self._epochs_damage = epochs_damage
        self._now_ms = now_ms
        self._on_progress = on_progress
        self._report = RecoveryReport(partition, was_clean=clean)
        self._replay = Replay(storage, folder, self._report)
        self._bytes_to_check = 0
        self._first_offset = 0

    def load(self) -> Loaded:
        """Open the partition. Raises `OSError`, and `WouldLoseRecords` before anything that is sound is cut off.

        Any other problem was found by `check_partition` before.
        """
        if not self._clean:
            # Files that a crashed process created or renamed are visible now, so they must survive a power cut too.
            self._storage.sync_folder(self._folder)
        snapshots = snapshots_of(self._folder)
        names = finish_what_was_under_way(self._storage, self._folder, self._report)
        segments = self._open_segments(names)
        self._report.segments = len(segments)
        self._first_offset = max(self._start_offset, segments[0].base_offset) if segments else 0
        self._drop_unused(segments)
        self._rebuild_epochs(segments)
        first = len(segments) if self._clean else self._first_unflushed(segments)
        self._rebuild_indexes(segments[:first], set(names))
        doubted = self._clear_txn_indexes(segments[:first], set(names))
        if not self._clean:
            self._recover(segments, first, doubted)
        elif segments:
            self._check_tail(segments, snapshots)
        end_offset = self._end_offset(segments)
        if self._clean:
            self._restore_producers(segments, end_offset, end_offset, doubted)
        self._take_snapshot(end_offset)
        if not self._clean:
            self._replay.forget_expired(self._now_ms)
        self._replay.remove_strays(segments, end_offset)
        for offset in snapshots:
            if offset > end_offset:
                reason = f"it is of the offset {offset}, and the log ends at {end_offset}"
                self._report.ignored.append(IgnoredFile(file_name(offset, SNAPSHOT), reason))
        self._report.segments = max(self._report.segments, len(segments))
        self._epochs.truncate_from_end(end_offset)
        if self._start_offset > 0:
            self._epochs.truncate_from_start(self._start_offset)
        start_offset = max(self._start_offset, segments[0].base_offset)
        return Loaded(segments, start_offset, end_offset, self._replay, self._report)

    def _take_snapshot(self, offset: int) -> None:
        """Write a snapshot, unless the disk is full: it is optional, and the log may be opened to free space."""
        try:
            self._replay.take_snapshot(offset)
        except OSError as error:
            if not is_full(error):
                raise
            with contextlib.suppress(OSError):
                self._storage.remove(self._folder / file_name(offset, SNAPSHOT))

    def _segment(self, base_offset: int) -> Segment:
        path = self._folder / file_name(base_offset, LOG)
        return Segment(self._storage, self._folder, base_offset, size=path.stat().st_size, created_ms=self._now_ms)

    def _remove(self, name: str) -> None:
        self._storage.remove(self._folder / name)
        self._report.removed.append(name)

    # -------------------------------------------------------------------------------------------------- the segments

    def _open_segments(self, names: Sequence[str]) -> list[Segment]:
        """Return the segments in order. Indexes without a data file are removed."""
        there = set(names)
        segments = []
        for name in names:
            suffix = name[name.find(".") :]
            if suffix in _INDEXES and file_name(base_offset_in(self._folder, name), LOG) not in there:
                self._remove(name)
            elif suffix == LOG:
                segments.append(self._segment(base_offset_in(self._folder, name)))
        return segments

    def _drop_unused(self, segments: list[Segment]) -> None:
        """Remove empty segments at the end that a failed roll left, if records were then appended to the one before."""
        while len(segments) > 1 and segments[-1].size == 0:
            end_offset = segments[-2].sound_end_offset()
            if end_offset is None or end_offset <= segments[-1].base_offset:
                return
            for path in segments.pop().files():
                self._remove(path.name)

    def _rebuild_epochs(self, segments: Sequence[Segment]) -> None:
        """Rebuild the leader epochs from the data if their checkpoint is damaged."""
        if self._epochs_damage is not None:
            rule = self._epochs_damage.rule
        elif self._epochs.is_cut() and _has_epoch(segments):
            rule = "it ends before its entries, and the log has some"
        else:
            return
        from octavo.log.segment.header_scan import epochs_of  # imports NumPy, which a clean start does not need

        found = (epochs_of(segment.file, segment.size) for segment in segments)
        self._epochs.rebuild(itertools.chain.from_iterable(found))
        self._report.ignored.append(IgnoredFile(LEADER_EPOCHS, rule))

    def _rebuild_indexes(self, segments: Sequence[Segment], there: set[str]) -> None:
        """Rebuild indexes that are missing or cannot be right. Flushed data are never cut, even if they are damaged."""
        for segment in segments:
            if not self._has_indexes(segment, there):
                self._bytes_to_check += segment.size
                scanner = self._scan(segment)
                segment.sync()
                self._storage.sync_folder(self._folder)
                self._report.rebuilt.append(segment.path.name)
                if scanner.error is not None:
                    size = segment.size - scanner.position
                    self._report.damaged.append(Cut(segment.path.name, scanner.position, size, scanner.error.rule))

    def _has_indexes(self, segment: Segment, there: set[str]) -> bool:
        """Return whether the indexes seem right, judging by their sizes and last entries."""
        base = segment.base_offset
        if not {file_name(base, INDEX), file_name(base, TIME_INDEX)} <= there:
            return False
        for suffix, entry_size in ((INDEX, OffsetIndex.ENTRY_SIZE), (TIME_INDEX, TimeIndex.ENTRY_SIZE)):
            if (self._folder / file_name(base, suffix)).stat().st_size % entry_size:
                return False
        if segment.offset_index.is_too_long() or segment.time_index.is_too_long():
            return False
        last = segment.offset_index.last
        try:
            return (last is None or segment.has_batch_at(last)) and segment.has_largest()
        except CorruptFile:
            return False  # the data are damaged; the scan that rebuilds the index reports it

    def _clear_txn_indexes(self, segments: Sequence[Segment], there: set[str]) -> list[Segment]:
        """Clear the transaction indexes that cannot be right. Returns the segments whose index must be rebuilt."""
        doubted = []
        for number, segment in enumerate(segments):
            if file_name(segment.base_offset, TXN_INDEX) in there:
                try:
                    check_txn_index(segments, number, self._start_offset)
                except CorruptFile as error:
                    self._report.ignored.append(IgnoredFile(segment.txn_index.path.name, error.rule))
                    segment.txn_index.clear()
                    doubted.append(segment)
        return doubted

    def _restore_producers(
        self, segments: Sequence[Segment], limit: int, end_offset: int, doubted: Sequence[Segment]
    ) -> None:
        """Restore the producer state at `end_offset`, from a snapshot at or below `limit`; rebuild doubted indexes."""
        first = segments[0].base_offset if segments else limit
        limit = min([limit, *(segment.base_offset for segment in doubted)])
        self._replay.begin(max(self._start_offset, first), limit, self._now_ms)
        self._replay.run(segments, end_offset, doubted)
        for segment in doubted:
            segment.txn_index.sync()

    def _check_tail(self, segments: list[Segment], snapshots: Sequence[int]) -> None:
        """Check that a cleanly closed log ends with a batch at the offset where it was closed.

        Otherwise its end is damaged. Bytes after the recorded end were never part of the log, and are cut off. What
        was part of the log stays, and the log continues in a new segment: a batch after damage in the same file could
        not be found, and offsets that were already used must not be assigned again.
        """
        active = segments[-1]
        recorded = max(self._recovery_point, *snapshots[-1:], 0)
        try:
            claimed, end = active.end_offset()
        except CorruptFile:
            claimed, end = active.base_offset, -1
        if end == active.size and (claimed == recorded or active.verified_end_offset() == claimed):
            return
        self._bytes_to_check += active.size
        scanner = self._scan(active)
        active.sync()
        error = scanner.error
        size = active.size - scanner.position
        if error is None and not recorded:
            return  # the end was never recorded, and every batch is sound
        if error is None:  # the checksum does not cover the base offset, but readers rely on it
            end_offset = max(recorded, scanner.end_offset)
            rule = f"the log ended at offset {recorded} when it was closed, and its last batch ends at {claimed}"
            found = Cut(active.path.name, active.size, 0, rule)
        elif recorded == scanner.end_offset:
            self._cut(active, scanner, [])
            return
        else:
            is_likely = end == active.size and active.takes(claimed - 1)
            likely = max(claimed if is_likely else 0, scanner.end_offset + 1)
            end_offset = recorded if recorded > scanner.end_offset else likely
            found = Cut(active.path.name, scanner.position, size, error.rule)
        if found not in self._report.damaged:
            self._report.damaged.append(found)
        segments.append(Segment.create(self._storage, self._folder, end_offset, created_ms=self._now_ms))
        self._storage.sync_folder(self._folder)

    # ------------------------------------------------------------------------------------------------- the recovery

    def _first_unflushed(self, segments: Sequence[Segment]) -> int:
        """Return the number of the segment that holds the recovery point."""
        return max(0, sum(segment.base_offset <= self._recovery_point for segment in segments) - 1)

    def _recover(self, segments: list[Segment], first: int, doubted: Sequence[Segment]) -> None:
        """Check the segments from `first` on, and cut the log at the first bad batch."""
        self._bytes_to_check += sum(segment.size for segment in segments[first:])
        if segments:
            base_offset = segments[first].base_offset
            self._restore_producers(segments[:first], base_offset, base_offset, doubted)
        for number in range(first, len(segments)):
            self._replay.take_snapshot(segments[number].base_offset)
            if number > first:
                self._replay.forget_expired(self._now_ms)
            segments[number].txn_index.clear()
            later = segments[number + 1 :]
            # Below the start offset a transaction's data may still be there when its marker is already deleted.
            is_over = bool(later) and later[0].base_offset <= self._start_offset
            is_cut = self._check_batches(segments[number], later, None if is_over else self._replay)
            segments[number].sync()  # a power cut must not bring back what a crashed process truncated
            if is_cut:
                del segments[number + 1 :]
                break
        self._storage.sync_folder(self._folder)  # for indexes that did not exist before

    def _check_batches(self, segment: Segment, later: Sequence[Segment] = (), replay: Replay | None = None) -> bool:
        """Check every batch and rebuild the indexes. At damage, cut the segment and remove the `later` segments.

        Returns whether the segment was cut. `replay` gets the sound batches, and rebuilds the transaction index.
        """
        scanner = self._scan(segment, replay)
        error = scanner.error
        if error is not None:
            self._cut(segment, scanner, later)
            return True
        if self._has_lost_its_end(scanner.end_offset, later):
            gap = f"{scanner.end_offset} to {later[0].base_offset - 1}"
            reason = f"the offsets {gap} are not there; what comes after them is kept in files that end in {LOST}"
            self._cut_at(segment, scanner, later, reason, keeps_later=True)  # the gap may not be a power cut's
            return True
        return False

    def _cut(self, segment: Segment, scanner: Scanner, later: Sequence[Segment]) -> None:
        """Cut a segment at damage, and remove the `later` ones. Raises `WouldLoseRecords` before anything is done."""
        from octavo.log.recovery.sound_behind import find_behind, keep_copy, records_before

        error = scanner.error
        assert error is not None
        reason = "a batch is not all there" if isinstance(error, Truncated) else error.rule
        behind = find_behind(segment, scanner.position, scanner.end_offset - 1, later)
        if behind.batches:
            if self._recover_as is Recover.REFUSE:
                # Segments before this one may be many: of them the offsets are counted, which compaction leaves out.
                before = max(0, segment.base_offset - self._first_offset) + records_before(segment, scanner.position)
                raise WouldLoseRecords(segment.path, scanner.position, reason, before, behind.records)
            self._report.kept.append(keep_copy(self._storage, segment.path).name)
            reason += f", and {behind.records:,} sound record(s) lay behind it"
        self._cut_at(segment, scanner, later, reason, keeps_later=bool(behind.batches))

    def _cut_at(
        self, segment: Segment, scanner: Scanner, later: Sequence[Segment], reason: str, *, keeps_later: bool
    ) -> None:
        """Remove the `later` segments, the last one first, then cut a segment, and say so.

        `keeps_later`: keep the data of later segments under another name
        """
        from octavo.log.recovery.sound_behind import lost_path

        for behind in reversed(later):
            for path in behind.files():
                if keeps_later and path.suffix == LOG and behind.size:
                    kept = lost_path(path)
                    self._storage.rename(path, kept)
                    self._report.kept.append(kept.name)
                    self._report.removed.append(path.name)
                else:
                    self._remove(path.name)
            self._storage.sync_folder(self._folder)
            self._log_cut(Cut(behind.path.name, 0, behind.size, "the log was cut before it"), behind.base_offset)
        cut = Cut(segment.path.name, scanner.position, segment.size - scanner.position, reason)
        self._report.cuts.append(cut)
        segment.cut(scanner.position)
        self._log_cut(cut, scanner.end_offset)

    def _log_cut(self, cut: Cut, offset: int) -> None:
        _log.warning(
            "%s: cut %d bytes off %s at byte %d, from offset %d on: %s%s",
            *(self._report.partition, cut.size, cut.file, cut.position, offset, cut.reason),
            f" (kept in {', '.join(self._report.kept)})" if self._report.kept else "",
        )

    def _has_lost_its_end(self, end_offset: int, later: Sequence[Segment]) -> bool:
        """Return whether a segment whose batches end at `end_offset` had more of them before a power cut.

        A segment is not on the disk yet when the next one begins (`writing.flushing`). A power cut may take whole
        batches from its end, or all of them, and leave the next segment.
        """
        return not self._may_have_gaps and bool(later) and end_offset < later[0].base_offset > self._start_offset

    def _scan(self, segment: Segment, replay: Replay | None = None) -> Scanner:
        """Check batches up to the first bad one, and rebuild the indexes from them."""
        from octavo.log.recovery.checking import Scanner  # imports NumPy, which a clean start does not need

        latest = self._epochs.latest
        scanner = Scanner(
            segment.file,
            segment.base_offset,
            interval=self._index_interval,
            latest_epoch=NO_LEADER_EPOCH if latest is None else latest.epoch,
        )
        segment.clear_indexes()
        on_table = None if replay is None else functools.partial(replay.take, segment, rebuild=True)
        scanner.run(functools.partial(self._take, segment), self._checked, on_table)
        segment.time_index.add(scanner.largest)
        self._report.segments_checked += 1
        return scanner

    def _take(self, segment: Segment, found: Found) -> None:
        if found.offsets:
            segment.offset_index.append_packed(found.offsets)
        if found.times:
            segment.time_index.append_packed(found.times)
        for epoch, start_offset in found.epochs:
            self._epochs.assign(epoch, start_offset)

    def _checked(self, size: int) -> None:
        self._report.bytes_checked += size
        if self._on_progress is not None:
            self._on_progress(Progress(self._report.partition, self._report.bytes_checked, self._bytes_to_check))

    def _end_offset(self, segments: list[Segment]) -> int:
        """Return the log end offset.

        A log without segments starts empty at its start offset. So does a log that ends below its start offset after a
        crash; its segments are removed.
        """
        if segments:
            end_offset = segments[-1].end_offset()[0]
            if end_offset >= self._start_offset:
                return end_offset
            if self._clean:  # only a crash can lose data after a new start offset, so the checkpoint is wrong
                reason = f"the log starts at {self._start_offset} by it, and ends at {end_offset}"
                self._report.ignored.append(IgnoredFile(LOG_START, reason))
                self._start_offset = 0
                return end_offset
            for segment in reversed(segments):
                for path in segment.files():
                    self._remove(path.name)
            segments.clear()
        self._epochs.clear()
        self._replay.begin(self._start_offset, NO_OFFSET, self._now_ms)  # no snapshot describes this log any more
        segments.append(Segment.create(self._storage, self._folder, self._start_offset, created_ms=self._now_ms))
        return self._start_offset


def _has_epoch(segments: Sequence[Segment]) -> bool:
    """Whether the first batch of the newest segment with data has a leader epoch."""
    newest = next((segment for segment in reversed(segments) if segment.size), None)
    if newest is None:
        return False
    header = newest.file.read_at(BATCH_HEADER.size, 0)
    return len(header) == BATCH_HEADER.size and header[MAGIC_AT] == 2 and BATCH_HEADER.read(header).leader_epoch >= 0
