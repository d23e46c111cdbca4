"""Which offsets of which partitions a query reads: the options applied to the logs as they are.

Logs        the partitions that the options ask for, looked at again whenever they are asked for
SourceLog   one of them: where it begins, and where readers have to stop
resolve     a limit of the options as an offset of each partition
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import BadDirectory, InvalidInput
from octavo.log.names import TopicPartition
from octavo.log.watched import WatchedLog
from octavo.spark.offsets import EARLIEST, LATEST, Offsets, told
from octavo.spark.options import End, Limit, Options
from octavo.spark.partitions import Replica, Replicas, choose, find_partitions

if TYPE_CHECKING:
    from octavo.spark.committed import OpenTransactions

_log = logging.getLogger("octavo.spark")


class SourceLog(NamedTuple):
    """A partition as it is at one moment."""

    replica: Replica
    log: WatchedLog
    start: int
    end: int  # the offset behind the last that may be read

    def offset_at(self, timestamp_ms: int) -> int | None:
        """The first offset with this timestamp or a later one."""
        segments = self.log.segments
        if self.replica.segment is not None:
            segments = tuple(each for each in segments if each.base_offset == self.replica.segment)
        for segment in segments:
            if segment.largest_timestamp_ms() >= timestamp_ms:
                found = segment.find_timestamp(timestamp_ms, self.start)
                return None if found is None or found[0] >= self.end else found[0]
        return None


class OffsetRange(NamedTuple):
    """Offsets of a partition, from `first` up to before `end`."""

    source: SourceLog
    first: int
    end: int


class Logs:
    """The partitions that the options ask for."""

    def __init__(self, options: Options) -> None:
        self._options: Final = options
        self._known: dict[TopicPartition, _Known] = {}

    def look(self, *, must_be_there: bool = True) -> dict[TopicPartition, SourceLog]:
        """All of them as they are now, in order. Raises `BadDirectory`, `InvalidInput`."""
        return self._open(find_partitions(self._options, must_be_there=must_be_there))

    def _open(self, found: Replicas) -> dict[TopicPartition, SourceLog]:
        sources: dict[TopicPartition, SourceLog] = {}
        for partition, replicas in found.items():
            try:
                sources[partition] = self._source(partition, replicas)
            except BadDirectory:
                # A topic that is being made has its folder before its first segment; one that goes, loses that first.
                if len(found) == 1:
                    raise
                _log.info("%s: there is nothing to read yet, or no longer", partition)
        return sources

    def _source(self, partition: TopicPartition, replicas: list[Replica]) -> SourceLog:
        known = self._known.get(partition)
        if known is not None and known.replicas == replicas and len(replicas) == 1:
            known.log.refresh()
        else:
            known = self._known[partition] = _Known(replicas, *choose(replicas), [])
        return _bounded(known, self._options)

    def close(self) -> None:
        """Close all files."""
        for known in self._known.values():
            known.log.close()
        self._known.clear()


class _Known(NamedTuple):
    """A partition that was looked at before."""

    replicas: list[Replica]
    replica: Replica
    log: WatchedLog
    transactions: list[OpenTransactions]  # once somebody has asked for them


def _bounded(known: _Known, options: Options) -> SourceLog:
    replica, log = known.replica, known.log
    start, end = log.start_offset, log.end_offset
    if options.end is End.HIGH_WATERMARK:
        end = log.high_watermark
    if replica.segment is not None:
        bases = [segment.base_offset for segment in log.segments]
        if replica.segment not in bases:
            raise BadDirectory(replica.folder, f"there is no segment {replica.segment} any more")
        number = bases.index(replica.segment)
        start = max(start, replica.segment)
        end = max(start, min([end, *bases[number + 1 : number + 2]]))
    if options.read_committed:
        stable = _transactions(known).last_stable_offset(replica.root.storage(), log, end)
        end = min(end, max(start, stable))
    return SourceLog(replica, log, start, end)


def _transactions(known: _Known) -> OpenTransactions:
    if not known.transactions:
        from octavo.spark.committed import OpenTransactions  # which brings NumPy, and not every query needs it

        known.transactions.append(OpenTransactions())
    return known.transactions[0]


def check_limits(options: Options, partitions: Mapping[TopicPartition, object], *, all_named: bool = True) -> None:
    """Raises `InvalidInput` where a limit names partitions, but not just those that are read.

    `all_named`: nor only some. (For a stream that is restarted that is no matter: it goes on from its checkpoint.)
    """
    for limit in (options.starting, options.ending):
        given = None if limit is None else limit.of_each
        if limit is None or given is None or given.keys() == partitions.keys():
            continue
        if not all_named and given.keys() <= partitions.keys():
            continue
        if limit.offsets is not None:
            raise InvalidInput(
                f"If {limit.option} contains specific offsets, you must specify all TopicPartitions. "
                f"Use -1 for latest, -2 for earliest. Specified: {told(given)} Assigned: {told(partitions)}"
            )
        missing = partitions.keys() - given.keys()
        if (missing and {each.topic for each in missing} - {each.topic for each in given}) or given.keys() - partitions:
            raise InvalidInput(
                f"If {limit.option} contains specific timestamps, you must specify all topics. "
                f"Specified: {told(given)} Assigned: {told(partitions)}"
            )


def resolve(
    limit: Limit, sources: Mapping[TopicPartition, SourceLog], *, starting: bool, latest_if_no_match: bool
) -> Offsets:
    """The offset of each partition that a limit means. Raises `InvalidInput`."""
    offsets: Offsets = {}
    for partition, source in sources.items():
        if limit.timestamp_ms is not None:
            offsets[partition] = _by_time(source, limit.timestamp_ms, starting and not latest_if_no_match)
        elif limit.timestamps is not None:
            timestamp_ms = limit.timestamps.get(partition)
            if timestamp_ms is None:
                offsets[partition] = source.end
            else:
                offsets[partition] = _by_time(source, timestamp_ms, starting and not latest_if_no_match)
        else:
            offset = (limit.offsets or {}).get(partition, EARLIEST) if limit.offset is None else limit.offset
            offsets[partition] = {EARLIEST: source.start, LATEST: source.end}.get(offset, offset)
    return offsets


def _by_time(source: SourceLog, timestamp_ms: int, must_match: bool) -> int:
    found = source.offset_at(timestamp_ms)
    if found is not None:
        return found
    if must_match:
        raise InvalidInput(
            f"No offset matched from request of topic-partition {source.replica.partition} "
            f"and timestamp {timestamp_ms}."
        )
    return source.end


def batch_ranges(options: Options, sources: Mapping[TopicPartition, SourceLog]) -> list[OffsetRange]:
    """What a batch query reads. Raises `InvalidInput`, and `DataLoss` where some of it is no longer there."""
    check_limits(options, sources)
    starts = {partition: source.start for partition, source in sources.items()}
    ends = {partition: source.end for partition, source in sources.items()}
    if options.starting is not None:
        starts = resolve(options.starting, sources, starting=True, latest_if_no_match=options.latest_if_no_match)
    if options.ending is not None:
        ends = resolve(options.ending, sources, starting=False, latest_if_no_match=True)
    ranges = []
    for partition, source in sources.items():
        first, end = starts[partition], ends[partition]
        if first > end:
            raise InvalidInput(
                f"The resolved start offset {first} is greater than the resolved end offset {end} for topic "
                f"{partition.topic} partition {partition.partition}."
            )
        ranges.append(within(options, source, first, end))
    return ranges


def within(options: Options, source: SourceLog, first: int, end: int) -> OffsetRange:
    """A range of offsets, as far as the log has them. Raises `DataLoss`, if that is to fail a query."""
    start = max(first, min(source.start, end))
    stop = max(start, min(end, source.end))
    if start > first:
        lose(options, source.replica.partition, first, start)
    if stop < end:
        lose(options, source.replica.partition, stop, end)
    return OffsetRange(source, start, stop)


class DataLoss(BadDirectory):
    """Offsets that a query is to read are not in the log any more."""

    def __init__(self, partition: TopicPartition, first: int, end: int) -> None:
        super().__init__(str(partition), f"offsets {first} to {end - 1}")
        self.args = (partition, first, end)
        self.partition = partition
        self.first = first
        self.end = end

    def __str__(self) -> str:
        return (
            f"offsets {self.first} to {self.end - 1} of {self.partition} are not in the log, or no longer: "
            "they may have been deleted by retention. If a query should not fail for this, set the option "
            "failOnDataLoss to false"
        )


def lose(options: Options, partition: TopicPartition, first: int, end: int) -> None:
    """Raise `DataLoss`, or tell of it where that is not to fail a query."""
    loss = DataLoss(partition, first, end)
    if options.fail_on_data_loss:
        raise loss
    _log.warning("offsets %d to %d of %s are not in the log, or no longer: going on", first, end - 1, partition)
