"""The logs that a consumer reads: their start and end offsets as it sees them, and reading from a position on."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from octavo.errors import NoSegments, NotReady, OffsetOutOfRange, UnknownPartition
from octavo.log.consumer.assignment import Assigned
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import TopicPartition
from octavo.log.reading.read_view import ReadResult
from octavo.log.reading.readable_log import ReadableLog, TimestampOffset
from octavo.log.view import Isolation
from octavo.log.watched.watched_directory import WatchedDirectory
from octavo.log.watched.watched_log import WatchedLog

_PAUSE_S: Final = 0.005  # between two looks at logs that this process writes
_WATCHED_PAUSE_S: Final = 0.03  # between two looks at logs that another process writes


class ConsumedLogs:
    """The logs of a directory, as a consumer with this isolation level sees them."""

    def __init__(self, data: DataDirectory | WatchedDirectory, isolation: Isolation) -> None:
        self._data: Final = data
        self._isolation: Final = isolation
        self._watched: Final[dict[TopicPartition, WatchedLog]] = {}  # logs of a watched directory
        self._has_prepared = not isinstance(data, DataDirectory) or isolation is not Isolation.READ_COMMITTED
        self.pause_s: Final = _PAUSE_S if isinstance(data, DataDirectory) else _WATCHED_PAUSE_S

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process is a fork of the one that opened the directory to write."""
        return isinstance(self._data, DataDirectory) and self._data.is_elsewhere

    def check_open(self) -> None:
        """Raise if nothing new can come: the directory is closed, or this is a fork of the process that opened it."""
        if isinstance(self._data, DataDirectory):
            self._data.check_open()

    def has_partition(self, partition: TopicPartition) -> bool:
        """Whether the partition exists and has not been deleted."""
        try:
            self._log(partition)
        except UnknownPartition:
            return False
        return True

    # ---------------------------------------------------------------------------------------------------------- offsets

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

    # ------------------------------------------------------------------------------------------------------------ bytes

    def read(self, state: Assigned, max_bytes: int) -> ReadResult:
        """Read from a partition's position on. Raises `OffsetOutOfRange` and `NotReady`."""
        log, position = self._log(state.partition), state.position
        assert position is not None
        if isinstance(log, WatchedLog):
            with suppress(OffsetOutOfRange):  # raised for the log as it was at the last refresh
                part = self._read(log, position, max_bytes, state.segment)
                if part.size:
                    return part
            self._refresh(state.partition, log)
        return self._read(log, position, max_bytes, state.segment)

    def _read(self, log: ReadableLog, position: int, max_bytes: int, segment: int | None) -> ReadResult:
        return log.read(position, max_bytes, isolation=self._isolation, whole_batches=True, segment=segment)

    def _log(self, partition: TopicPartition) -> ReadableLog:
        """Return a partition's log; in a watched directory, in its state of the last refresh."""
        if isinstance(self._data, DataDirectory):
            if not self._has_prepared:  # a decided transaction that a crash left unfinished would hide all that follows
                self._data.coordinator.finish_prepared()
                self._has_prepared = True
            return self._data.log(*partition)
        log = self._watched.get(partition)
        if log is None:
            log = self._watched[partition] = self._data.log(*partition)
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
            self._watched.pop(partition, None)
            raise NotReady(f"{partition} is being made: it has no segment yet") from None
