"""Broker 1 of a cluster of three, whose metadata and followers are in the hands of the test."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from octavo.broker.answers import Answer, Later, Wait
from octavo.broker.broker import Broker
from octavo.broker.cluster_image import ListenerImage, Node, PartitionImage
from octavo.broker.config import read_settings
from octavo.broker.member.leaders import Leaders, Led, min_isr
from octavo.broker.wire.api_keys import FETCH, PRODUCE
from octavo.broker.wire.messages import Struct
from octavo.cluster.leading import ClusterView, IsrChange
from octavo.cluster.messages import TopicIdPartition
from octavo.cluster.replicas import Changed
from octavo.log.append.readiness import prepare
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata.sorted_map import SortedMap
from octavo.records import BatchBuilder
from octavo.schemas.metadata.topics import PartitionRecord
from tests.simulation.machine import Connection
from tests.simulation.wire import Ask
from tests.unit.cluster.leaders import EPOCHS, broker
from tests.unit.log.logs import TIME_MS, make_batch

TOPIC: Final = "t"
EPOCH: Final = 5


class Asked:
    """A request that was sent, and its answer, once there is one."""

    def __init__(self, ask: Ask) -> None:
        self._ask: Final = ask
        self._answer: Answer = None
        self._is_answered = False

    def take(self, answer: Answer) -> None:
        self._answer, self._is_answered = answer, True

    def is_answered(self) -> bool:
        return self._is_answered

    @property
    def answer(self) -> Struct:
        assert self._is_answered
        assert isinstance(self._answer, list)
        return self._ask.read(self._answer)

    @property
    def partition(self) -> Struct:
        """The only partition of the answer to Produce or Fetch."""
        [topic] = self.answer.responses
        [only] = topic.partition_responses if self._ask.api_key == PRODUCE else topic.partitions
        assert isinstance(only, Struct)
        return only


class MemberBroker:
    """The broker. What other threads would do is done at once."""

    def __init__(self, folder: Path, config: dict[str, str] | None = None, *, partitions: int = 2) -> None:
        prepare()
        self.directory: Final = DataDirectory.open(folder / "data", node_id=1)
        self.topic_id: Final[UUID] = self.directory.create_topic(TOPIC, partitions, config or {}).id
        self.broker: Final = Broker(self.directory, read_settings({}).config, say=lambda message: None)
        self.broker.run_here(lambda: None)
        self.brokers: Final = {number: broker(number) for number in (1, 2, 3)}
        self.asked: Final[list[IsrChange]] = []
        self.now_ms = 1_000_000
        self._waiting: Final[dict[Wait, Asked]] = {}
        self.leaders: Final = Leaders(
            ClusterView(1, EPOCHS[1], self.brokers),
            min_isr=lambda topic_id: min_isr(self.broker.image, topic_id, self.broker.settings.of_topics),
            submit=self._submit,
            wake=self.broker.wake,
            changed=self.broker.log_changed,
            elsewhere=lambda work: work(),
            clock_ms=lambda: self.now_ms,
        )
        self.broker.leaders = self.leaders
        nodes = {number: Node(number, f"host-{number}", 9000 + number, f"rack-{number}") for number in (1, 2, 3)}
        self.broker.image = self.broker.image._replace(listeners={"PLAINTEXT": ListenerImage(nodes, {})})
        for number in range(partitions):
            self.directory.log(TOPIC, number).advance_high_watermark(0)

    def close(self) -> None:
        self.directory.close()

    def _submit(self, change: IsrChange) -> bool:
        self.asked.append(change)
        return True

    # -------------------------------------------------------------------------------------------------------- metadata

    def lead(self, *isr: int, partition: int = 0, epoch: int = EPOCH, version: int = 20) -> Led:
        """Metadata make the broker the leader, or change the partition."""
        self._tell(partition, 1, epoch, isr)
        record = PartitionRecord(
            partition_id=partition,
            topic_id=self.topic_id,
            replicas=(1, 2, 3),
            isr=isr,
            removing_replicas=(),
            adding_replicas=(),
            leader=1,
            leader_epoch=epoch,
            partition_epoch=version,
        )
        place = TopicIdPartition(self.topic_id, partition)
        self.leaders.lead(Changed(place, record, is_new_epoch=True, is_new=True), self.directory.log(TOPIC, partition))
        self.turn()
        led = self.leaders.get(self.topic_id.bytes, partition)
        assert led is not None
        return led

    def follow(self, leader: int, *, partition: int = 0, epoch: int = EPOCH + 1) -> None:
        """Metadata make another broker the leader."""
        self._tell(partition, leader, epoch, (1, 2, 3))
        self.leaders.depose(TopicIdPartition(self.topic_id, partition))
        self.turn()

    def _tell(self, partition: int, leader: int, epoch: int, isr: tuple[int, ...]) -> None:
        image = self.broker.image
        topic = image.topics[TOPIC]
        state = PartitionImage(partition, leader, epoch, (1, 2, 3), isr)
        topic = topic._replace(partitions={**topic.partitions, partition: state})
        self.broker.image = image._replace(topics=SortedMap([(TOPIC, topic)]), by_id=SortedMap([(topic.id, topic)]))
        self.broker._led = {}

    # -------------------------------------------------------------------------------------------------------- requests

    @property
    def deadlines(self) -> list[float]:
        """Until when requests wait, in their order."""
        return [wait.deadline for wait in self._waiting]

    def turn(self) -> None:
        """Have everything tried again whose time has come."""
        while woken := self.broker.take_woken():
            for wait in woken:
                if wait in self._waiting:
                    self._take(wait, wait.retry(False))

    def expire(self) -> None:
        """Let the time of everything that waits be over."""
        for wait in list(self._waiting):
            self._take(wait, wait.retry(True))

    def _take(self, wait: Wait, answer: Answer) -> None:
        if answer is not None:
            self.broker.forget(wait)
            self._go_on(self._waiting.pop(wait), answer)

    def _go_on(self, asked: Asked, answer: Answer) -> None:
        is_later = isinstance(answer, Later)
        if isinstance(answer, Later):
            answer = answer.work()
        if isinstance(answer, Wait):
            assert answer.deadline > time.monotonic()
            self._waiting[answer] = asked
            self.broker.watch(answer)
            if is_later and answer.logs:
                self.broker.wake(answer)
        else:
            asked.take(answer)

    def ask(self, api_key: int, version: int, content: dict[str, Any]) -> Asked:
        ask = Ask(api_key, version, content)
        asked = Asked(ask)
        self._go_on(asked, self.broker.handle(memoryview(ask.frame("client")), Connection()))
        self.turn()
        return asked

    def produce_in(
        self, transactional_id: str, *, epoch: int = 0, sequence: int = 0, acks: int = 1, version: int = 11
    ) -> Asked:
        """Produce a record as part of a transaction of producer 9."""
        builder = BatchBuilder(producer_id=9, producer_epoch=epoch, base_sequence=sequence, transactional=True)
        builder.append(b"k", b"v", timestamp_ms=TIME_MS)
        topic = {
            "name": TOPIC,
            "topic_id": self.topic_id.bytes,
            "partition_data": [{"index": 0, "records": builder.build()}],
        }
        content = {"transactional_id": transactional_id, "acks": acks, "timeout_ms": 30_000, "topic_data": [topic]}
        return self.ask(PRODUCE, version, content)

    def produce(self, *, acks: int = -1, count: int = 1, partition: int = 0, version: int = 12) -> Asked:
        """Produce `count` records to one partition."""
        one = {"index": partition, "records": make_batch(count)}
        topic = {"name": TOPIC, "topic_id": self.topic_id.bytes, "partition_data": [one]}
        content = {"transactional_id": None, "acks": acks, "timeout_ms": 30_000, "topic_data": [topic]}
        return self.ask(PRODUCE, version, content)

    def fetch(
        self,
        offset: int,
        *,
        replica: int = -1,
        replica_epoch: int | None = None,
        epoch: int = EPOCH,
        last_epoch: int = -1,
        wait_ms: int = 500,
        partition: int = 0,
        version: int = 18,
        start: int = -1,
        rack: str = "",
        **more: Any,
    ) -> Asked:
        """Fetch one partition, as a consumer or as a replica."""
        one = {
            "partition": partition,
            "current_leader_epoch": epoch,
            "fetch_offset": offset,
            "last_fetched_epoch": last_epoch,
            "log_start_offset": start,
            "partition_max_bytes": 1 << 20,
            **more,
        }
        if replica_epoch is None:
            replica_epoch = EPOCHS.get(replica, -1)
        content = {
            "replica_id": replica,
            "replica_state": {"replica_id": replica, "replica_epoch": replica_epoch},
            "max_wait_ms": wait_ms,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic": TOPIC, "topic_id": self.topic_id.bytes, "partitions": [one]}],
            "forgotten_topics_data": [],
            "rack_id": rack,
        }
        return self.ask(FETCH, version, content)
