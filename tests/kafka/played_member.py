"""The life of a member without partitions: it registers, follows the metadata and sends heartbeats: `PlayedMember`.

    member = PlayedMember(tmp_path, cluster, node_id=3)
    member.run_until(lambda: Event.UNFENCED in member.events)
    member.end()                                     # as a crash would

What it decides and what it keeps on the disk is the real code; only the loop around that is the test's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from octavo.broker.member.controller import ControllerChannel
from octavo.broker.notices import Notices
from octavo.broker.wire import api_keys, member_messages, replica_fetch
from octavo.broker.wire.messages import read_response, write_request
from octavo.cluster.life_cycle import Event, LifeCycle
from octavo.cluster.messages import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    Endpoint,
    Feature,
    Listener,
    MetadataFetchRequest,
)
from octavo.cluster.quorum import (
    AppendMetadata,
    Apply,
    Asked,
    Effect,
    LoadSnapshot,
    NewLeader,
    Observer,
    Stop,
    TruncateMetadata,
    WriteSnapshot,
)
from octavo.errors import ErrorCode
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.metadata.cluster_log import SnapshotId
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.server.peers import PeerConnections
from octavo.server.poller import make_poller
from tests.kafka.cluster import CLUSTER_ID, StockCluster

HEARTBEAT_MS: Final = 200
FEATURES: Final = (
    Feature("metadata.version", 7, 30),
    Feature("kraft.version", 0, 1),
    Feature("group.version", 0, 1),
    Feature("transaction.version", 0, 2),
    Feature("eligible.leader.replicas.version", 0, 1),
    Feature("share.version", 0, 1),
    Feature("streams.version", 0, 1),
)
_PATIENCE_S: Final = 60
_REQUEST_MS: Final = 2000  # controller.quorum.request.timeout.ms
_LIFE_MS: Final = 1000  # less than a session, so that a heartbeat that is lost is sent again
_CREATE_VERSION: Final = 7
_LARGEST: Final = 100 << 20


class PlayedMember:
    """One process of a broker."""

    def __init__(
        self, folder: Path, cluster: StockCluster, node_id: int, *, directory_id: UUID, previous_broker_epoch: int = -1
    ) -> None:
        """Begin with what is in the folder."""
        self.node_id: Final = node_id
        self.directory_id: Final = directory_id
        self.events: Final[list[Event]] = []
        self.leaders: Final[list[NewLeader]] = []
        self.refusals: Final[list[int]] = []  # the controllers' errors, of registrations and heartbeats
        self.metadata: Final = FollowedMetadata(folder)
        bootstrap = [Endpoint("127.0.0.1", each.controller_port) for each in cluster.controllers]
        self.observer: Final = Observer(
            bootstrap,
            end_offset=self.metadata.end_offset,
            last_epoch=self.metadata.last_epoch,
            leader_epoch=self.metadata.leader_epoch,
        )
        listeners = [Listener("PLAINTEXT", "127.0.0.1", 45_000 + node_id)]
        registration = BrokerRegistrationRequest(
            node_id, CLUSTER_ID, uuid4(), listeners, FEATURES, None, [directory_id], previous_broker_epoch
        )
        self.life: Final = LifeCycle(registration, self._now_ms(), heartbeat_ms=HEARTBEAT_MS)
        self._poller: Final = make_poller()
        self.peers: Final = PeerConnections(
            self._poller,
            Notices(self._fail),
            largest_answer=_LARGEST,
            do_elsewhere=self._fail,
            call=self._fail,
            clock_ms=self._now_ms,
        )
        self._channel: Final = ControllerChannel(
            self.peers,
            lambda: self.observer.controller,
            channel="forward",
            client_id=str(node_id),
            clock_ms=self._now_ms,
        )

    @property
    def registration(self) -> RegisterBrokerRecord | None:
        """The broker as the metadata have it."""
        return self.metadata.image.brokers.get(self.node_id)

    @property
    def is_unfenced(self) -> bool:
        """Whether it may lead partitions, as the metadata have it."""
        return self.registration is not None and not self.registration.fenced

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Do what a member does until something is so."""
        deadline = time.monotonic() + _PATIENCE_S
        while not is_done():
            assert time.monotonic() < deadline, (self.events, self.refusals[-5:], self.leaders)
            self._turn()

    def create_topic(self, name: str) -> int:
        """Have whoever is the active controller create a topic on this broker; return its error code."""
        codes: list[int] = []

        def answered(body: memoryview) -> bool:
            [topic] = read_response(api_keys.CREATE_TOPICS, _CREATE_VERSION, body).topics
            if topic.error_code == ErrorCode.NOT_CONTROLLER:
                return False
            codes.append(topic.error_code)
            return True

        assignment = {"partition_index": 0, "broker_ids": [self.node_id]}
        topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": [assignment]}
        body = write_request(api_keys.CREATE_TOPICS, _CREATE_VERSION, {"topics": [topic], "timeout_ms": 20_000})
        self._channel.ask(
            api_keys.CREATE_TOPICS,
            _CREATE_VERSION,
            body,
            answered=answered,
            failed=self._fail,
            timeout_ms=_PATIENCE_S * 1000,
        )
        self.run_until(lambda: bool(codes))
        return codes[0]

    def end(self) -> None:
        """Vanish, as in a crash."""
        self.peers.close()
        self._poller.close()
        self.metadata.close()

    # Inside

    def _turn(self) -> None:
        now_ms = self._now_ms()
        self._take(self.life.tick(now_ms))
        asked = self.observer.next_request(now_ms)
        if asked is not None:
            self._ask_for_metadata(asked)
        if self.observer.controller is not None:
            request = self.life.next_request(now_ms, self.metadata.applied_offset)
            if request is not None:
                self._ask_for_life(self.observer.controller, request)
        times = [time for time in (self.observer.next_ms, self.life.next_ms, self.peers.next_ms) if time is not None]
        wait_ms = max(1.0, min(20.0, *(time - self._now_ms() for time in times)))
        for descriptor, event in self._poller.poll(wait_ms / 1000):
            assert self.peers.handle(descriptor, event)
        self.peers.tick()
        self._channel.tick(self._now_ms())

    def _ask_for_metadata(self, asked: Asked) -> None:
        now_ms, observer = self._now_ms, self.observer
        ids = {"cluster_id": CLUSTER_ID, "broker_id": self.node_id, "directory_id": self.directory_id}
        if isinstance(asked.request, MetadataFetchRequest):
            key, version = api_keys.FETCH, replica_fetch.METADATA_FETCH_VERSION
            body = replica_fetch.write_metadata_fetch(asked.request, **ids)  # type: ignore[arg-type] # of several types

            def answered(data: memoryview) -> None:
                self._carry_out(observer.fetched(replica_fetch.read_metadata_fetch(data), now_ms()))
        else:
            key, version = api_keys.FETCH_SNAPSHOT, member_messages.FETCH_SNAPSHOT_VERSION
            body = member_messages.write_fetch_snapshot(asked.request, **ids)  # type: ignore[arg-type] # as above

            def answered(data: memoryview) -> None:
                self._carry_out(observer.fetched_snapshot(member_messages.read_fetch_snapshot(data), now_ms()))

        self.peers.ask(
            asked.endpoint,
            "metadata",
            key,
            version,
            [body],
            timeout_ms=_REQUEST_MS,
            client_id=f"raft-client-{self.node_id}",
            answered=answered,
            failed=lambda _: observer.failed(now_ms()),
        )

    def _ask_for_life(self, endpoint: Endpoint, request: BrokerRegistrationRequest | BrokerHeartbeatRequest) -> None:
        if isinstance(request, BrokerRegistrationRequest):
            key, version = api_keys.BROKER_REGISTRATION, member_messages.BROKER_REGISTRATION_VERSION
            body = member_messages.write_broker_registration(request)

            def answered(data: memoryview) -> None:
                self._take(self.life.registered(member_messages.read_broker_registration(data), self._now_ms()))
        else:
            key, version = api_keys.BROKER_HEARTBEAT, member_messages.BROKER_HEARTBEAT_VERSION
            body = member_messages.write_broker_heartbeat(request)

            def answered(data: memoryview) -> None:
                self._take(self.life.heard(member_messages.read_broker_heartbeat(data), self._now_ms()))

        self.peers.ask(
            endpoint,
            "life",
            key,
            version,
            [body],
            timeout_ms=_LIFE_MS,
            client_id=str(self.node_id),
            answered=answered,
            failed=lambda _: self.life.failed(self._now_ms()),
        )

    def _take(self, events: Sequence[Event]) -> None:
        if self.life.refusal:
            self.refusals.append(self.life.refusal)
        self.events.extend(events)
        if Event.CAUGHT_UP in events:
            self.life.ready(self._now_ms())  # there are no logs to open

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        metadata, observer = self.metadata, self.observer
        for effect in effects:
            if isinstance(effect, NewLeader):
                self.leaders.append(effect)
                metadata.keep_leader(*effect)
            elif isinstance(effect, WriteSnapshot):
                metadata.write_snapshot(SnapshotId(*effect.snapshot_id), effect.position, effect.data)
            elif isinstance(effect, LoadSnapshot):
                metadata.load_snapshot(SnapshotId(*effect.snapshot_id))
                self._carry_out(observer.loaded(effect.snapshot_id))
            elif isinstance(effect, Apply):
                metadata.apply(effect.end_offset)
            elif isinstance(effect, Stop):
                self._fail(effect.reason)
            else:
                self._change_log(effect)

    def _change_log(self, effect: AppendMetadata | TruncateMetadata) -> None:
        if isinstance(effect, AppendMetadata):
            self.metadata.append(effect.records, effect.leader_epoch)
        else:
            self.metadata.truncate(*effect.diverging_epoch)
        end_offset, last_epoch = self.metadata.end_offset, self.metadata.last_epoch
        self._carry_out(self.observer.moved(end_offset=end_offset, last_epoch=last_epoch, now_ms=self._now_ms()))

    def _now_ms(self) -> int:
        return int(time.monotonic() * 1000)

    def _fail(self, reason: object) -> None:
        raise AssertionError(reason)
