"""Make new, valid partitions of damaged ones: `salvage`.

    1. every file of every source is read, and its sound batches are found         survey
    2. the batches of each source are put in the order of their offsets            order
    3. one replica leads, and the others fill what is damaged in it                lineage
    4. the batches are written as segments in a folder beside the target           writing
    5. the log is opened, as after a crash: this checks every batch again, and rebuilds indexes, transaction indexes,
       producer snapshots and leader epochs
    6. the folder gets the name of the target

Until the last step there is no target. Sources are opened for reading only, and no lock is taken.
"""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from octavo.errors import BadDirectory, NoSegments
from octavo.inspect.salvage.cuts import split_at_cuts
from octavo.inspect.salvage.epochs import restore_epochs
from octavo.inspect.salvage.lineage import Replica, assemble
from octavo.inspect.salvage.losses import Losses
from octavo.inspect.salvage.order import put_in_order
from octavo.inspect.salvage.report import PartitionReport, SalvageReport, SourceReport
from octavo.inspect.salvage.run import Run
from octavo.inspect.salvage.sources import (
    PartitionSources,
    Sources,
    check_target,
    checkpointed,
    epochs_of,
    find_sources,
    identity_of,
    segment_files,
    told_of,
    topic_id_of,
)
from octavo.inspect.salvage.survey import Damage, survey
from octavo.inspect.salvage.transactions import doubtful, end_open
from octavo.inspect.salvage.writing import plan_segments, write_segments
from octavo.log.clock import Clock, wall_clock_ms
from octavo.log.files.clean_shutdown import write_mark
from octavo.log.files.leader_epochs import LeaderEpochs
from octavo.log.files.meta_properties import write_meta_properties
from octavo.log.files.partition_metadata import write_topic_id
from octavo.log.files.text_checkpoint import CLEANER, LOG_START, RECOVERY_POINT, REPLICATION, write_offsets
from octavo.log.log import Log
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK, Storage, is_full

OnProgress = Callable[[int, int], None]  # bytes done, and bytes in all

_ROUNDS: Final = 3  # every byte is read from the source, then copied, then checked


def salvage(
    sources: Sequence[Path],
    target: Path,
    *,
    abort_open: bool = False,
    on_progress: OnProgress | None = None,
    clock: Clock = wall_clock_ms,
    storage: Storage = DISK,
) -> SalvageReport:
    """Make `target` of what is sound in the sources: replicas of a partition, or data directories of replicas.

    abort_open: end transactions that have no marker, each with an abort marker at the end of the log
    on_progress: called with the number of bytes done, and that of all bytes

    Raises `BadDirectory` and `InvalidInput` for sources and targets that cannot be used, and `OSError`. If anything is
    raised, there is no target.
    """
    place = target.absolute()  # the target may be the current folder, which is replaced
    check_target(place, sources)
    found = find_sources(sources, target)
    job = _Job(found, abort_open, on_progress, clock, storage)
    with _workshop(place) as workshop:
        result = workshop / "result"
        reports = [job.partition(each, workshop, result) for each in found.partitions]
        if found.are_directories:
            _finish_directory(found, result, job, storage)
        else:
            result /= found.partitions[0].partition.folder
        storage.sync_folder(result)
        for report in reports:
            report.target = target / report.partition if found.are_directories else target
        storage.rename(result, place)
        storage.sync_folder(place.parent)
    return SalvageReport(reports)


@contextmanager
def _workshop(target: Path) -> Iterator[Path]:
    """Make a folder beside the target, on the same file system, and remove it with what is left in it."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.salvage-", dir=target.parent))
    try:
        (folder / "result").mkdir()
        yield folder
    except OSError as error:
        problem = _problem(error)
        if problem is None:
            raise
        raise BadDirectory(target, problem) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _problem(error: OSError) -> str | None:
    """Return what is wrong with the place of the target, if an error says that; None for other errors."""
    if is_full(error):
        return "there is not enough room for the result: the disk is full, or a quota is exceeded"
    if error.errno == errno.EFBIG:
        return "a file of the result would be larger than this process may write (ulimit -f), or its file system allows"
    if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
        return "something was put there meanwhile, perhaps by another salvage, and stays as it is"
    return None


class _Job:
    """One salvage, partition by partition."""

    def __init__(
        self, found: Sources, abort_open: bool, on_progress: OnProgress | None, clock: Clock, storage: Storage
    ) -> None:
        self.end_offsets: dict[TopicPartition, int] = {}
        self.start_offsets: dict[TopicPartition, int] = {}
        self._abort_open = abort_open
        self._on_progress = on_progress
        self._clock = clock
        self._storage = storage
        self._files = {
            folder: segment_files(folder, number)
            for each in found.partitions
            for number, folder in enumerate(each.folders)
        }
        if not found.are_directories and not any(files.logs or files.swaps for files in self._files.values()):
            raise NoSegments(found.folders[0])
        self._done = 0
        self._total = _ROUNDS * sum(file.size for files in self._files.values() for file in (*files.logs, *files.swaps))

    def _advance(self, size: int) -> None:
        self._done += size
        if self._on_progress is not None:
            self._on_progress(min(self._done, self._total), self._total)

    def partition(self, sources: PartitionSources, workshop: Path, result: Path) -> PartitionReport:
        """Salvage one partition into a folder of `result`."""
        partition, folders = sources
        topic_id = topic_id_of(folders)
        expected = self._done + _ROUNDS * sum(
            file.size for folder in folders for file in (*self._files[folder].logs, *self._files[folder].swaps)
        )
        replicas = [self._read(folder, number, partition) for number, folder in enumerate(folders)]
        leader, chain, others = assemble(replicas)
        losses = Losses(chain, leader, replicas, others)
        folder = workshop / "building" / partition.folder
        folder.mkdir(parents=True)
        segments = plan_segments(chain.runs, leader)
        write_segments(self._storage, folder, segments, self._advance)
        if topic_id is not None:
            write_topic_id(self._storage, folder, topic_id)
        report = PartitionReport(str(partition), folder)
        report.lost, report.gaps, report.damage = losses.lost, losses.gaps, losses.damage
        report.left_out, report.restored = losses.left_out, losses.restored
        report.sources = [_source_report(replica, leader) for replica in replicas]
        report.batches = sum(run.count for run in chain.runs)
        report.bytes = sum(run.size for run in chain.runs)
        report.doubtful_transactions = doubtful(folder, losses.lost)
        self._open(folder, report, report.bytes + sum(len(segment.filler) for segment in segments))
        self._note_start(partition, leader, report)
        self._storage.rename(folder, result / partition.folder)
        shutil.rmtree(folder.parent)
        self._advance(expected - self._done)
        return report

    def _read(self, folder: Path, number: int, partition: TopicPartition) -> Replica:
        """Read one source of a partition, and put its batches in order."""
        files = self._files[folder]
        damage: list[Damage] = []
        runs: list[Run] = []
        is_compacted = checkpointed(folder, CLEANER, partition) is not None
        for file in files.logs:
            surveyed = survey(file, self._advance)
            runs += surveyed.runs
            damage += surveyed.damage
            is_compacted |= surveyed.has_thinned
        extra = [run for file in files.swaps for run in survey(file, self._advance).runs]
        chain, left_out = put_in_order(runs, extra, min((file.named for file in files.logs), default=0))
        epochs = epochs_of(folder)
        restore_epochs(chain, LeaderEpochs.of(epochs))
        if not is_compacted:
            divided = split_at_cuts(chain)
            is_compacted, chain = divided is None, divided or chain
        told = told_of(folder, partition, epochs)
        return Replica(
            number, folder, files.logs, chain, damage, left_out, epochs, is_compacted, told, ignored=files.ignored
        )

    def _open(self, folder: Path, report: PartitionReport, size: int) -> None:
        """Open the new log as after a crash, which rebuilds what is not in the segments, and close it again."""
        done = 0

        def advance(checked: int) -> None:
            nonlocal done
            self._advance(checked - done)
            done = checked

        log = Log.open(
            folder,
            may_have_gaps=True,
            storage=self._storage,
            clock=self._clock,
            on_progress=lambda progress: advance(progress.bytes_done),
        )
        try:
            recovery = log.recovery
            if recovery.cuts or recovery.damaged or recovery.removed or recovery.bytes_checked != size:
                raise BadDirectory(report.sources[0].path, f"a source was changed while it was read ({recovery})")
            report.open_transactions = end_open(log, abort=self._abort_open, now_ms=self._clock())
            if report.open_transactions and not self._abort_open:
                report.read_committed_stops_at = report.open_transactions[0].first_offset
            report.segments = len(log.segments)
            report.start_offset, report.end_offset = log.start_offset, log.end_offset
        finally:
            log.close()

    def _note_start(self, partition: TopicPartition, leader: Replica, report: PartitionReport) -> None:
        start = checkpointed(leader.folder, LOG_START, partition)
        if start is not None and report.start_offset < start <= report.end_offset:
            report.log_start_offset = self.start_offsets[partition] = start
        self.end_offsets[partition] = report.end_offset


def _source_report(replica: Replica, leader: Replica) -> SourceReport:
    return SourceReport(
        replica.folder,
        replica is leader,
        replica.last_epoch,
        replica.end_offset,
        replica.parts_after,
        replica.ignored,
    )


def _finish_directory(found: Sources, result: Path, job: _Job, storage: Storage) -> None:
    """Write what a data directory has beside its partitions: its identity, checkpoints, and the clean-shutdown mark."""
    identity = next((known for folder in found.folders if (known := identity_of(folder)) is not None), None)
    if identity is not None:
        write_meta_properties(storage, result, identity)
    write_offsets(
        storage,
        {
            result / RECOVERY_POINT: job.end_offsets,
            result / LOG_START: job.start_offsets,
            result / REPLICATION: job.end_offsets,
        },
    )
    write_mark(storage, result)
