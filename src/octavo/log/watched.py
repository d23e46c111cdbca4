"""Logs that another process writes, Octavo or Apache Kafka: read them without a lock, and without touching them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from octavo.errors import BadDirectory, ErrorCode, FormatError, LogError
from octavo.log.broker_defaults import UNKNOWN, BrokerDefaults
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.config import LogConfig
from octavo.log.epochs import LeaderEpochs
from octavo.log.folder import METADATA_PARTITION, find_partitions
from octavo.log.fork_safe import make_rlock
from octavo.log.identity import check_one_node, read_meta_properties
from octavo.log.names import LEADER_EPOCHS, TopicPartition
from octavo.log.readable import ReadableLog
from octavo.log.reading import Isolation, ReadResult, View, abort_bound
from octavo.log.segment import Segment
from octavo.log.segment_files import NoSegments, SegmentFiles, find_segments
from octavo.log.small_file import CorruptFile
from octavo.log.storage import FileStatus, Storage
from octavo.log.tail import Tail, find_tail
from octavo.log.transactions import FoundTransactions
from octavo.log.txn_index import AbortedEntry
from octavo.log.watch_warnings import warn_of_directories_inside, warn_of_hidden_records, warn_of_unreadable_metadata

if TYPE_CHECKING:
    from octavo.log.metadata import MetadataStore, Topic

T = TypeVar("T")
_ATTEMPTS: Final = 100  # to look at a folder that changes meanwhile


class UnknownPartition(LogError):
    """There is no such topic or partition."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class NotReady(UnknownPartition):
    """The partition has a folder, but no segment yet: it is being made. Whoever looks again finds it."""


class _Seen(NamedTuple):
    """The partition when it was last looked at."""

    view: View
    found: SegmentFiles
    tail: Tail
    high_watermark: int | None  # as it was recorded


class WatchedLog(ReadableLog):
    """The partition as it was when it was last looked at; `refresh` looks again.

    It ends with the last batch that is complete, and whose checksum is right: the bytes of one that is being written
    are not seen. Damage before it is met by who reads it.
    """

    def __init__(
        self,
        storage: Storage,
        folder: Path,
        partition: TopicPartition,
        config: LogConfig,
        checkpoints: WatchedCheckpoints | None = None,
    ) -> None:
        """Raises `NoSegments`, and `BadDirectory` where there is no folder. `checkpoints`: shared with others of it."""
        self.folder: Final = folder
        self.partition: Final = partition
        self.config: Final = config
        self._storage = storage
        self._checkpoints = WatchedCheckpoints(storage, folder.parent) if checkpoints is None else checkpoints
        self._lock = make_rlock()  # of whoever looks
        self._transactions = FoundTransactions()
        self._is_decided = False
        self._seen = self._look(None)
        self._view = self._seen.view

    @property
    def epochs(self) -> LeaderEpochs:
        """Which leader wrote what."""
        return LeaderEpochs(self._storage, self.folder / LEADER_EPOCHS, read_only=True)

    @property
    def view(self) -> View:
        """The log as it was when it was last looked at."""
        return self._view

    @property
    def recorded_high_watermark(self) -> int | None:
        """The high watermark as the directory has it, which may be behind the end; None where it has none at all.

        It is 0 where the directory has those of other partitions only.
        """
        return self._seen.high_watermark

    @property
    def lacks_high_watermark(self) -> bool:
        """Whether the directory has recorded high watermarks of other partitions, but none of this one."""
        return self._checkpoints.lacks_high_watermark(self.partition)

    def identity(self, base_offset: int) -> int:
        """By which the file of a segment is told from one that takes its place."""
        return self._seen.found.files[base_offset].identity

    def path_of(self, base_offset: int) -> Path:
        """The file of a segment: one that is about to take the place of others has not got its name yet."""
        return self.folder / self._seen.found.name(base_offset)

    def refresh(self) -> bool:
        """Look again; whether anything has changed."""
        with self._lock:
            before = self._seen
            self._see()
            return self._seen.view != before.view

    def finds_other_files(self) -> bool:
        """Look again; whether files of segments are others now, or gone: then what was read may be of others."""
        with self._lock:
            before = self._seen.found.files
            self._see()
            now = self._seen.found.files
            return any(base not in now or now[base].identity != file.identity for base, file in before.items())

    def _see(self) -> None:
        self._seen = self._look(self._seen)
        if self._is_decided:
            self._decide()
        else:
            self._view = self._seen.view

    @property
    def last_stable_offset(self) -> int:
        """The offset behind the last that is decided: found in the data, of which all headers are looked at once."""
        self._decide()
        return self._view.last_stable_offset

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the first transaction begins that is not decided; None for none."""
        self._decide()
        return super().first_unstable_offset

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: Isolation = Isolation.HIGH_WATERMARK,
        at_least_one: bool = True,
        segment: int | None = None,
    ) -> ReadResult:
        """As `ReadableLog.read`. What was aborted is found in the data: the writer's index may be behind."""
        if isolation is Isolation.READ_COMMITTED:
            self._decide()
        return super().read(offset, max_bytes, isolation=isolation, at_least_one=at_least_one, segment=segment)

    def _decide(self) -> None:
        """Know which transactions are decided in what was last seen, and in what is seen from now on."""
        with self._lock:
            self._is_decided = False  # so that who looks again meanwhile does not come here
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
                    self._view = view._replace(first_unstable_offset=unstable)
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
        """What the log answers; after another look where the files are no longer what they were."""
        try:
            return ask(self._view)
        except (FileNotFoundError, FormatError):
            self.refresh()
            return ask(self._view)

    # ------------------------------------------------------------------------------------------------------- looking

    def _look(self, before: _Seen | None) -> _Seen:
        """What there is now. A writer may rename and remove files meanwhile: then it is looked at once more."""
        for _ in range(_ATTEMPTS):
            try:
                return self._look_once(before)
            except FileNotFoundError:
                if not self._storage.is_folder(self.folder):
                    raise BadDirectory(self.folder, "there is no such folder, or no longer") from None
        raise BadDirectory(self.folder, "its files change faster than they can be looked at")

    def _look_once(self, before: _Seen | None) -> _Seen:
        recorded = self._checkpoints.high_watermark(self.partition)  # first: the files have all that is below
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
        """The segments, those that are the same as before and others."""
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
    """Whether what was last seen is still there, so that the log has only grown since, or lost its oldest segments.

    Who truncates it takes the last batch. What is written in its place is longer, shorter or has another checksum.
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


class WatchedDirectory:
    """A data directory that is only read. `DataDirectory.open` gives it."""

    def __init__(self, folders: Sequence[Path], storage: Storage) -> None:
        """Raises `BadDirectory` where a folder is missing, or where several are not those of one node."""
        for folder in folders:
            if not folder.is_dir():
                raise BadDirectory(folder, "there is no such folder")
        if len(folders) > 1:
            whose = {folder: read_meta_properties(storage, folder) for folder in folders}
            check_one_node({folder: identity for folder, identity in whose.items() if identity is not None})
        self._checkpoints: Final = {folder: WatchedCheckpoints(storage, folder) for folder in folders}
        self._storage = storage
        self._logs: dict[TopicPartition, WatchedLog] = {}
        self._known: dict[str, tuple[BrokerDefaults, Topic | None]] = {}
        self._problem = ""  # with the metadata, as it was told
        warn_of_directories_inside(folders)

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics by name, as the metadata have them now."""
        return self._read_metadata().topics

    def partitions(self) -> list[TopicPartition]:
        """All partitions that there are now."""
        return sorted(partition for folder in self._checkpoints for partition in find_partitions(folder))

    def log(self, topic: str, partition: int) -> WatchedLog:
        """A partition's log, as it is now. Raises `UnknownPartition`, `NotReady`, and what `WatchedLog` does."""
        wanted = TopicPartition(topic, partition)
        try:
            return self._log(wanted)
        except NoSegments:
            self._logs.pop(wanted, None)  # where it was there, another is made in its place
            raise NotReady(f"{wanted} is being made: it has no segment yet") from None

    def _log(self, wanted: TopicPartition) -> WatchedLog:
        topic, partition = wanted
        log = self._logs.get(wanted)
        if log is not None:
            log.refresh()
            return log
        if wanted.problem is None and wanted != METADATA_PARTITION:
            for folder, checkpoints in self._checkpoints.items():
                path = folder / wanted.folder
                if path.is_dir():
                    log = WatchedLog(self._storage, path, wanted, self._config(topic), checkpoints)
                    warn_of_hidden_records(log)
                    return self._logs.setdefault(wanted, log)
        raise UnknownPartition(f"there is no partition {partition} of a topic {topic!r}")

    def close(self) -> None:
        """Close all files."""
        for log in list(self._logs.values()):
            log.close()
        self._logs.clear()

    def _config(self, topic: str) -> LogConfig:
        """A topic's configuration. The metadata are read for the first topic, and for each that was not in them.

        A log can be read without them: where they cannot be read, that is told once.
        """
        if topic not in self._known:
            try:
                metadata = self._read_metadata()
            except (BadDirectory, FormatError) as error:
                if str(error) != self._problem:
                    self._problem = str(error)
                    warn_of_unreadable_metadata(error)
                return UNKNOWN.config
            defaults = BrokerDefaults(metadata)
            self._known |= {name: (defaults, found) for name, found in {topic: None, **metadata.topics}.items()}
        defaults, found = self._known[topic]
        return defaults.config_of(found).config

    def _read_metadata(self) -> MetadataStore:
        from octavo.log.metadata import MetadataStore

        return MetadataStore.open(list(self._checkpoints), storage=self._storage, read_only=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
