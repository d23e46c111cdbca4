"""A broker of the simulation: the decisions of `octavo.cluster`, carried out on logs in memory (`Member`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from octavo.cluster import quorum
from octavo.cluster.follower_effects import Effect
from octavo.cluster.following import Fetcher
from octavo.cluster.isr_changes import IsrChanges
from octavo.cluster.leading import ClusterView, LedPartition
from octavo.cluster.life_cycle import Event, LifeCycle, State
from octavo.cluster.messages import (
    AlterPartitionAnswer,
    BrokerHeartbeatAnswer,
    BrokerRegistrationAnswer,
    BrokerRegistrationRequest,
    FetchAnswer,
    FetchRequest,
    ListedOffset,
    ListOffsetsRequest,
    MetadataFetchAnswer,
    MetadataFetchRequest,
    SnapshotId,
    TopicIdPartition,
)
from octavo.cluster.replicas import Changed, LocalReplicas
from octavo.schemas.metadata.topics import PartitionRecord
from tests.simulation.replication.checks import Replica
from tests.simulation.replication.memory_log import MemoryLog
from tests.simulation.replication.metadata_log import ENDPOINT, Image
from tests.simulation.replication.network import CONTROLLER, TIMEOUT_MS, Reply
from tests.simulation.replication.replica import HostedReplica
from tests.simulation.replication.served_sessions import ServedSessions

if TYPE_CHECKING:
    from tests.simulation.replication.world import World

LAG_MS: Final = 300
HEARTBEAT_MS: Final = 50
METADATA_MS: Final = 150  # the time-out of a Fetch of metadata
PATIENT_MS: Final = 1500  # the time-out of some changes of ISRs


class Member:
    """One broker. Its logs outlive it."""

    def __init__(self, world: World, number: int) -> None:
        self.world: Final = world
        self.number: Final = number
        self.logs: Final = {partition: MemoryLog() for partition in world.partitions}
        self.life_number = 0  # the number of its process
        self.is_up = False
        self.previous_epoch = -1
        self.start()

    def start(self) -> None:
        """Start a process."""
        self.life_number += 1
        self.is_up = True
        incarnation = UUID(int=self.number << 32 | self.life_number)
        registration = BrokerRegistrationRequest(
            self.number, "c", incarnation, (), (), None, (UUID(int=200 + self.number),), self.previous_epoch
        )
        now_ms = self.world.now_ms
        self.life = LifeCycle(registration, now_ms, heartbeat_ms=HEARTBEAT_MS, registration_timeout_ms=1 << 40)
        self.cluster = ClusterView(self.number, -1, {}, LAG_MS)
        self.roles = LocalReplicas(self.number)
        self.replicas = {partition: HostedReplica(self, partition, log) for partition, log in self.logs.items()}
        self.fetchers: dict[int, Fetcher] = {}
        self.sessions = ServedSessions()
        self.changes = IsrChanges(self.number)
        self.image: Image | None = None
        self.offset = -1  # of the last image that has come
        self.is_caught_up = False
        self.metadata: list[tuple[int, Image]] = []  # the metadata log, with epochs
        self.metadata_start = SnapshotId(0, 0)  # the snapshot that the metadata log begins after
        self.snapshot = b""  # what has come of one
        self.observer = quorum.Observer([ENDPOINT])
        self.checked_ms = now_ms

    @property
    def broker_epoch(self) -> int:
        """The epoch of its registration; -1 if there was none yet."""
        return self.life.broker_epoch

    def replica(self, partition: TopicIdPartition) -> Replica:
        """Return the log of a partition."""
        return self.logs[partition]

    def led(self, partition: TopicIdPartition) -> LedPartition | None:
        """Return what the broker knows as the leader of a partition."""
        return self.replicas[partition].led

    @property
    def waits(self) -> int:
        """How many producers wait."""
        return sum(len(replica.waiting) for replica in self.replicas.values())

    def record_of(self, partition: TopicIdPartition) -> PartitionRecord | None:
        """Return what the newest metadata say that were applied here."""
        return None if self.image is None else self.image.partitions.get(partition)

    def stop(self) -> None:
        """Begin to shut down."""
        self._events(self.life.begin_shutdown(self.world.now_ms))

    def kill(self, *, wipe: bool = False) -> None:
        """Have the power go, or the disk."""
        self.is_up = False
        self.previous_epoch = -1
        for replica in self.replicas.values():
            replica.led = None
        for log in self.logs.values():
            if wipe:
                log.wipe()
            else:
                log.lose_power(self.world.random)

    def flush(self) -> None:
        """Have everything on the disk, and the start of what is led move on, sometimes."""
        random = self.world.random
        for replica in self.replicas.values():
            log = replica.log
            if random.random() < 0.3:
                log.flush()
            if replica.led is not None and random.random() < 0.1:
                log.follow_start(random.randint(log.start_offset, log.high_watermark))

    # -------------------------------------------------------------------------------------------------------- requests

    def poll(self) -> None:
        """Send what is to be sent."""
        now_ms = self.world.now_ms
        self._events(self.life.tick(now_ms))
        if not self.is_up:
            return
        self._live(now_ms)
        self._ask_metadata(now_ms)
        self._ask_changes(now_ms)
        for leader, fetcher in self.fetchers.items():
            self._fetch(leader, fetcher)
        if now_ms - self.checked_ms >= LAG_MS // 2:
            self.checked_ms = now_ms
            self._check()

    def _check(self) -> None:
        for replica in self.replicas.values():
            if replica.led is not None:
                replica.take(replica.led.check(self.world.now_ms))

    def _ask(
        self,
        node: int,
        kind: str,
        serve: Callable[[], Any],
        on_answer: Callable[[Any], None],
        on_failure: Callable[[], None],
        *,
        timeout_ms: int = TIMEOUT_MS,
        is_written: bool = False,
    ) -> None:
        """Ask a node. `is_written`: the controller answers when what it has written is committed."""
        served = self.world.when_committed(serve) if is_written else lambda reply: reply(serve())
        self.world.network.ask(self.number, node, kind, served, on_answer, on_failure, timeout_ms)

    def _live(self, now_ms: int) -> None:
        request = self.life.next_request(now_ms, self.offset)
        if request is None:
            return
        controller, world = self.world.controller, self.world
        failed = lambda: self.life.failed(world.now_ms)  # noqa: E731  # as short as its use
        if isinstance(request, BrokerRegistrationRequest):
            serve: Callable[[], Any] = lambda: controller.register(request, world.now_ms)  # noqa: E731  # as above
            self._ask(CONTROLLER, "registration", serve, self._registered, failed, is_written=True)
        else:
            serve = lambda: controller.heartbeat(request, world.now_ms)  # noqa: E731  # as above
            self._ask(CONTROLLER, "heartbeat", serve, self._heard, failed, is_written=True)

    def _registered(self, answer: BrokerRegistrationAnswer) -> None:
        self._events(self.life.registered(answer, self.world.now_ms))
        self.cluster.broker_epoch = self.life.broker_epoch

    def _heard(self, answer: BrokerHeartbeatAnswer) -> None:
        self._events(self.life.heard(answer, self.world.now_ms))

    def _events(self, events: list[Event]) -> None:
        for event in events:
            if event is Event.CAUGHT_UP:
                self.is_caught_up = True
                self._publish()
                self.life.ready(self.world.now_ms)
            elif event is Event.SHUT_DOWN:
                self.is_up = False
                for replica in self.replicas.values():
                    replica.depose()
                    replica.log.flush()
                self.previous_epoch = self.life.clean_epoch

    def _ask_changes(self, now_ms: int) -> None:
        request = self.changes.next_request(self.cluster.broker_epoch, now_ms)
        if request is not None:
            self._ask(
                CONTROLLER,
                "change",
                lambda: self.world.controller.alter_partition(request),
                self._altered,
                lambda: self.changes.failed(self.world.now_ms),
                timeout_ms=self.world.random.choice((TIMEOUT_MS, PATIENT_MS)),
                is_written=True,
            )

    def _altered(self, answer: AlterPartitionAnswer) -> None:
        for change, altered in self.changes.answered(answer, self.world.now_ms).answers:
            replica = self.replicas[change.partition]
            if replica.led is not None:
                replica.take(replica.led.settled(change, altered, self.world.now_ms))

    # -------------------------------------------------------------------------------------------------------- metadata

    def _ask_metadata(self, now_ms: int) -> None:
        asked = self.observer.next_request(now_ms)
        if asked is None:
            return
        request, log, observer, world = asked.request, self.world.controller.log, self.observer, self.world
        failed = lambda: observer.failed(world.now_ms)  # noqa: E731  # as short as its use
        if isinstance(request, MetadataFetchRequest):
            fetched = lambda answer: self._take_metadata(observer.fetched(answer, world.now_ms))  # noqa: E731  # as above
            served = partial(self._serve_metadata, request)
            world.network.ask(self.number, CONTROLLER, "metadata", served, fetched, failed, METADATA_MS)
        else:
            fetched = lambda answer: self._take_metadata(observer.fetched_snapshot(answer, world.now_ms))  # noqa: E731  # as above
            self._ask(CONTROLLER, "metadata", lambda: log.fetch_snapshot(request), fetched, failed)

    def _serve_metadata(self, request: MetadataFetchRequest, reply: Reply) -> None:
        """Have the controller answer when there is something new, or after a while."""
        log = self.world.controller.log
        answer = log.fetch(request)
        is_new = answer != MetadataFetchAnswer(high_watermark=request.high_watermark)
        if is_new:
            reply(answer)
        else:
            self.world.at(self.world.random.randint(10, 60), lambda: reply(log.fetch(request)))

    def _take_metadata(self, effects: Sequence[quorum.Effect]) -> None:
        log, start = self.metadata, self.metadata_start.end_offset
        for effect in effects:
            assert not isinstance(effect, quorum.Stop), effect
            if isinstance(effect, quorum.Apply):
                if effect.end_offset > start:
                    self.offset, self.image = effect.end_offset - 1, log[effect.end_offset - 1 - start][1]
                self._publish()
            elif isinstance(effect, quorum.WriteSnapshot):
                self.snapshot = self.snapshot[: effect.position] + effect.data
            elif isinstance(effect, quorum.LoadSnapshot):
                self._load_snapshot(effect.snapshot_id)
            elif isinstance(effect, quorum.AppendMetadata | quorum.TruncateMetadata):
                if isinstance(effect, quorum.AppendMetadata):
                    log += self.world.controller.log.read(bytes(effect.records))
                else:
                    epoch, end_offset = effect.diverging_epoch
                    own_end = start + sum(each <= epoch for each, _ in log)
                    del log[max(0, min(own_end, end_offset) - start) :]
                last_epoch = log[-1][0] if log else self.metadata_start.epoch
                end_offset = start + len(log)
                self._take_metadata(self.observer.moved(end_offset=end_offset, last_epoch=last_epoch, now_ms=self._now))

    @property
    def _now(self) -> int:
        return self.world.now_ms

    def _load_snapshot(self, snapshot_id: SnapshotId) -> None:
        ((_, self.image),) = self.world.controller.log.read(self.snapshot)
        self.metadata.clear()
        self.metadata_start, self.offset = snapshot_id, snapshot_id.end_offset - 1
        self._take_metadata(self.observer.loaded(snapshot_id))

    def _publish(self) -> None:
        if not self.is_caught_up or self.image is None:
            return
        self.cluster.brokers = self.image.brokers
        topics: dict[UUID, dict[int, PartitionRecord]] = {}
        for partition, record in self.image.partitions.items():
            topics.setdefault(partition.topic_id, {})[partition.partition] = record
        changes = self.roles.update(topics, topics)
        for change in changes.led:
            if change.is_new_epoch:
                self._stop_fetching(change.partition)
            self.replicas[change.partition].lead(change)
        for change in changes.followed:
            self._follow(change)
        self._check()

    def _follow(self, change: Changed) -> None:
        partition, record = change.partition, change.record
        replica = self.replicas[partition]
        replica.follow(change)
        if not change.is_new_epoch:
            return
        self._stop_fetching(partition)
        is_leaving = self.life.state is State.PENDING_CONTROLLED_SHUTDOWN
        if record.leader >= 0 and not (is_leaving and self.number not in record.isr):
            fetcher = self.fetchers.setdefault(record.leader, Fetcher(back_off_ms=50))
            at = replica.position(record.leader_epoch)
            self._carry_out(fetcher, fetcher.follow(partition, at, replica.log.high_watermark))

    def _stop_fetching(self, partition: TopicIdPartition) -> None:
        for fetcher in self.fetchers.values():
            fetcher.forget(partition)

    # ------------------------------------------------------------------------------------------------------- following

    def _fetch(self, leader: int, fetcher: Fetcher) -> None:
        request = fetcher.next_request(self._now)
        if request is None:
            return
        other, epoch = self.world.members[leader], self.cluster.broker_epoch
        assert isinstance(other, Member)
        failed = lambda: fetcher.failed(self._now)  # noqa: E731  # as short as its use
        if isinstance(request, ListOffsetsRequest):
            listed = lambda answer: self._carry_out(fetcher, fetcher.listed(answer, self._now))  # noqa: E731  # as above
            self._ask(leader, "offsets", lambda: other.serve_offsets(request), listed, failed)
        else:
            fetched = lambda answer: self._carry_out(fetcher, fetcher.fetched(answer, self._now))  # noqa: E731  # as above
            self._ask(leader, "fetch", lambda: other.serve_fetch(self.number, epoch, request), fetched, failed)

    def _carry_out(self, fetcher: Fetcher, effects: list[Effect]) -> None:
        for effect in effects:
            self.replicas[effect.partition].carry_out(fetcher, effect)

    # --------------------------------------------------------------------------------------------------------- leading

    def serve_fetch(self, replica: int, replica_epoch: int, request: FetchRequest) -> FetchAnswer:
        """Fetch, of a follower."""
        session = self.sessions.take(replica, request)
        if isinstance(session, int):
            return FetchAnswer(session, 0, {})
        fetched = {
            partition: self.replicas[partition].serve_fetch(replica, replica_epoch, asked)
            for partition, asked in session.partitions.items()
        }
        return session.answer(fetched, is_full=request.session_epoch == 0)

    def serve_offsets(self, request: ListOffsetsRequest) -> Mapping[TopicIdPartition, ListedOffset]:
        """ListOffsets, of a follower."""
        return {
            partition: self.replicas[partition].serve_offset(asked) for partition, asked in request.partitions.items()
        }

    def produce(self, partition: TopicIdPartition, values: list[int]) -> None:
        """Append records with acks=all."""
        self.replicas[partition].produce(values)

    def consume(self) -> None:
        """Show consumers everything that they may see."""
        for replica in self.replicas.values():
            replica.consume()
