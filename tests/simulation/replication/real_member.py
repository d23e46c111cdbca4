"""A broker of the simulation that is the real one: `Broker` and `Member` on a simulated disk (`RealMember`).

Requests go to it as bytes, those of other brokers and of producers, and its own go to the others as bytes. What it does
in other threads happens a bit later. Its clock is that of the world (`real_world.py`).
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from octavo.broker.answers import Answer, Later, Parts, Wait, Work
from octavo.broker.broker import Broker
from octavo.broker.config import read_settings
from octavo.broker.member.member import Member
from octavo.broker.wire.api_keys import PRODUCE
from octavo.broker.wire.messages import read_response, write_request
from octavo.broker.wire.primitives import skip_tagged
from octavo.cluster.leading import LedPartition
from octavo.cluster.messages import Listener, TopicIdPartition
from octavo.errors import UnknownPartition
from octavo.log.append.readiness import prepare
from octavo.log.directory.member_directory import open_member
from octavo.log.log import Log
from octavo.schemas.metadata.topics import PartitionRecord
from tests.clock import TIME_MS
from tests.crash.disk import POWER_CUTS, PROCESS_DIED, write_image
from tests.crash.storage import CrashStorage
from tests.server.raw import header
from tests.simulation.machine import Connection
from tests.simulation.replication.checks import Replica
from tests.simulation.replication.in_order import InOrder
from tests.simulation.replication.member import HEARTBEAT_MS, LAG_MS
from tests.simulation.replication.network import Reply
from tests.simulation.replication.real_hooks import watch
from tests.simulation.replication.real_peers import SimulatedPeers
from tests.simulation.replication.real_replica import NoReplica, RealReplica, batch_of
from tests.simulation.replication.wire_log import LISTENER, PORT, TOPIC, host_of

if TYPE_CHECKING:
    from tests.simulation.replication.real_world import RealWorld

CLUSTER_ID: Final = "b2N0YXZvIGluIGEgdGVzdA"
_PRODUCE_VERSION: Final = 11
_PRODUCE_MS: Final = 1500
_ACKS_ALL: Final = -1
_FLEXIBLE_AT: Final = 4  # where the tagged fields of a response's header begin
_SETTINGS: Final = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "controller:1",
    "controller.listener.names": "CONTROLLER",
    "broker.heartbeat.interval.ms": str(HEARTBEAT_MS),
    "initial.broker.registration.timeout.ms": str(1 << 30),
    "controller.quorum.request.timeout.ms": "60",
    "replica.lag.time.max.ms": str(LAG_MS),
    "replica.fetch.wait.max.ms": "40",
    "replica.socket.timeout.ms": "100",
    "replica.fetch.backoff.ms": "50",
}
_numbers: Final = count()


class RealMember:
    """One broker. Its folder outlives it."""

    def __init__(self, world: RealWorld, number: int) -> None:
        self.world: Final = world
        self.number: Final = number
        self.life_number = 0
        self.is_up = False
        self.waits = 0  # producers that have no answer
        self._home: Final = Path(tempfile.mkdtemp(dir=world.folder))
        self._folder = self._home / "0"
        self._folder.mkdir()
        self._settings: Final = read_settings(
            {
                **_SETTINGS,
                "node.id": str(number),
                "listeners": f"{LISTENER}://{host_of(number)}:{PORT}",
                "controller.socket.timeout.ms": str(world.change_ms),
            }
        )
        prepare()
        self.start()

    def start(self) -> None:
        """Start a process."""
        self.life_number += 1
        self.is_up = True
        self.waits = 0
        log = self.world.controller.log
        committed = log.images[log.committed - 1].partitions
        self._to_be_known = {partition.partition for partition in committed}  # before anybody is served
        self._waiting: dict[Wait, tuple[int, Callable[[Parts | None], None]]] = {}
        self.storage = CrashStorage(self._folder)
        settings = self._settings
        assert settings.member is not None
        self.directory = open_member(
            [self._folder],
            node_id=self.number,
            new_cluster_id=lambda: CLUSTER_ID,
            broker_config=settings.properties,
            storage=self.storage,
            clock=lambda: TIME_MS + self.world.now_ms,
            monotonic=lambda: self.world.now_ms,
            new_id=lambda: UUID(int=1000 + next(_numbers)),
        )
        self.broker = Broker(
            self.directory, settings.config, say=self._say, properties=settings.properties, is_member=True
        )
        self.broker._changed = InOrder()  # type: ignore[misc, assignment]  # a set has another order in each run
        self.broker.run_here(lambda: None)
        self.member = Member(
            self.broker,
            self.directory,
            settings.member,
            listeners=[Listener(LISTENER, host_of(self.number), PORT)],
            properties=settings.properties,
            peers=SimulatedPeers(self),
            call=lambda function: self._later(0, function),
            work=self._work,
            on_published=lambda: None,
            on_unfenced=self._let_clients_in,
            on_end=lambda: self._later(0, self._end),
        )
        self.broker.member = self.member
        watch(self, self.member)

    def _let_clients_in(self) -> None:
        """Check what clients are told from now on: Kafka's brokers serve nobody before they know all topics, too."""
        topic = self.broker.image.topics.get(TOPIC)
        known = set() if topic is None else set(topic.partitions)
        assert known >= self._to_be_known, f"broker {self.number} serves, and knows of the partitions {known} alone"

    def _say(self, message: str) -> None:
        self.world.say(f"broker {self.number}: {message}")

    def _work(self, kind: Work, function: Callable[[], None]) -> None:
        self._later(self.world.random.choice((0, 1, 1, 4)), function)

    def _later(self, delay_ms: int, function: Callable[[], None]) -> None:
        """Have this process do something, unless it has died by then."""
        life = self.life_number

        def do() -> None:
            if self.life_number != life or not self.is_up:
                return
            if self.world.network.is_paused(self.number):
                self.world.at(self.world.network.paused[self.number] - self.world.now_ms, do)
                return
            function()
            self.turn()

        self.world.at(delay_ms, do)

    # ------------------------------------------------------------------------------------------------------- the world

    @property
    def broker_epoch(self) -> int:
        """The epoch of its registration; -1 if there was none yet."""
        return self.member.life.broker_epoch

    def log(self, partition: TopicIdPartition) -> Log | None:
        """Return the log of a partition, if there is one."""
        try:
            return self.directory.log_of(partition) if self.is_up else None
        except UnknownPartition:
            return None

    def replica(self, partition: TopicIdPartition) -> Replica:
        """Return the log of a partition."""
        log = self.log(partition)
        return NoReplica() if log is None else RealReplica(log)

    def led(self, partition: TopicIdPartition) -> LedPartition | None:
        """Return what the broker knows as the leader of a partition."""
        led = self.member.leaders.get(partition.topic_id.bytes, partition.partition) if self.is_up else None
        return None if led is None else led.state

    def record_of(self, partition: TopicIdPartition) -> PartitionRecord | None:
        """Return what the newest metadata say that were applied here."""
        return self.directory.metadata.image.partitions_of(partition.topic_id).get(partition.partition)

    def stop(self) -> None:
        """Begin to shut down."""
        self.member.begin_shutdown()
        self.turn()

    def _end(self) -> None:
        assert self.member.failure is None, f"broker {self.number} stops: {self.member.failure}"
        self.is_up = False
        self.member.note_clean_epoch()
        self.directory.close()
        self._move(POWER_CUTS[0] if self.world.random.random() < 0.5 else PROCESS_DIED)

    def kill(self, *, wipe: bool) -> None:
        """Kill the process, have the power go, or replace the disk."""
        self.is_up = False
        survival = self.world.random.choice((PROCESS_DIED, *POWER_CUTS))
        self.world.say(f"broker {self.number} dies: {'a new disk' if wipe else survival}")
        self._move(None if wipe else survival)

    def _move(self, survival: Any) -> None:
        """Have what is left in a new folder."""
        image = {} if survival is None else self.storage.disk().image(survival, self.world.random)
        self.storage.restart()
        old, self._folder = self._folder, self._home / str(self.life_number)
        write_image(image, self._folder)
        shutil.rmtree(old)

    def flush(self) -> None:
        """Have everything on the disk, and the start of what is led move on, sometimes."""
        random = self.world.random
        for partition in self.world.partitions:
            log = self.log(partition)
            if log is None:
                continue
            if random.random() < 0.3:
                log.flush()
            if self.led(partition) is not None and random.random() < 0.1:
                log.delete_records_before(random.randint(log.start_offset, log.high_watermark))
        if random.random() < 0.5:
            self.directory.write_checkpoints()
        self.storage.run_tasks()
        self.turn()

    def poll(self) -> None:
        """Do what there is to do now."""
        self.turn()

    # -------------------------------------------------------------------------------------------------------- requests

    def turn(self) -> None:
        """Have everything happen whose time has come, as the reactor does after each request."""
        if not self.is_up:
            return
        self.member.tick(self.world.now_ms)
        woken = [wait for wait in self.broker.take_woken() if wait in self._waiting]
        for wait in sorted(woken, key=lambda each: self._waiting[each][0]):
            if wait in self._waiting:
                self._retry(wait, is_over=False)
        if self.member.next_ms <= self.world.now_ms:
            self._later(1, lambda: None)

    def _retry(self, wait: Wait, *, is_over: bool) -> None:
        answer = wait.retry(is_over)
        if answer is not None:
            self.broker.forget(wait)
            self._go_on(answer, self._waiting.pop(wait)[1])

    def serve(self, api_key: int, version: int, body: bytes, client_id: str, reply: Reply) -> None:
        """Answer a request, now or later, with the body of the response."""
        frame = header(api_key, version, client_id=client_id, flexible=True) + body

        def give(parts: Parts | None) -> None:
            if parts is not None:
                data = b"".join(
                    part if isinstance(part, bytes) else part.file.read_at(part.size, part.position) for part in parts
                )
                reply(data[skip_tagged(memoryview(data), _FLEXIBLE_AT) :])

        self._go_on(self.broker.handle(memoryview(frame), Connection()), give)
        self.turn()

    def _go_on(self, answer: Answer, give: Callable[[Parts | None], None]) -> None:
        if isinstance(answer, Later):
            work = answer.work
            self._later(self.world.random.choice((0, 1, 3)), lambda: self._go_on(work(), give))
        elif isinstance(answer, Wait):
            self._waiting[answer] = (next(_numbers), give)
            self.broker.watch(answer)
            if answer.deadline < math.inf:
                delay_ms = max(0, math.ceil(answer.deadline * 1000) - self.world.now_ms)
                self._later(delay_ms, partial(self._expire, answer))
        else:
            give(answer)

    def _expire(self, wait: Wait) -> None:
        if wait in self._waiting:
            self._retry(wait, is_over=True)

    # --------------------------------------------------------------------------------------------------------- clients

    def produce(self, partition: TopicIdPartition, values: list[int]) -> None:
        """Append records with acks=all."""
        if self.led(partition) is None:
            return
        content = {
            "transactional_id": None,
            "acks": _ACKS_ALL,
            "timeout_ms": _PRODUCE_MS,
            "topic_data": [
                {"name": TOPIC, "partition_data": [{"index": partition.partition, "records": batch_of(values)}]}
            ],
        }
        life = self.life_number
        self.waits += 1

        def answered(body: bytes) -> None:
            if self.life_number != life:
                return
            self.waits -= 1
            answer = read_response(PRODUCE, _PRODUCE_VERSION, memoryview(body))
            part = answer.responses[0].partition_responses[0]
            if part.error_code == 0:
                self._acknowledged(partition, part.base_offset, values)

        body = write_request(PRODUCE, _PRODUCE_VERSION, content)
        self.serve(PRODUCE, _PRODUCE_VERSION, body, "producer", answered)

    def _acknowledged(self, partition: TopicIdPartition, base_offset: int, values: list[int]) -> None:
        led, replica = self.led(partition), self.replica(partition)
        first = base_offset - replica.start_offset
        entries = list(replica.entries[max(0, first) : first + len(values)])
        assert [entry.value for entry in entries] == values[max(0, -first) :], f"{values} are {entries}"
        epoch = -1 if led is None else led.leader_epoch
        checks = self.world.checks[partition]
        checks.acknowledge(
            self.number, epoch, max(base_offset, replica.start_offset), entries, self.record_of(partition)
        )

    def consume(self) -> None:
        """Show consumers everything that they may see."""
        for partition in self.world.partitions:
            log, record = self.log(partition), self.record_of(partition)
            if log is not None and record is not None and self.member.is_unfenced:
                shown = RealReplica(log).entries[: log.high_watermark - log.start_offset]
                self.world.checks[partition].know(log.start_offset, shown, record.leader_epoch)
