"""Logs that another process writes, Octavo or Apache Kafka: read them without a lock, and without touching them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from octavo.errors import BadDirectory, ErrorCode, FormatError, LogError
from octavo.log.checkpoints import Checkpoints
from octavo.log.config import LogConfig
from octavo.log.epochs import LeaderEpochs
from octavo.log.folder import find_partitions
from octavo.log.names import LEADER_EPOCHS, LOG, TopicPartition, base_offset_of
from octavo.log.readable import ReadableLog
from octavo.log.reading import Isolation, ReadResult, View
from octavo.log.segment import Segment
from octavo.log.storage import Storage
from octavo.log.walk import walk
from octavo.records import read_batches

if TYPE_CHECKING:
    from octavo.log.metadata import Topic

_ATTEMPTS: Final = 100  # to look at a folder that changes meanwhile


class UnknownPartition(LogError):
    """There is no such topic or partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class WatchedLog(ReadableLog):
    """The partition as it was when it was last looked at; `refresh` looks again.

    It ends with the last batch that is complete: the bytes of one that is being written are not seen, and what was
    new when it was looked at has been checked against its checksum.
    """

    def __init__(self, storage: Storage, folder: Path, partition: TopicPartition, config: LogConfig) -> None:
        """Raises `BadDirectory` where there is nothing to read."""
        self.folder: Final = folder
        self.partition: Final = partition
        self.config: Final = config
        self._storage = storage
        self._view = self._look(None)

    @property
    def epochs(self) -> LeaderEpochs:
        """Which leader wrote what."""
        return LeaderEpochs(self._storage, self.folder / LEADER_EPOCHS, read_only=True)

    def refresh(self) -> bool:
        """Look again; whether anything has changed."""
        before = self._view
        self._view = self._look(before)
        return self._view != before

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        at_least_one: bool = True,
    ) -> ReadResult:
        """As `Log.read`; looks again where the files are no longer what they were."""
        try:
            return super().read(offset, max_bytes, isolation=isolation, at_least_one=at_least_one)
        except (FileNotFoundError, FormatError):
            if not self.refresh():
                raise
            return super().read(offset, max_bytes, isolation=isolation, at_least_one=at_least_one)

    def close(self) -> None:
        """Close the files."""
        for segment in self._view.segments:
            segment.forget()

    def _look(self, before: View | None) -> View:
        """What there is now. A writer may rename and remove files meanwhile: then it is looked at once more."""
        for _ in range(_ATTEMPTS):
            try:
                return self._look_once(before)
            except FileNotFoundError:
                if not self.folder.is_dir():
                    raise BadDirectory(self.folder, "there is no such folder, or no longer") from None
        raise BadDirectory(self.folder, "its files change faster than they can be looked at")

    def _look_once(self, before: View | None) -> View:
        sizes = {
            base_offset: path.stat().st_size
            for path in self.folder.iterdir()
            if path.name.endswith(LOG) and (base_offset := base_offset_of(path.name)) is not None
        }
        if not sizes:
            raise BadDirectory(self.folder, "there are no segments in this folder")
        known = {} if before is None else {segment.base_offset: segment for segment in before.segments}
        last = max(sizes)
        segments = []
        for base_offset, size in sorted(sizes.items()):
            segment = known.get(base_offset)
            if segment is None or segment.size > size or (segment.size != size and base_offset != last):
                segment = Segment(self._storage, self.folder, base_offset, size=size, created_ms=0)
            segments.append(segment)
        active = segments[-1]
        if before is not None and active is known.get(last) and before.bases[-1] == last and sizes[last] == before.size:
            end_offset, size = before.end_offset, before.size
        else:
            end_offset, size = self._end(active, sizes[last], before)
        checkpoints = Checkpoints(self._storage, self.folder.parent)
        start_offset = max(checkpoints.start_offset(self.partition), segments[0].base_offset)
        high_watermark = checkpoints.high_watermark(self.partition)
        return View(
            tuple(segments),
            tuple(segment.base_offset for segment in segments),
            size,
            min(start_offset, end_offset),
            end_offset,
            end_offset if high_watermark is None else max(start_offset, min(high_watermark, end_offset)),
            0 if before is None else before.generation + (known.get(last) not in (None, active)),
        )

    def _end(self, active: Segment, file_size: int, before: View | None) -> tuple[int, int]:
        """The offset and position behind the last batch that is complete, beginning where the last look ended."""
        active.refresh(file_size)
        if before is not None and before.bases[-1] == active.base_offset and before.size <= file_size:
            end_offset, position = before.end_offset, before.size
        else:
            end_offset, position = active.base_offset, active.last_indexed()
        try:
            for entry in walk(active.file, position, file_size):
                next(read_batches(active.file.read_at(entry.size, entry.position)), None)
                end_offset, position = entry.last_offset + 1, entry.end
        except FormatError:
            pass  # not written yet, or room that was made in advance
        active.size = position
        return end_offset, position


class WatchedDirectory:
    """A data directory that is only read. `DataDirectory.open` gives it."""

    def __init__(self, folders: Sequence[Path], storage: Storage) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise BadDirectory(folder, "there is no such folder")
        self._folders = folders
        self._storage = storage
        self._logs: dict[TopicPartition, WatchedLog] = {}

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by name, as the metadata have them now."""
        from octavo.log.metadata import MetadataStore

        return MetadataStore.open(self._folders, storage=self._storage, read_only=True).topics

    def partitions(self) -> list[TopicPartition]:
        """All partitions that there are now."""
        return sorted(partition for folder in self._folders for partition in find_partitions(folder))

    def log(self, topic: str, partition: int) -> WatchedLog:
        """A partition's log, as it is now. Raises `UnknownPartition` and what `WatchedLog` does."""
        wanted = TopicPartition(topic, partition)
        log = self._logs.get(wanted)
        if log is not None:
            log.refresh()
            return log
        for folder in self._folders:
            path = find_partitions(folder).get(wanted)
            if path is not None:
                known = self.topics.get(topic)
                config = LogConfig() if known is None else LogConfig.from_stored(known.config)
                return self._logs.setdefault(wanted, WatchedLog(self._storage, path, wanted, config))
        raise UnknownPartition(f"there is no partition {partition} of a topic {topic!r}")

    def close(self) -> None:
        """Close all files."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
