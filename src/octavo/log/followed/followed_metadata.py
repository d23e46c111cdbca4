"""The metadata of a cluster on a node that follows its controllers: `FollowedMetadata`, on the disk as Kafka keeps it.

    __cluster_metadata-0/00000000000000000000.log                          batches as the controllers wrote them
    __cluster_metadata-0/00000000000000000042-0000000003.checkpoint        a snapshot of all records below offset 42
    __cluster_metadata-0/quorum-state                                      the newest epoch of the controllers

Records go into the log before they are committed, and may be cut again. They are applied once they are committed:
`apply` replays the log up to an offset. Those who use the metadata see an `image` that is replaced as a whole, so it is
never half-applied, and stays as it was if a record cannot be applied.

When a node starts, nobody has told it yet how far its log is committed. The image then has everything in the log, which
is good enough to open the logs of partitions with. The first `apply` keeps it, or goes back if less is committed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from octavo.errors import AppendRefused, BadDirectory, FormatError
from octavo.log.clock import Clock, wall_clock_ms
from octavo.log.followed.followed_log import open_followed_log
from octavo.log.followed.own_snapshots import MetadataLimits, OwnSnapshots
from octavo.log.followed.snapshots import Snapshots
from octavo.log.log import Log
from octavo.log.metadata.cluster_log import FOLDER, MAX_READ, SnapshotId
from octavo.log.metadata.creation import BOOTSTRAP
from octavo.log.metadata.delta import Delta, everything
from octavo.log.metadata.image import Image, Topic
from octavo.log.metadata.quorum_state import NO_LEADER, QuorumLeader, read_quorum_state, write_quorum_state
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.ownership.owner import Owner
from octavo.log.storage import DISK, Storage
from octavo.log.view import Isolation
from octavo.records import Batch
from octavo.records.control import read_control
from octavo.records.layout import Buffer
from octavo.schemas.metadata.progress import NoOpRecord
from octavo.schemas.metadata.serde import read_metadata

_LIMITS: Final = MetadataLimits()
_BUFFER: Final = 256 << 10
_OFFSET_SIZE: Final = 8  # a batch begins with its first offset


class _Replayed(NamedTuple):
    """An image, and how far the log was replayed for it."""

    image: Image
    topics: SortedMap[str, Topic]
    next_offset: int = 0
    epoch: int = 0  # of the last record
    timestamp_ms: int = 0  # of the last record


class FollowedMetadata:
    """The log of the controllers and what it says. For one thread at a time; `image` and `topics` for any thread."""

    def __init__(
        self,
        folder: Path,
        owner: Owner | None = None,
        *,
        storage: Storage = DISK,
        clock: Clock = wall_clock_ms,
        limits: MetadataLimits = _LIMITS,
    ) -> None:
        """Open the metadata in a data folder, or begin with nothing. `owner`: who holds the lock of that folder.

        limits: when a snapshot is due, and how much is kept

        Raises `BadDirectory` and `CorruptFile` if they cannot be read.
        """
        self.folder: Final = folder / FOLDER
        self._storage = storage
        self._clock: Final = clock
        self._log: Final[Log] = open_followed_log(
            self.folder,
            Owner(folder) if owner is None else owner,
            storage=storage,
            clock=clock,
            segment_bytes=limits.metadata_log_segment_bytes,
            segment_ms=limits.metadata_log_segment_ms,
        )
        try:
            self._snapshots: Final = Snapshots(storage, self.folder)
            self._own: Final = OwnSnapshots(storage, self._snapshots, self._log, limits, clock())
            self._leader = read_quorum_state(storage, self.folder)
            self._is_confirmed = False  # the controllers have said how far the log is committed
            self._unseen = Delta()  # what has changed since the last `apply`
            self._snapshot = self._snapshots.newest
            self._replayed = self._from_snapshot()
            self._fit_log()
            self._applied_offset = self._replayed.next_offset - 1
            self._replayed = self._replay(self._log.end_offset, Delta())
        except BaseException:
            with contextlib.suppress(OSError):
                self._log.close()
            raise

    def _fit_log(self) -> None:
        """Have the log begin where the snapshot ends, if it does not continue the snapshot.

        A power cut may come between a snapshot and the log that follows it. Then the log may even go further, with
        records of an older epoch, which the leader of the snapshot's epoch does not have.
        """
        log, snapshot = self._log, self._snapshot
        start, epoch = (0, 0) if snapshot is None else snapshot
        last_epoch = log.epochs[-1].epoch if log.epochs else epoch
        if not log.start_offset <= start <= log.end_offset or last_epoch < epoch:
            log.restart_at(start)  # what is not in the snapshot can be fetched again

    def _from_snapshot(self) -> _Replayed:
        """Return what the newest snapshot has."""
        snapshot = self._snapshot
        if snapshot is None:
            has_voters = self._snapshots.path(BOOTSTRAP).exists()
            return _Replayed(self._snapshots.load(BOOTSTRAP) if has_voters else Image(), SortedMap())
        image = self._snapshots.load(snapshot)
        return _Replayed(image, image.topics(), snapshot.offset, snapshot.epoch)

    # ---------------------------------------------------------------------------------------------------------- state

    @property
    def image(self) -> Image:
        """The metadata after the last `apply`. It is replaced, and never changed."""
        return self._replayed.image

    @property
    def topics(self) -> SortedMap[str, Topic]:
        """All topics of the image by name."""
        return self._replayed.topics

    @property
    def end_offset(self) -> int:
        """The offset after the last record in the log, committed or not."""
        return self._log.end_offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record in the log, or else of the snapshot; 0 if there is neither."""
        epochs = self._log.epochs
        if epochs and self._log.end_offset > self._log.start_offset:
            return epochs[-1].epoch
        return 0 if self._snapshot is None else self._snapshot.epoch

    @property
    def leader_epoch(self) -> int:
        """The newest epoch of the controllers that this node knows of."""
        return max(self._leader.epoch, self.last_epoch)

    @property
    def applied_offset(self) -> int:
        """The offset of the last record that was applied; -1 if there is none."""
        return self._applied_offset

    # ------------------------------------------------------------------------------------------------------ following

    def keep_leader(self, epoch: int, leader_id: int = NO_LEADER) -> None:
        """Keep an epoch and its leader on the disk. Raises `OSError`."""
        leader = QuorumLeader(epoch, leader_id)
        if leader == self._leader:
            return
        image = self.image
        write_quorum_state(self._storage, self.folder, leader, kraft_version=image.kraft_version, voters=image.voters)
        self._leader = leader

    def append(self, records: Buffer, leader_epoch: int) -> None:
        """Append batches of the leader of this epoch. An incomplete one at the end is left out.

        Raises `BadDirectory` if they are damaged or do not continue the log, and `OSError`. Then nothing is appended.
        """
        head = memoryview(records)[:_OFFSET_SIZE]
        base_offset = int.from_bytes(head)
        if len(head) == _OFFSET_SIZE and base_offset != self._log.end_offset:
            problem = f"a controller has sent metadata of offset {base_offset}, not of {self._log.end_offset}"
            raise BadDirectory(self.folder, problem)
        try:
            self._log.append_as_follower(records, leader_epoch=leader_epoch)
        except AppendRefused as error:
            raise BadDirectory(self.folder, f"a controller has sent metadata that cannot be right: {error}") from None

    def truncate(self, epoch: int, end_offset: int) -> None:
        """Remove what the leader does not have, by what it says: it has `epoch` up to `end_offset`.

        Raises `BadDirectory` if this would remove what was applied, and `OSError`.
        """
        end = min(end_offset, self._log.end_offset)
        if end <= self._applied_offset:
            raise BadDirectory(self.folder, "the controllers have lost metadata that were committed")
        self._log.truncate_to_epoch(epoch, end_offset)
        if self._log.end_offset < self._replayed.next_offset and not self._is_confirmed:
            self._replayed = self._from_snapshot()  # until the next `apply`

    def apply(self, end_offset: int) -> Delta:
        """Apply all records before an offset, which are committed. Returns what has changed since the last call.

        A batch takes effect as a whole, and so does a transaction. Raises `BadDirectory` if a record cannot be applied;
        then the image stays as it was.
        """
        if not self._is_confirmed and end_offset < self._replayed.next_offset:
            self._replayed = self._from_snapshot()
        delta = Delta()
        self._replayed = self._replay(end_offset, delta)
        self._applied_offset = self._replayed.next_offset - 1
        self._unseen.add(delta)
        delta, self._unseen = self._unseen, Delta()
        if self._is_confirmed:
            return delta
        self._is_confirmed = True
        return everything(self.image.topic_ids, self.image.configs)

    # ------------------------------------------------------------------------------------------------------ snapshots

    def write_snapshot(self, snapshot: SnapshotId, position: int, data: Buffer) -> None:
        """Write a part of a snapshot of the leader. Raises `OSError`."""
        self._snapshots.write(SnapshotId(*snapshot), position, data)

    def load_snapshot(self, snapshot: SnapshotId) -> None:
        """Replace the metadata by the snapshot that was written, and the log by an empty one at its end.

        The next `apply` returns what differs. Raises `CorruptFile`; then nothing has changed. Raises `OSError`.
        """
        snapshot = SnapshotId(*snapshot)
        image = self._snapshots.finish(snapshot)
        self._snapshot = snapshot
        self._log.restart_at(snapshot.offset)
        self._own.begin_anew(self._clock())
        self._unseen.add(difference(self.image, image))
        self._replayed = _Replayed(image, image.topics(), snapshot.offset, snapshot.epoch)
        self._applied_offset = snapshot.offset - 1

    @property
    def snapshot_is_due(self) -> bool:
        """Whether it is time to call `write_own_snapshot`."""
        return self._is_confirmed and self._own.is_due(self.image, self._clock())

    def write_own_snapshot(self) -> None:
        """Write a snapshot of what was applied, and remove what it makes superfluous. Raises `OSError`.

        Another thread than the one that applies records may call this; one at a time.
        """
        replayed = self._replayed
        snapshot = SnapshotId(replayed.next_offset, replayed.epoch)
        self._own.write(snapshot, replayed.image, timestamp_ms=replayed.timestamp_ms, now_ms=self._clock())
        if self._snapshot is None or snapshot > self._snapshot:
            self._snapshot = snapshot

    # ------------------------------------------------------------------------------------------------------ replaying

    def _replay(self, end_offset: int, delta: Delta) -> _Replayed:
        """Return the image after all batches that end before an offset."""
        before = self._replayed
        image, next_offset, epoch, timestamp_ms = before.image, before.next_offset, before.epoch, before.timestamp_ms
        reader = self._log.reader(
            next_offset, isolation=Isolation.LOG_END, buffer_size=_BUFFER, max_buffer_size=MAX_READ
        )
        try:
            while reader.offset < end_offset and (batch := next(reader, None)) is not None:
                if batch.last_offset >= end_offset:
                    break
                image = _replay_batch(batch, next_offset, image, before.image, delta)
                next_offset, epoch, timestamp_ms = batch.last_offset + 1, batch.leader_epoch, batch.max_timestamp_ms
                self._own.applied(batch.size)
        except FormatError as error:
            problem = f"the metadata at offset {next_offset} cannot be applied: {error.rule}"
            raise BadDirectory(self.folder, problem) from None
        return _Replayed(image, image.topics(), next_offset, epoch, timestamp_ms)

    def close(self) -> None:
        """Write the log to the disk and close it. Raises `OSError`."""
        self._snapshots.drop_part()
        self._log.close()


def _replay_batch(batch: Batch, first: int, image: Image, shown: Image, delta: Delta) -> Image:
    """Apply the records of a batch from offset `first` on. Returns the image, which is not the one that is `shown`."""
    for record in batch:
        if record.offset < first:
            continue  # it is in the snapshot
        if batch.is_control:
            control = read_control(record)
            image = image.successor(delta) if image is shown else image
            image.replay_control(control)
            continue
        content = read_metadata(record.value)
        if isinstance(content, NoOpRecord):
            continue
        image = image.successor(delta) if image is shown else image
        image.replay(content)
    return image


def difference(before: Image, after: Image) -> Delta:
    """Return what differs between two images."""
    topics: set[UUID] = set()
    for topic_id in {*before.topic_ids, *after.topic_ids}:
        if before.topic(topic_id) != after.topic(topic_id):
            topics.add(topic_id)
    configs = {
        key for key in {*before.configs, *after.configs} if before.configs.get(key, {}) != after.configs.get(key, {})
    }
    return Delta(
        topics,
        configs,
        has_brokers=before.brokers != after.brokers,
        has_features=before.features != after.features,
        has_others=True,
    )
