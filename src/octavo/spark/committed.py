"""Find out whether transactions were committed or aborted, for `read_committed` queries.

`OpenTransactions` finds the last stable offset, below which all transactions are decided. It begins with the newest
producer snapshot that the log's writer left, so that only the headers after it are read. For a stream, the driver keeps
one for each log. For a batch query the workers find the offset, each once for every partition that it reads.

`Outcomes` is for the tasks. If a slice has a batch of a transaction, the task must know how that transaction ended, and
the marker may come long after the end of the slice. So the task reads headers ahead, no further than it has to. If
there are no transactions, it does not read ahead at all.

Both may find damage outside the offsets that the query reads, and a marker may be lost in it. With `onCorruption` =
fail they fail. Otherwise they continue after the damage, and the next marker of the same producer ends the transaction.
A transaction without a marker is never treated as committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from pyspark import TaskContext

from octavo.errors import BadDirectory, CorruptFile, FormatError
from octavo.log.names import SNAPSHOT, base_offset_of, file_name
from octavo.log.producer_state.aborted import AbortedRanges, Decider, TransactionScan
from octavo.log.producer_state.snapshot import read_snapshot
from octavo.log.segment.damage import OnDamage, pass_over, refuse
from octavo.log.segment.header_scan import BlockFile, scan_headers
from octavo.log.storage import File, Storage
from octavo.log.watched.found_transactions import FoundTransactions
from octavo.log.watched.watched_log import WatchedLog
from octavo.records.arrow.selection import Keep
from octavo.records.kernels import scan
from octavo.records.kernels.batch_table import Table
from octavo.records.layout import MAX_INT64, Attributes
from octavo.spark.options import OnCorruption, Options
from octavo.spark.partitions import Replica
from octavo.spark.ranges import report_data_loss
from octavo.spark.slices import Slice

_log = logging.getLogger("octavo.spark")

Truths = npt.NDArray[np.bool_]

_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)
_ATTEMPTS: Final = 100  # the number of attempts to open a file while its folder changes


def _on_damage(mode: OnCorruption) -> OnDamage:
    if mode is OnCorruption.FAIL:
        return refuse
    go_on = pass_over()

    def warn(file: File, error: FormatError, end: int) -> int:
        behind = go_on(file, error, end)
        _log.warning(
            "%s: %d bytes at byte %d are passed over in the search for the ends of transactions: %s",
            file.path,
            behind - error.position,
            error.position,
            error.rule,
        )
        return behind

    return warn


class OpenTransactions:
    """Finds the last stable offset of a log. It remembers how far it has scanned. For one thread at a time."""

    def __init__(self, on_corruption: OnCorruption = OnCorruption.FAIL) -> None:
        self._on_damage: Final = _on_damage(on_corruption)
        self._found: FoundTransactions | None = None

    def last_stable_offset(self, storage: Storage, log: WatchedLog, bound: int) -> int:
        """Return the offset, at most `bound`, below which all transactions are decided.

        Raises `CorruptFile` for damage if `onCorruption` is fail, and `FileNotFoundError` if a file was removed since
        `log` was last refreshed.
        """
        view, found = log.view, self._found
        if found is None or found.generation != view.generation or bound < found.offset:
            found = self._begin(storage, log, view.start_offset, bound) or self._begin_at_start(log)
        elif view.count_before(found.offset + 1) < view.count_before(bound + 1):
            # A new segment may have a producer snapshot: then the rest of the segments before it need not be read.
            found = self._begin(storage, log, found.offset, bound) or found
        self._found = found
        try:
            stable = found.decided_below(view, bound)
        except CorruptFile as damaged:
            if log.finds_other_files():
                raise FileNotFoundError(str(damaged.path)) from None
            raise
        found.forget_aborted()
        return stable

    def _begin(self, storage: Storage, log: WatchedLog, above: int, bound: int) -> FoundTransactions | None:
        """Begin at the newest producer snapshot between two offsets: after `above`, and at most at `bound`.

        Returns None if there is no such snapshot that can be read.
        """
        offsets = (base_offset_of(name) for name in storage.files(log.folder, SNAPSHOT))
        for offset in sorted((each for each in offsets if each is not None and above < each <= bound), reverse=True):
            try:
                entries = read_snapshot(storage, log.folder / file_name(offset, SNAPSHOT))
            except (CorruptFile, FileNotFoundError):
                continue
            firsts = {producer_id: entry.txn_first_offset for producer_id, entry in entries.items()}
            opened = {producer_id: first for producer_id, first in firsts.items() if first >= 0}
            return FoundTransactions(log.view.generation, offset, opened, self._on_damage)
        return None

    def _begin_at_start(self, log: WatchedLog) -> FoundTransactions:
        view = log.view
        if len(view.segments) > 1:
            _log.warning(
                "%s: there is no snapshot of producers that can be used: all %d segments are read in search of "
                "transactions that are open",
                log.folder,
                len(view.segments),
            )
        return FoundTransactions(view.generation, view.start_offset, on_damage=self._on_damage)


def decided_end(options: Options, piece: Slice) -> int:
    """Return the last stable offset of a slice's partition. Each worker finds it once in each stage of a job.

    Raises `CorruptFile` and `BadDirectory`, and `DataLoss` if the partition was deleted and `failOnDataLoss` is set.
    """
    assert piece.undecided_below is not None
    replica = Replica(piece.partition, piece.root, piece.folder_path())
    context = TaskContext.get()
    find = _decided_end.__wrapped__ if context is None else _decided_end
    try:
        return find(-1 if context is None else context.stageId(), replica, piece.undecided_below, options.on_corruption)
    except BadDirectory:
        if replica.has_segments():
            raise
        report_data_loss(options, piece.partition, piece.first_offset, piece.end_offset)
        return piece.first_offset


@lru_cache(maxsize=4096)
def _decided_end(stage: int, replica: Replica, bound: int, on_corruption: OnCorruption) -> int:
    for _ in range(_ATTEMPTS):
        log = replica.open()
        try:
            return OpenTransactions(on_corruption).last_stable_offset(replica.root.storage(), log, bound)
        except FileNotFoundError:
            pass  # a file was removed since the log was opened
        finally:
            log.close()
    raise BadDirectory(replica.folder, "its files change faster than they can be read")


def filter_for(options: Options, file: File, piece: Slice) -> Keep | None:
    """Return the filter for the batches of a slice; None if all batches are to be read."""
    if options.read_committed:
        return Outcomes(options, file, piece).keep
    return None if options.include_control_records else no_control


def no_control(table: Table) -> Truths:
    """Return for each batch in a table of headers whether it is kept: all but control batches."""
    kept: Truths = (table[:, scan.ATTRIBUTES] & _CONTROL == 0) | (table[:, scan.MAGIC] < 2)
    return kept


class Outcomes:
    """The outcomes of the transactions that have batches in a slice."""

    def __init__(self, options: Options, file: File, piece: Slice) -> None:
        on_damage = _on_damage(options.on_corruption)
        self._options: Final = options
        self._piece: Final = piece
        self._ahead: Final = _Ahead(file, piece, on_damage)
        self._tables = self._ahead.tables()
        self._scan: Final = TransactionScan(data_before=piece.end_offset, on_damage=on_damage)
        self._decider: Final = Decider()
        self._aborted: Final = AbortedRanges()

    def keep(self, table: Table) -> Truths:
        """Return for each batch in a table of headers whether it is kept.

        Batches of aborted transactions are dropped, and control batches unless `includeControlRecords` is set. If it
        cannot be found out how a transaction ended, raises `CorruptFile`, `BadDirectory` or `DataLoss`, unless the
        options allow skipping damage or losing data.
        """
        attributes = table[:, scan.ATTRIBUTES]
        new = table[:, scan.MAGIC] == 2
        control = new & (attributes & _CONTROL != 0)
        kept: Truths = np.ones(len(table), bool) if self._options.include_control_records else ~control
        of_transaction = new & ~control & (attributes & _TRANSACTIONAL != 0) & (table[:, scan.PRODUCER_ID] >= 0)
        rows = np.flatnonzero(of_transaction & (table[:, scan.COUNT] != 0))
        producers = table[rows, scan.PRODUCER_ID]
        for producer_id in np.unique(producers).tolist():
            chosen = rows[producers == producer_id]
            base_offset, last_offset = table[chosen[-1], [scan.BASE_OFFSET, scan.LAST_OFFSET]].tolist()
            self._decide(producer_id, base_offset, last_offset)
            kept[chosen] = ~self._aborted.holds_of(producer_id, table[chosen, scan.BASE_OFFSET])
        return kept

    def _decide(self, producer_id: int, base_offset: int, last_offset: int) -> None:
        """Read ahead until it is known how the transaction of this batch ended."""
        opened = self._decider.open
        while self._ahead.offset <= last_offset or opened.get(producer_id, MAX_INT64) <= base_offset:
            if not self._look_ahead():
                first_offset = opened.pop(producer_id, base_offset)
                self._give_up(producer_id, first_offset)
                self._aborted.add(producer_id, first_offset, MAX_INT64)
                return

    def _look_ahead(self) -> bool:
        """Process the markers in the next table of headers. Return False if there are no more headers."""
        for file, table, shift in self._tables:
            self._scan.note_table(file, table, shift)
            self._decider.note_events(self._scan.events)
            for aborted in self._decider.aborted:
                self._aborted.add(*aborted)
            self._decider.aborted.clear()
            return True
        return False

    def _give_up(self, producer_id: int, first_offset: int) -> None:
        """Report a transaction whose marker is not in the log: raise an error, or warn that its data are left out."""
        problem = (
            f"how the transaction ended that producer {producer_id} wrote in at offset {first_offset} is not in the log"
        )
        if self._ahead.lost is not None:
            report_data_loss(self._options, self._piece.partition, *self._ahead.lost)
        elif self._options.on_corruption is OnCorruption.FAIL:
            raise BadDirectory(self._piece.folder, f"{problem}: its marker may have been in a place that is damaged")
        _log.warning("%s: %s: what it wrote from there on is left out", self._piece.folder, problem)


class _Ahead:
    """Reads headers from the beginning of a slice to the end of the log, even if files are replaced meanwhile.

    The file that it is reading stays open. But compaction may merge later segments with others, even with the one that
    is being read. So at the end of a file it looks for the next offset, not for the next file.
    """

    def __init__(self, file: File, piece: Slice, on_damage: OnDamage) -> None:
        self.offset = piece.first_offset  # all headers from the beginning of the slice up to this offset were read
        self.lost: tuple[int, int] | None = None  # the range of offsets that were deleted before they were read
        self._file = file
        self._segment = (piece.base_offset, piece.identity)
        self._position = piece.position
        self._log: WatchedLog | None = None
        self._piece: Final = piece
        self._replica: Final = Replica(piece.partition, piece.root, piece.folder_path())
        self._on_damage: Final = on_damage

    def tables(self) -> Iterator[tuple[File, Table, int]]:
        """Yield tables of headers (see `kernels.scan`), each with its file and the position where its block begins."""
        end: int | None = self._piece.end
        while end is not None:
            file = BlockFile(self._file)
            for table, shift in scan_headers(file, self._position, end, self._on_damage):
                if table[0, scan.LAST_OFFSET] < self.offset:
                    table = table[table[:, scan.LAST_OFFSET] >= self.offset]
                if len(table):
                    self.offset = int(table[-1, scan.LAST_OFFSET]) + 1
                    yield file, table, shift
            self._position = end
            end = self._go_on()

    def _go_on(self) -> int | None:
        """Continue in the next file. Return the position up to which to read it; None at the end of the log."""
        for _ in range(_ATTEMPTS):
            log = self._look()
            number = -1 if log is None else self._number_in(log)
            if log is None or number < 0:
                return self._rest_of_deleted(self.offset + 1 if log is None else log.view.bases[0])
            try:
                return self._enter(log, number)
            except FileNotFoundError:
                pass  # the file was replaced since the log was refreshed
        raise BadDirectory(self._piece.folder, "its files change faster than they can be read")

    def _number_in(self, log: WatchedLog) -> int:
        """Return the number of the segment in which to continue.

        It is the current one as long as that has more bytes, else the one that has the next offset; see
        `segment_portions`. The number is negative if the log now begins after that offset.
        """
        view = log.view
        base_offset, identity = self._segment
        number = view.segment_at(base_offset)
        is_there = view.bases[number] == base_offset and log.identity(base_offset) == identity
        if is_there and view.segment_size(number) > self._position:
            return number
        return view.count_before(self.offset + 1) - 1

    def _look(self) -> WatchedLog | None:
        """Return the log as it is now; None if it was deleted."""
        try:
            if self._log is None:
                self._log = self._replica.open()
            else:
                self._log.refresh()
        except BadDirectory:
            if self._replica.has_segments():
                raise
            return None
        return self._log

    def _rest_of_deleted(self, start_offset: int) -> int | None:
        """Continue in the open file, which can still be read although the log now begins after it."""
        if self._file.size() > self._position:
            return self._file.size()
        self.lost = (self.offset, start_offset)
        return None

    def _enter(self, log: WatchedLog, number: int) -> int | None:
        """Continue in the segment with this number, or in the next one if all of it has been read.

        Returns the position up to which to read; None if there is no next segment.
        """
        view = log.view
        segment = (view.bases[number], log.identity(view.bases[number]))
        if segment == self._segment and view.segment_size(number) <= self._position:
            number += 1
            if number == len(view.bases):
                return None
            segment = (view.bases[number], log.identity(view.bases[number]))
        if segment != self._segment:
            file = view.segments[number].file
            base_offset, identity = segment
            if self._piece.root.storage().identity(file) != identity:
                raise FileNotFoundError(file.path)
            self._file, self._segment, self._position = file, segment, 0
            self.offset = max(self.offset, base_offset)  # the segment may be empty
        return view.segment_size(number)
