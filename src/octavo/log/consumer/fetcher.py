"""Reads the logs of a directory for a consumer, as its configuration says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from octavo.errors import (
    ConsumerError,
    FormatError,
    InvalidConfig,
    NoOffset,
    NoSegments,
    NotReady,
    OctavoError,
    OffsetOutOfRange,
    UnknownPartition,
)
from octavo.log.clock import wall_clock_ms
from octavo.log.consumer.assignment import Assigned
from octavo.log.consumer.committed_offsets import positions_of
from octavo.log.consumer.config import EARLIEST, LATEST, NONE, ConsumerConfig
from octavo.log.consumer.fetched_records import Deserializer, fetched
from octavo.log.consumer.visible_batches import Visible, visible
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import TopicPartition
from octavo.log.offset_and_metadata import OffsetAndMetadata
from octavo.log.readable_log import ReadableLog, TimestampOffset
from octavo.log.reading import ReadResult
from octavo.log.view import Isolation
from octavo.log.watched.watched_directory import WatchedDirectory
from octavo.log.watched.watched_log import WatchedLog

if TYPE_CHECKING:
    import pyarrow as pa

_PAUSE_S: Final = 0.005  # between two looks at logs that this process writes
_WATCHED_PAUSE_S: Final = 0.03  # between two looks at logs that another process writes


class Fetcher:
    """Fetches the records of one partition after the other."""

    def __init__(
        self,
        data: DataDirectory | WatchedDirectory,
        config: ConsumerConfig,
        deserializers: tuple[Deserializer | None, Deserializer | None],
    ) -> None:
        self._data = data
        self._config = config
        self._deserializers = deserializers
        self._isolation: Final = config.isolation_level
        self._positions = positions_of(data)
        self._logs: dict[TopicPartition, WatchedLog] = {}  # logs of a watched directory
        is_written = isinstance(data, DataDirectory)
        self.pause_s: Final = _PAUSE_S if is_written else _WATCHED_PAUSE_S
        self.now_ms: Final = data.now_ms if isinstance(data, DataDirectory) else wall_clock_ms
        if config.enable_auto_commit and not is_written:
            raise InvalidConfig("enable.auto.commit", True, "in a directory that is only watched it must be false")
        wanted = config.group_id is not None if config.enable_auto_commit is None else config.enable_auto_commit
        self.commits_by_itself: Final = wanted and is_written
        if isinstance(data, DataDirectory) and self._isolation is Isolation.READ_COMMITTED:
            data.coordinator.finish_prepared()

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process is a fork of the one that opened the directory to write."""
        return isinstance(self._data, DataDirectory) and self._data.is_elsewhere

    def check_open(self) -> None:
        """Raise if nothing new can come: the directory is closed, or was opened by the process that forked this one."""
        if isinstance(self._data, DataDirectory):
            self._data.check_open()

    # ---------------------------------------------------------------------------------------------------------- records

    def has_records(self, state: Assigned) -> bool:
        """Whether a partition has records to hand out. Fetches some if there are none."""
        piece = state.fetched
        if piece is not None and not piece.left and piece.following is not None:
            piece = state.fetched = piece.following()
        if piece is not None and piece.left:
            return True
        return self._go_on(state, self._fetch_records)

    def has_columns(self, state: Assigned) -> bool:
        """Whether a partition has Arrow columns to hand out. Fetches some if there are none."""
        return state.arrow is not None or self._go_on(state, self._fetch_columns)

    def _go_on(self, state: Assigned, fetch: Callable[[Assigned, Visible, int], bool]) -> bool:
        """Read on until there is a record that an application may see, or the end."""
        while True:
            part = self._read(state)
            position = state.position
            if part is None or position is None:
                return False
            records = part.records
            seen = visible(records, position, part.aborted_ranges, verify=self._config.check_crcs)
            state.segment = part.segment
            try:
                if seen.data and fetch(state, seen, position):
                    return True
            except FormatError as error:
                error.add_note(f"in {state.partition}, where offset {position} was read")
                raise
            if seen.next_offset == position:
                return False
            state.move(seen.next_offset, part.segment)

    def _fetch_records(self, state: Assigned, seen: Visible, position: int) -> bool:
        found = fetched(
            state.partition,
            seen.data,
            position,
            seen.next_offset,
            verify=self._config.check_crcs,
            deserializers=self._deserializers,
        )
        if not found.left:
            return False
        state.fetched, state.arrow = found, None
        return True

    def _fetch_columns(self, state: Assigned, seen: Visible, position: int) -> bool:
        from octavo.records.arrow.reader import to_arrow

        chunk = next(to_arrow(seen.data, offsets=(position, None), verify=self._config.check_crcs), None)
        if chunk is None:
            return False
        state.fetched, state.arrow = None, chunk
        return True

    def take_columns(self, state: Assigned, count: int | None) -> pa.RecordBatch:
        """Hand out the columns that `has_columns` found."""
        import pyarrow as pa

        assert state.arrow is not None
        chunk = state.arrow if count is None else state.arrow.slice(0, count)
        rest = state.arrow.slice(len(chunk))
        position = int(chunk.column("offset")[-1].as_py()) + 1
        state.go_on(position)
        state.arrow = rest if len(rest) else None
        topic, partition = state.partition
        named = {
            "topic": pa.repeat(pa.scalar(topic, pa.string()), len(chunk)),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), len(chunk)),
        }
        fields = [pa.field("topic", pa.string(), nullable=False), pa.field("partition", pa.int32(), nullable=False)]
        schema = pa.schema([*fields, *chunk.schema])
        return pa.RecordBatch.from_arrays([*named.values(), *chunk.columns], schema=schema)

    def has_enough(self, states: Iterable[Assigned]) -> bool:
        """Whether there is as much to read as `fetch.min.bytes` asks for."""
        total = 0
        for state in states:
            if state.is_paused:
                continue
            if state.is_fetched:
                return True
            try:
                part = self._read(state)
            except (OctavoError, OSError):
                return True  # reading it will raise the error
            total += 0 if part is None else part.size
        return total >= self._config.fetch_min_bytes

    def _read(self, state: Assigned) -> ReadResult | None:
        """Read from a partition's position on; None if there is nothing, or nothing yet."""
        try:
            if state.position is None:
                self.find_position(state)
            while True:
                try:
                    part = self._read_log(state)
                except OffsetOutOfRange:
                    if self._config.auto_offset_reset.where == NONE:
                        raise
                    state.move(self._reset(state.partition))  # the new position may be deleted by then as well
                else:
                    return part if part.size else None
        except NotReady:
            return None

    def _read_log(self, state: Assigned) -> ReadResult:
        log, position = self._log(state.partition), state.position
        assert position is not None
        most = self._config.max_partition_fetch_bytes
        if isinstance(log, WatchedLog):
            with suppress(OffsetOutOfRange):  # raised for the log as it was at the last refresh
                part = log.read(position, most, isolation=self._isolation, segment=state.segment)
                if part.size:
                    return part
            self._refresh(state.partition, log)
        return log.read(position, most, isolation=self._isolation, segment=state.segment)

    # -------------------------------------------------------------------------------------------------------- positions

    def find_position(self, state: Assigned) -> None:
        """Begin at the group's committed offset, or where `auto.offset.reset` says. Raises `NoOffset`."""
        group_id = self._config.group_id
        known = None
        if group_id is not None:
            known = self._positions.committed(group_id, [state.partition])[state.partition]
        if known is not None:
            state.move(known.offset)
            state.committed = known.offset
            state.leader_epoch = known.leader_epoch
            return
        if self._config.auto_offset_reset.where == NONE:
            raise NoOffset(state.partition)
        state.move(self._reset(state.partition))

    def _reset(self, partition: TopicPartition) -> int:
        where, duration_ms = self._config.auto_offset_reset
        if where == EARLIEST:
            return self.start_offset(partition)
        if where == LATEST:
            return self.end_offset(partition)
        return self.offset_since(partition, max(0, self.now_ms() - duration_ms))

    def start_offset(self, partition: TopicPartition) -> int:
        """The first offset of a partition."""
        return self._fresh(partition).start_offset

    def end_offset(self, partition: TopicPartition) -> int:
        """The offset after the last one that this consumer may see."""
        log = self._fresh(partition)
        return log.last_stable_offset if self._isolation is Isolation.READ_COMMITTED else log.high_watermark

    def offset_for_timestamp(self, partition: TopicPartition, timestamp_ms: int) -> TimestampOffset | None:
        """The first visible record with that timestamp or a later one; None if there is none."""
        return self._fresh(partition).offset_for_timestamp(timestamp_ms, isolation=self._isolation)

    def offset_since(self, partition: TopicPartition, timestamp_ms: int) -> int:
        """The offset of the first visible record with that timestamp or a later one, or else the end offset."""
        found = self.offset_for_timestamp(partition, timestamp_ms)
        return self.end_offset(partition) if found is None else found.offset

    # ----------------------------------------------------------------------------------------------------------- groups

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for the group."""
        self._positions.commit(self._group(), offsets)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group."""
        return dict(self._positions.committed(self._group(), list(partitions)))

    def _group(self) -> str:
        if self._config.group_id is None:
            raise ConsumerError("without group.id there is nothing to remember positions by")
        return self._config.group_id

    # ------------------------------------------------------------------------------------------------------------- logs

    def _log(self, partition: TopicPartition) -> ReadableLog:
        """Return a partition's log; in a watched directory, in its state of the last refresh."""
        if isinstance(self._data, DataDirectory):
            return self._data.log(*partition)
        log = self._logs.get(partition)
        if log is None:
            log = self._logs[partition] = self._data.log(*partition)
        return log

    def _fresh(self, partition: TopicPartition) -> ReadableLog:
        """Return a partition's log in its current state."""
        log = self._log(partition)
        if isinstance(log, WatchedLog):
            self._refresh(partition, log)
        return log

    def _refresh(self, partition: TopicPartition, log: WatchedLog) -> None:
        """Refresh a watched log. Raises `NotReady` if the log is being recreated."""
        try:
            log.refresh()
        except NoSegments:
            self._logs.pop(partition, None)
            raise NotReady(f"{partition} is being made: it has no segment yet") from None

    def has_partition(self, partition: TopicPartition) -> bool:
        """Whether the partition exists and has not been deleted."""
        try:
            self._log(partition)
        except UnknownPartition:
            return False
        return True
