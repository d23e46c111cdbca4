"""Decide which offsets of which partitions a query reads, from the options and the current logs.

Logs        the partitions that the options ask for; `look` reads their folders again
SourceLog   one partition: where it begins, and where readers have to stop
resolve     translates a limit in the options to an offset of each partition
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final, NamedTuple, TypeVar

from octavo.errors import BadDirectory, DataLoss, InvalidInput
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.names import TopicPartition
from octavo.log.tiers import RemotePart
from octavo.log.watched.remote_parts import tiered_topics
from octavo.log.watched.watched_log import WatchedLog
from octavo.spark.limits import MAX_TIMESTAMP, check_named
from octavo.spark.offsets import EARLIEST, LATEST, Offsets
from octavo.spark.options import End, Limit, OnCorruption, Options
from octavo.spark.partitions import Place, Replica, find_partitions
from octavo.spark.replicas import Clusters, ReplicaLog, ReplicaLogs
from octavo.spark.threads import in_threads
from octavo.spark.times import largest_timestamp_ms, offset_at

_log = logging.getLogger("octavo.spark")

_ATTEMPTS: Final = 10  # the number of attempts to plan while a folder changes

T = TypeVar("T")


class SourceLog(NamedTuple):
    """A partition as it was at one moment: its log, and the offsets that a query may read."""

    replica: Replica
    log: WatchedLog
    start: int
    end: int  # the offset after the last one that may be read
    undecided_below: int | None = None  # set if tasks must find the last stable offset: its upper bound
    remote: RemotePart | None = None  # what of a tiered partition is not here

    @property
    def earliest(self) -> int:
        """The first offset of the partition, wherever it is kept."""
        return self.start if self.remote is None else min(self.start, self.remote.first)

    def offset_at(self, timestamp_ms: int, *, skips: bool) -> int | None:
        """Find the first offset with this timestamp or a later one.

        Raises `CorruptFile` for damage, unless `skips` is set.
        """
        segments = [segment for segment in self.log.view.segments if self.replica.reads(segment.base_offset)]
        if timestamp_ms == MAX_TIMESTAMP:
            timestamp_ms = largest_timestamp_ms(segments, skips=skips)
            if timestamp_ms < 0:
                return None
        found = offset_at(segments, timestamp_ms, self.start, skips=skips)
        return None if found is None or found >= self.end else found


Sources = Mapping[TopicPartition, SourceLog]


class OffsetRange(NamedTuple):
    """Offsets of a partition, from `first` up to but not including `end`."""

    source: SourceLog
    first: int
    end: int


class Logs:
    """The partitions that the options ask for. Their logs stay open from one look to the next."""

    def __init__(self, options: Options, *, decides: bool) -> None:
        """Open nothing yet: `look` finds and opens the logs.

        `decides`: for `read_committed`, `look` finds the last stable offset of each log; otherwise tasks find it.
        """
        self._options: Final = options
        self._decides: Final = decides
        self._known: dict[TopicPartition, _Known] = {}
        self._checkpoints: Final[dict[Place, WatchedCheckpoints]] = {}
        self._clusters: Final = Clusters()
        self._tiered: Final = cache(tiered_topics)  # by the data directory
        self.empty: frozenset[TopicPartition] = frozenset()  # partitions without segments at the last look

    def look(self, *, must_be_there: bool = True) -> Sources:
        """Return all partitions that have segments, as they are now, sorted. Raises `BadDirectory`, `InvalidInput`."""
        found = find_partitions(self._options, must_be_there=must_be_there)
        self._clusters.check(found)
        for partition in self._known.keys() - found.keys():
            self._known.pop(partition).replicas.close()
        known = [
            (self._known.setdefault(partition, _Known(self._checkpoints)), found[partition]) for partition in found
        ]
        sources = in_threads(lambda each: each[0].look(each[1], self._options, self._decides, self._is_tiered), known)
        looked = dict(zip(found, sources, strict=True))
        self.empty = frozenset(partition for partition, source in looked.items() if source is None)
        if must_be_there and found and len(self.empty) == len(found):
            raise BadDirectory(found[min(found)][0].folder, "there are no segments in this folder")
        return {partition: source for partition, source in looked.items() if source is not None}

    def _is_tiered(self, replica: Replica) -> bool | None:
        """Return whether a topic is tiered, if the metadata beside it tell."""
        topics = self._tiered(replica.folder.parent) if replica.root.is_local else None
        return None if topics is None else replica.partition.topic in topics

    def plan(self, make: Callable[[Sources], T], sources: Sources | None = None, *, must_be_there: bool = True) -> T:
        """Call `make` with the partitions as they are now, or with `sources` from an earlier look.

        If a file is removed meanwhile, look again and call `make` again.
        """
        for _ in range(_ATTEMPTS):
            try:
                return make(self.look(must_be_there=must_be_there) if sources is None else sources)
            except FileNotFoundError as error:
                gone = error
                sources = None
        raise BadDirectory(str(gone.filename or gone), "files go faster than they can be looked at")

    def close(self) -> None:
        """Close all files."""
        for known in self._known.values():
            known.replicas.close()
        self._known.clear()


class _Known:
    """The state of a partition that is kept from one look to the next."""

    def __init__(self, checkpoints: dict[Place, WatchedCheckpoints]) -> None:
        self.replicas: Final = ReplicaLogs(checkpoints)
        self._has_told = False

    def look(
        self,
        replicas: list[Replica],
        options: Options,
        decides: bool,
        is_tiered: Callable[[Replica], bool | None],
    ) -> SourceLog | None:
        """Return the partition as it is now; None if it has no segments yet, or no longer."""
        opened = self.replicas.look(replicas)
        if opened is None:
            return None
        self._tell_of_end(opened.log, options)
        source = _bounded(opened, options, decides)
        if opened.replica.segments is not None:  # just these are wanted
            return source
        return source._replace(remote=opened.log.remote_part(lambda: is_tiered(opened.replica)))

    def _tell_of_end(self, log: WatchedLog, options: Options) -> None:
        """Warn once if the recorded high watermark is beyond the log end offset, or if none is recorded."""
        recorded = log.recorded_high_watermark
        if recorded == 0 < log.end_offset and options.end is End.HIGH_WATERMARK and not self._has_told:
            self._has_told = True
            _log.warning(
                "%s: the directory has no high watermark of it, so nothing is read; with end = logEnd it is",
                log.partition,
            )
        if self._has_told or recorded is None or recorded <= log.end_offset:
            return
        log.refresh()  # the high watermark may have been recorded after the log end offset was read
        if recorded > log.end_offset:
            self._has_told = True
            _log.warning(
                "%s: the directory recorded %d as high watermark, but the log ends at %d",
                log.partition,
                recorded,
                log.end_offset,
            )


def _bounded(opened: ReplicaLog, options: Options, decides: bool) -> SourceLog:
    replica, log = opened.replica, opened.log
    start, end = log.start_offset, log.end_offset
    if options.end is End.HIGH_WATERMARK:
        end = log.high_watermark
    visible = end
    if replica.segments is not None:
        view = log.view
        numbers = [number for number, base_offset in enumerate(view.bases) if replica.reads(base_offset)]
        if not numbers:
            raise BadDirectory(replica.folder, f"there is no segment {min(replica.segments)} any more")
        start = max(start, view.bases[numbers[0]])
        end = max(start, min(end, replica.offset_after(view, numbers[-1])))
    if options.read_committed and decides:
        end = min(end, max(start, opened.last_stable_offset(visible, options.on_corruption)))
    return SourceLog(replica, log, start, end, visible if options.read_committed and not decides else None)


def resolve(limit: Limit, options: Options, sources: Sources, *, starting: bool) -> Offsets:
    """Translate a limit to an offset of each partition.

    Raises `InvalidInput`, and `CorruptFile` for damage if `onCorruption` is fail.
    """
    must_match = starting and not options.latest_if_no_match
    skips = options.on_corruption is not OnCorruption.FAIL

    def offset_of(partition: TopicPartition) -> int:
        source = sources[partition]
        timestamp_ms = limit.timestamp_ms if limit.timestamps is None else limit.timestamps[partition]
        if timestamp_ms is not None and timestamp_ms not in (EARLIEST, LATEST):
            if source.remote is not None:  # the offset may be there
                report_data_loss(options, partition, source.remote.first, source.remote.end, str(source.remote))
            return _by_time(source, timestamp_ms, must_match, skips)
        offset = timestamp_ms
        if offset is None:
            offset = limit.offset if limit.offsets is None else limit.offsets[partition]
        assert offset is not None
        return {EARLIEST: source.earliest, LATEST: source.end}.get(offset, offset)

    return dict(zip(sources, in_threads(offset_of, sources), strict=True))


def _by_time(source: SourceLog, timestamp_ms: int, must_match: bool, skips: bool) -> int:
    found = source.offset_at(timestamp_ms, skips=skips)
    if found is not None:
        return found
    if must_match:
        raise InvalidInput(
            f"No offset matched from request of topic-partition {source.replica.partition} "
            f"and timestamp {timestamp_ms}."
        )
    return source.end


def batch_ranges(options: Options, sources: Sources) -> list[OffsetRange]:
    """Return the ranges that a batch query reads. Raises `InvalidInput`, and `DataLoss` if offsets are missing."""
    check_named(options, sources)
    starting = options.starting or Limit("startingOffsets", offset=EARLIEST)
    ending = options.ending or Limit("endingOffsets", offset=LATEST)
    starts = resolve(starting, options, sources, starting=True)
    ends = resolve(ending, options, sources, starting=False)
    ranges = []
    for partition, source in sources.items():
        first, end = starts[partition], ends[partition]
        if first <= end:
            ranges.append(clip_to_log(options, source, first, end))
        elif _is_fixed(starting, partition) and _is_fixed(ending, partition):
            raise InvalidInput(
                f"The resolved start offset {first} is greater than the resolved end offset {end} for topic "
                f"{partition.topic} partition {partition.partition}."
            )
        else:  # the connector treats this as an empty range: at this point, earliest and latest are not yet numbers
            _log.warning("%s: there is nothing from offset %d on, the log ends at %d", partition, first, end)
    return ranges


def _is_fixed(limit: Limit, partition: TopicPartition) -> bool:
    """Whether the limit is an offset or a timestamp, rather than earliest or latest."""
    return limit.offset is None and (limit.offsets is None or limit.offsets[partition] >= 0)


def clip_to_log(options: Options, source: SourceLog, first: int, end: int) -> OffsetRange:
    """Limit a range to the offsets that the log has.

    Raises `DataLoss` if some are missing and `failOnDataLoss` is set.
    """
    start = max(first, min(source.start, end))
    stop = max(start, min(end, source.end))
    if start > first:
        report_start_loss(options, source, first, start)
    if stop < end:
        report_data_loss(options, source.replica.partition, stop, end)
    return OffsetRange(source, start, stop)


def report_start_loss(options: Options, source: SourceLog, first: int, end: int) -> None:
    """Report that offsets before the start of what can be read are missing, as `report_data_loss` does."""
    remote = source.remote
    reason = None if remote is None or end <= remote.first else str(remote)
    report_data_loss(options, source.replica.partition, first, end, reason)


def report_data_loss(
    options: Options, partition: TopicPartition, first: int, end: int, reason: str | None = None
) -> None:
    """Raise `DataLoss` if `failOnDataLoss` is set, else log a warning."""
    loss = DataLoss(partition, first, end, reason)
    if options.fail_on_data_loss:
        raise loss
    if reason is not None:
        _log.warning("%s Going on", reason)
    else:
        _log.warning("offsets %d to %d of %s are not in the log, or no longer: going on", first, end - 1, partition)
