"""A data directory: `DataDirectory`, one or several folders of partitions, with the metadata of their topics.

A directory that is opened for writing is locked as Kafka locks it, so that Kafka and Octavo keep each other out.
Reading needs no lock. The mark of a clean shutdown is removed before the first partition is opened, and written again
when the last one is closed. So a crash in between is noticed.

All partitions are checked before anything is changed. If one of them is damaged or out of place, the directory stays as
it was found.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, overload

from octavo.errors import BadDirectory, Closed, DirectoryLocked, InvalidInput, UnknownPartition
from octavo.log.clock import Clock, monotonic_ms, wall_clock_ms
from octavo.log.closing import Attempts, ClosedByWith
from octavo.log.config.broker_defaults import BrokerDefaults
from octavo.log.config.log_config import LogConfig
from octavo.log.directory.data_folder import DataFolder, abandon, share_broker_epoch
from octavo.log.directory.standalone import check_no_file, check_topic_id
from octavo.log.directory.topics import Topics
from octavo.log.log import Log
from octavo.log.names import COMMIT_JOURNAL, CONSUMER_OFFSETS, METADATA_TOPIC, TopicPartition, check_topic_name
from octavo.log.observer import DirectoryObserver
from octavo.log.ownership.fork_safe import WeakCallbacks, make_rlock
from octavo.log.partition_folders import Paths, check_data_folder, check_place, find_all_partitions, folder_paths
from octavo.log.recovery.recover import Recover, recover_of
from octavo.log.recovery_report import IgnoredFile, OnProgress, RecoveryReport
from octavo.log.storage import DISK, Storage, is_full
from octavo.log.watched.warnings import warn_of_remote_part
from octavo.log.watched.watched_directory import WatchedDirectory

if TYPE_CHECKING:
    from octavo.log.coordinator import Coordinator
    from octavo.log.metadata import MetadataStore, Topic
    from octavo.log.metadata.image import Image
    from octavo.log.staging.area import StagingArea
    from octavo.log.staging.commits import StagedCommits
    from octavo.log.staging.outcome import ExpectedTopic, StagedCommit
    from octavo.log.staging.writer import StagedFile
    from octavo.log.tiers import RemotePart
    from octavo.schemas.metadata.record import MetadataRecord

_LOCK_INTERVAL_S: Final = 0.05


class DataDirectory(ClosedByWith):
    """A directory of topics and their partitions. Get one from `open`; `close` it, or use it in a `with`."""

    def __init__(
        self,
        folders: Sequence[DataFolder],
        metadata: MetadataStore,
        defaults: BrokerDefaults,
        *,
        storage: Storage,
        clock: Clock,
        monotonic: Clock,
        new_id: Callable[[], uuid.UUID],
        on_progress: OnProgress | None,
    ) -> None:
        """Do not call this; use `open`."""
        self._folders = folders
        self._metadata = metadata
        self._storage = storage
        self._clock = clock
        self.monotonic_ms: Final = monotonic  # for what happens after some time
        self.new_id: Final = new_id  # returns ids that nobody has had
        self._defaults: Final = defaults
        self._lock = make_rlock()  # held while topics are created, changed and deleted, and staged batches committed
        self._is_open = True
        self._is_in_charge = metadata.others_decide() is None
        self._topics: Final = Topics(
            folders,
            metadata,
            defaults,
            is_in_charge=self._is_in_charge,
            storage=storage,
            clock=clock,
            on_progress=on_progress,
        )
        self._on_close: Final = WeakCallbacks()  # callbacks of clients that cache whether the directory is open
        self._is_closed = False  # closing is complete; `_is_open` is false as soon as it begins
        self._coordinator: Coordinator | None = None  # made when it is needed
        self._observer: DirectoryObserver | None = None

    @overload
    @staticmethod
    def open(
        paths: Paths,
        *,
        read_only: Literal[False] = ...,
        storage: Storage = ...,
        clock: Clock = ...,
        monotonic: Clock = ...,
        new_id: Callable[[], uuid.UUID] = ...,
        broker_config: Mapping[str, str] | None = ...,
        may_have_gaps: bool = ...,
        even_if_replicated: bool = ...,
        on_progress: OnProgress | None = ...,
        lock_timeout: float = ...,
        node_id: int | None = ...,
        as_broker: bool = ...,
        recover: Recover | str = ...,
    ) -> DataDirectory: ...

    @overload
    @staticmethod
    def open(paths: Paths, *, read_only: Literal[True], storage: Storage = ...) -> WatchedDirectory: ...

    @staticmethod
    def open(
        paths: Paths,
        *,
        read_only: bool = False,
        storage: Storage = DISK,
        clock: Clock = wall_clock_ms,
        monotonic: Clock = monotonic_ms,
        new_id: Callable[[], uuid.UUID] = uuid.uuid4,
        broker_config: Mapping[str, str] | None = None,
        may_have_gaps: bool = False,
        even_if_replicated: bool = False,
        on_progress: OnProgress | None = None,
        lock_timeout: float = 0,
        node_id: int | None = None,
        as_broker: bool = False,
        recover: Recover | str = Recover.REFUSE,
    ) -> DataDirectory | WatchedDirectory:
        """Open a directory for writing, or create it. Several folders form one directory on several disks.

        read_only: only read it, without a lock, even while another process writes to it
        broker_config: the `server.properties` of the Apache Kafka that wrote the directory. Without them, nothing is
            deleted from a topic unless the topic itself sets cleanup.policy and the settings that this policy uses:
            retention.ms and retention.bytes, or delete.retention.ms and min.compaction.lag.ms
        may_have_gaps: if a segment is missing in the middle of a log, open the log as if it had never had that segment
        even_if_replicated: open it even if other nodes of its cluster share control of its partitions, to repair a
            replica by hand. Its logs then keep the recorded high watermark, and topics and transactions cannot be
            changed
        on_progress: called with the progress of checking a partition, after an unclean shutdown
        lock_timeout: how many seconds to wait while another process has the directory open
        node_id: the id of the node that the directory belongs to; a new directory gets it, by default 1
        as_broker: be the broker of the directory: what settings say is done, and what they leave open has Kafka's
            defaults. Only how long records are kept has no default where Apache Kafka has run; see
            `kept_for_want_of_retention`
        recover: what to do if, after an unclean shutdown, damage lies before sound batches. "refuse" raises
            `WouldLoseRecords`, and nothing is cut. "as-kafka" cuts the log at the damage, as Apache Kafka does, and
            keeps the file as it was beside it. What is cut is told to the logger `octavo.log`

        A commit of staged batches that was interrupted is finished; see `commit_staged`.

        Raises `DirectoryLocked`. Raises `OthersDecide` if other nodes share control of its partitions. Raises
        `BadDirectory` and `OSError` if it is not a data directory, or cannot be read or written. Raises
        `WouldLoseRecords` as above, `CommitUnresolved` if an interrupted commit cannot be finished, and `CorruptFile`
        for a damaged journal.
        """
        recover = recover_of(recover)
        several = folder_paths(paths)
        for path in several:
            check_data_folder(path, read_only=read_only)
        if read_only:
            return WatchedDirectory(several, storage)
        from octavo.log.metadata import MetadataStore
        from octavo.log.metadata.store import FIRST_NODE

        folders: list[DataFolder] = []
        deadline = time.monotonic() + lock_timeout
        try:
            for path in several:
                make_folder(path, storage)
                folders.append(lock_folder(path, storage, deadline))
                folders[-1].recover = recover
            find_all_partitions(several)
            share_broker_epoch(folders)
            known = MetadataStore.open(several, storage=storage, read_only=True)
            if node_id is not None and known.node_id not in (None, node_id):
                raise BadDirectory(several[0], f"it belongs to node {known.node_id}, not to node {node_id}")
            if not even_if_replicated:
                known.check_charge()
            known_defaults = BrokerDefaults(known, broker_config, as_broker=as_broker)
            _check(folders, known, known_defaults, storage, may_have_gaps=may_have_gaps)
            has_journal = any((path / COMMIT_JOURNAL).exists() for path in several)
            if has_journal:
                _commits(several, storage).check()
            storage = folders[0].storage  # changes begin here; this storage refuses them in a forked process
            new_node_id = FIRST_NODE if node_id is None else node_id
            metadata = MetadataStore.open(several, storage=storage, read_only=False, new_node_id=new_node_id)
            defaults = BrokerDefaults(metadata, broker_config, as_broker=as_broker)
            directory = DataDirectory(
                folders,
                metadata,
                defaults,
                storage=storage,
                clock=clock,
                monotonic=monotonic,
                new_id=new_id,
                on_progress=on_progress,
            )
            directory._topics.open_logs()
            if has_journal and directory.is_in_charge:
                directory._resolve()
            for part in () if as_broker else directory.remote_parts():  # a broker tells its operator
                warn_of_remote_part(part)
        except BaseException as error:
            abandon(folders, error)
            raise
        return directory

    # --------------------------------------------------------------------------------------------------------- topics

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics in the metadata, by name. The map stays as it is when topics change."""
        return self._topics.complete

    @property
    def topics_version(self) -> int:
        """A number that grows whenever `topics` has changed. Read it first: then no change is missed."""
        return self._topics.version

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        *,
        topic_id: uuid.UUID | None = None,
    ) -> Topic:
        """Create a topic. Raises `InvalidInput`, `InvalidConfig`, `TopicExists`."""
        check_topic_name(name)
        if name == METADATA_TOPIC:  # whose folder has the log of the directory's own metadata
            raise InvalidInput(f"{name} is no topic: it has what is known of all topics")
        if partitions < 1:
            raise InvalidInput(f"a topic has at least one partition, not {partitions}")
        config = {} if config is None else config
        LogConfig.from_properties(config)
        with self._changing():
            return self._topics.create(name, partitions, config, topic_id)

    def add_partitions(self, name: str, count: int) -> Topic:
        """Give a topic more partitions, `count` in all. Raises `UnknownPartition`, and `InvalidInput` for fewer."""
        with self._changing():
            return self._topics.add_partitions(name, count)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and all its records. Raises `UnknownPartition`."""
        with self._changing():
            self._topics.delete(name)
        if CONSUMER_OFFSETS in self.topics:  # not under the lock, because a commit takes this lock last
            self.coordinator.forget_topic(name)

    def set_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change a topic's configuration; None restores a default. Raises `InvalidConfig`, `UnknownPartition`.

        If the topic has partitions but is missing from the metadata, it is added to the metadata.
        """
        with self._changing():
            self._topics.set_config(name, config)

    def lead_all(self) -> None:
        """Make this node the leader of all its partitions that have another or none, with a new leader epoch.

        Apache Kafka leaves partitions without a leader when it is stopped. If other nodes decide, nothing is changed.
        """
        with self._changing():
            self._topics.lead_all()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            self._check_open()
            observer = self._observer
            if observer is not None:
                observer.metadata_changing()
            try:
                yield
            finally:  # a deletion that fails may have deleted much
                if observer is not None:
                    observer.metadata_changed()

    def tell_again(self) -> None:
        """Tell the observer that metadata have changed, unless another thread has the lock: then ask again later."""
        if self._lock.acquire(blocking=False):
            try:
                if self._is_open and self._observer is not None:
                    self._observer.metadata_changed()
            finally:
                self._lock.release()

    def observe(self, observer: DirectoryObserver) -> None:
        """Have `observer` told of every change of metadata and logs from now on. There is only one at a time."""
        with self._lock:
            self._observer = observer
            for folder in self._folders:
                folder.observe(observer)

    def set_broker_config(self, name: str, config: Mapping[str, str | None]) -> None:
        """Change the configuration of a broker by its id, or of all by the name ""; None removes a value.

        It is kept in the metadata, and settings that topics inherit apply at once. Raises `InvalidConfig`.
        """
        with self._changing():
            self._topics.set_broker_config(name, config)

    def set_resource_config(self, resource_type: int, name: str, config: Mapping[str, str | None]) -> None:
        """Keep the configuration of a group, or of another resource that logs know nothing of."""
        with self._changing():
            self._metadata.set_resource_config(resource_type, name, config)

    @property
    def assumed_settings(self) -> Mapping[str, str]:
        """The settings of the broker that nobody has given, and that are not Kafka's defaults."""
        return self._defaults.assumed

    def kept_for_want_of_retention(self) -> dict[str, int]:
        """Return the topics that are kept only because nobody has said for how long.

        For each of them: how many bytes Kafka's default would delete now.
        """
        from octavo.log.directory.by_default import expiring_bytes

        waiting = {name for name, topic in self.topics.items() if self._defaults.awaits_retention(topic)}
        logs = (log for log in self.logs if log.partition.topic in waiting)
        return expiring_bytes(((log.partition, log.config, log.view) for log in logs), self.now_ms())

    def strangers(self) -> dict[TopicPartition, int]:
        """Return the partitions that have folders but are not in the metadata, each with the bytes of its records."""
        known = {(name, number) for name, topic in self.topics.items() for number in topic.partitions}
        strangers = {log.partition: log for log in self.logs if log.partition not in known}
        return {name: sum(segment.size for segment in log.segments) for name, log in sorted(strangers.items())}

    def remote_parts(self) -> list[RemotePart]:
        """Return the offsets of all tiered partitions that are in remote storage only."""
        return [part for log in self.logs if (part := log.remote_part) is not None]

    # -------------------------------------------------------------------------------------------------------- cluster

    @property
    def cluster(self) -> Image:
        """The state of the cluster as of the last record in the metadata. It changes with the next one."""
        return self._metadata.image

    @property
    def metadata_end(self) -> tuple[int, int]:
        """The epoch of the metadata log, and the offset after its last record."""
        return self._metadata.leader_epoch, self._metadata.end_offset

    def change_cluster(self, records: Sequence[MetadataRecord]) -> None:
        """Append records to the metadata that concern the cluster as a whole, such as quotas."""
        with self._changing():
            self._metadata.change_cluster(records)

    # ----------------------------------------------------------------------------------------------------- partitions

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions of the directory."""
        return sorted(partition for folder in self._folders for partition in folder.partitions)

    def log(self, topic: str, partition: int) -> Log:
        """Return a partition's log. Raises `UnknownPartition`."""
        wanted = TopicPartition(topic, partition)
        for folder in self._folders:
            log = folder.log(wanted)
            if log is not None:
                return log
        raise UnknownPartition(f"there is no partition {partition} of a topic {topic!r}")

    @property
    def folders(self) -> list[Path]:
        """The folders of the directory."""
        return [folder.path for folder in self._folders]

    @property
    def logs(self) -> list[Log]:
        """All open logs."""
        return [log for folder in self._folders for log in folder.logs.values()]

    def logs_of(self, topic: str) -> list[Log]:
        """Return the open logs of a topic, whether the metadata have it or not."""
        found = (folder.log(each) for folder in self._folders for each in folder.partitions.of_topic(topic))
        return [log for log in found if log is not None]

    @property
    def reports(self) -> list[RecoveryReport]:
        """The recovery report of each partition: what was found and done when it was opened."""
        return [log.recovery for log in self.logs]

    @property
    def ignored(self) -> list[IgnoredFile]:
        """The checkpoints that could not be used when the directory was opened, and why."""
        return [found for folder in self._folders for found in folder.checkpoints.ignored]

    # --------------------------------------------------------------------------------------------------- coordinators

    @property
    def is_in_charge(self) -> bool:
        """Whether this node alone controls its partitions. If not, `open` was called with `even_if_replicated`."""
        return self._is_in_charge

    @property
    def coordinator(self) -> Coordinator:
        """The coordinator of committed offsets, transactions and producer ids. Raises `OthersDecide`."""
        if not self._is_in_charge:
            self._metadata.check_charge()
        with self._lock:
            if self._coordinator is None:
                from octavo.log.coordinator import Coordinator

                self._coordinator = Coordinator(self)
            return self._coordinator

    def allocate_producer_ids(self, at_least: int = 0) -> range:
        """Allocate a block of producer ids for the coordinator; see `MetadataStore.allocate_producer_ids`."""
        with self._lock:
            self._check_open()
            return self._metadata.allocate_producer_ids(at_least)

    def feature_level(self, name: str) -> int:
        """Return the level of a feature of the cluster, such as `transaction.version`; 0 if it has none."""
        return self._metadata.image.features.get(name, 0)

    @property
    def features(self) -> Mapping[str, int]:
        """The levels of the cluster's features by name."""
        return dict(self._metadata.image.features)

    @property
    def node_id(self) -> int:
        """The id of the node that owns the directory."""
        node_id = self._metadata.node_id
        assert node_id is not None  # opening for writing gives every directory an identity
        return node_id

    @property
    def cluster_id(self) -> str:
        """The id of the node's cluster."""
        cluster_id = self._metadata.cluster_id
        assert cluster_id is not None  # as above
        return cluster_id

    def now_ms(self) -> int:
        """Return the current time of the clock that the directory was opened with."""
        return self._clock()

    # -------------------------------------------------------------------------------------------------- staged batches

    def commit_staged(
        self,
        area: StagingArea,
        files: Iterable[StagedFile],
        *,
        topics: Mapping[str, ExpectedTopic] | None = None,
        keep_offsets: bool = False,
        sync: bool = True,
    ) -> StagedCommit:
        """Append the batches of staged files to their logs, all of them or none, and once; then remove the files.

        A process that dies in the middle leaves a pending commit, and whoever opens the directory next finishes it. If
        the area has an identity that was committed before, nothing is appended. The batches of a partition are appended
        in the order of the files.

        topics: the topics as the tasks assumed them to be; those that are missing are created
        keep_offsets: keep the offsets of the batches, with gaps, as a follower does. They must be at or after the end
            of the log. Nothing else is checked against the topic's configuration, and nothing is rewritten
        sync: have everything on the disk when this returns. Without it, a power cut may lose the records

        Raises `AppendRefused`, `UnknownPartition`, `CorruptFile`, `OthersDecide`, `InvalidInput` and `OSError`; then
        nothing was appended. Raises `CommitPending` if the commit is decided, but could not be finished now.
        """
        staged = [file for file in files if file.chunks]
        with self._lock:
            self._check_open()
            self._metadata.check_charge()
            return self._commits().commit(self, area, staged, topics or {}, keep_offsets=keep_offsets, sync=sync)

    def _resolve(self) -> None:
        """Finish a commit that was interrupted. On a full disk it stays pending, so that something can be deleted."""
        with self._lock:
            try:
                self._commits().resolve(self)
            except OSError as error:
                if not is_full(error):
                    raise

    def _commits(self) -> StagedCommits:
        return _commits([folder.path for folder in self._folders], self._storage)

    # ----------------------------------------------------------------------------------------------------------- files

    def delete_files(self, now_ms: int | None = None) -> int:
        """Remove the folders of deleted topics whose `file.delete.delay.ms` has passed. Returns their number."""
        with self._lock:
            self._check_lock()  # settle nothing: that may fail on a full disk, and this call makes room
            now_ms = self._clock() if now_ms is None else now_ms
            return sum(folder.remove_deleted(now_ms) for folder in self._folders)

    def write_checkpoints(self) -> None:
        """Write the checkpoints: how far each log is flushed, where it starts, and its high watermark."""
        with self._lock:  # once it is closed, the directory may belong to another process
            self._check_lock()
            attempts = Attempts()
            for folder in self._folders:
                with attempts:
                    folder.write_checkpoints()
            attempts.finish()

    # ---------------------------------------------------------------------------------------------------------- close

    @property
    def is_open(self) -> bool:
        """Whether the directory can still be changed."""
        return self._is_open

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process is a fork of the one that opened the directory, and so may only read."""
        return any(folder.lock.is_elsewhere for folder in self._folders)

    def close(self) -> None:
        """Close all logs, write the mark of a clean shutdown, and release the lock.

        Whatever fails, everything is closed afterwards. The first error is raised, with the others as notes. If a log
        could not be closed properly, its folder gets no mark, and its logs are checked when it is opened again. If an
        exception from outside interrupts this call, call it again to finish. In a fork of the process that opened the
        directory nothing is written, and the directory stays open for its owner.
        """
        if self.is_elsewhere:
            self._is_open = False
            self._on_close.call()
            for folder in self._folders:
                folder.close()
            return
        if self._coordinator is not None and self._is_open:  # not with the lock, which others may hold who have groups
            self._coordinator.leave_groups()
        with self._lock:
            if self._is_closed:
                return
            attempts = Attempts()
            with attempts:
                self._topics.settle()
            self._is_open = False
            self._on_close.call()
            with attempts:
                self._metadata.close()
            for folder in self._folders:
                attempts.insist(folder.close)
            self._is_closed = True
            attempts.finish()

    def check_owner(self) -> None:
        """Raise `WrongProcess` or `LockLost` if this process may not write."""
        for folder in self._folders:
            folder.lock.check()

    def check_open(self) -> None:
        """Raise `Closed` if the directory is closed, and the errors of `check_owner`."""
        self.check_owner()
        if not self._is_open:
            raise Closed("the data directory is closed")

    def _check_open(self) -> None:
        """Check that the directory can be changed, and settle an interrupted change. The caller holds the lock."""
        self._check_lock()
        self._topics.settle()

    def _check_lock(self) -> None:
        self.check_open()
        for folder in self._folders:
            folder.lock.check_lock()


def lock_folder(path: Path, storage: Storage, deadline: float) -> DataFolder:
    """Lock a data folder, and wait for that until `deadline`. Raises `DirectoryLocked`."""
    while True:
        try:
            return DataFolder(path, storage)
        except DirectoryLocked:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_LOCK_INTERVAL_S)


def _commits(folders: Sequence[Path], storage: Storage) -> StagedCommits:
    from octavo.log.staging.commits import StagedCommits  # which imports NumPy

    return StagedCommits(folders, storage)


def make_folder(path: Path, storage: Storage) -> None:
    """Create the folder if it is missing. Raises `BadDirectory` if the path is a file, or its parent is missing."""
    check_place(path)
    if not path.exists():
        storage.make_folder(path)
        storage.sync_folder(path.parent)


def _check(
    folders: Sequence[DataFolder],
    metadata: MetadataStore,
    defaults: BrokerDefaults,
    storage: Storage,
    *,
    may_have_gaps: bool,
) -> None:
    """Check all partitions without changing anything. Raises an error if anything is wrong with one of them."""
    for folder in folders:
        for partition, path in folder.partitions.items():
            topic = metadata.topics.get(partition.topic)
            check_topic_id(path, topic, storage)
            folder.check(partition, may_have_gaps=may_have_gaps or defaults.config_of(topic).may_be_compacted)
        for topic in metadata.topics.values():
            for number in topic.partitions:
                check_no_file(folder.path / TopicPartition(topic.name, number).folder)
