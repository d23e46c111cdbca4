"""One sequence of requests, put to the model and to a controller of Apache Kafka: `Compared`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from octavo.broker.wire.messages import Struct
from octavo.cluster.messages import (
    NONE,
    AlterPartitionAnswer,
    AlterPartitionRequest,
    BrokerHeartbeatAnswer,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
)
from octavo.log.metadata.image import Topic
from octavo.schemas.metadata.topics import PartitionRecord
from tests.kafka.cluster import CLUSTER_ID
from tests.simulation.replication.controller import Controller
from tests.simulation.replication.elections import elr_of, last_known_of
from tests.simulation.replication.sequences import (
    BROKERS,
    PARTITIONS,
    TOPIC_ID,
    Asker,
    Create,
    Elect,
    Sequence,
    Step,
)
from tests.simulation.replication.stock import (
    ALTER_PARTITION,
    CREATE_TOPICS,
    ELECT_LEADERS,
    HEARTBEAT,
    REGISTRATION,
    Question,
    StockController,
)

MIN_ISR: Final = 2
_FEATURES: Final = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 1),
    "streams.version": (0, 1),
}


class Different(AssertionError):
    """The model does something else than the controller."""


class Compared:
    """One sequence, with brokers and a topic of its own."""

    def __init__(self, name: str, number: int, connection: int, sequence: Sequence) -> None:
        self.name: Final = name
        self.connection: Final = connection
        self.model: Final = Controller(MIN_ISR)
        self.ask: Final = Asker(self.model)
        self._steps: Final = sequence(self.ask)
        self.trace: Final[list[str]] = []
        self._first_id: Final = 1000 + 10 * number
        self._unique: Final = (number + 1) << 64
        self._topic: Final = f"topic-{number}"
        self._topic_id = bytes(16)
        self._epochs: Final = {-1: -1}  # those of the controller, by those of the model
        self._now_ms = 0

    def real_id(self, broker: int) -> int:
        """Return the id of a broker in the cluster."""
        return self._first_id + broker

    def next_step(self) -> Step | None:
        """Return what is asked next; None at the end."""
        step = next(self._steps, None)
        self.trace.append(_short(step))
        return step

    # ------------------------------------------------------------------------------------------------------- the model

    def answer(self, step: Step) -> Any:
        """Ask the model."""
        self._now_ms += 1
        model, now_ms = self.model, self._now_ms
        if isinstance(step, BrokerRegistrationRequest):
            return model.register(step, now_ms)
        if isinstance(step, BrokerHeartbeatRequest):
            return model.heartbeat(step, now_ms)
        if isinstance(step, AlterPartitionRequest):
            return model.alter_partition(step)
        if isinstance(step, Create):
            return model.create(zip(PARTITIONS, step.replicas, strict=True))
        assert isinstance(step, Elect)
        return model.elect_preferred(step.partition)

    def keep_alive(self, silent: Iterable[int] = ()) -> list[tuple[Step, Any]]:
        """Have the brokers send heartbeats that have sessions; return those, and the answers of the model."""
        keep = [broker for broker in BROKERS if broker in self.model.sessions and broker not in silent]
        beats = [self.ask.keep_alive(broker) for broker in keep]
        return [(beat, self.answer(beat)) for beat in beats]

    def fail_over(self) -> None:
        """Have another controller take over."""
        self.model.log.commit()
        self.model.fail_over(self._now_ms)

    def expire(self, fenced: Iterable[int]) -> None:
        """End the sessions of brokers, given by their ids in the cluster, one after the other."""
        for real_id in fenced:
            self.trace.append(f"broker {real_id - self._first_id} is not heard any more")
            self.model.end_session(real_id - self._first_id)

    # ---------------------------------------------------------------------------------------------- the real controller

    def question(self, step: Step) -> Question:
        """Return a request as it goes over the wire."""
        if isinstance(step, BrokerRegistrationRequest):
            return REGISTRATION, self._registration(step)
        if isinstance(step, BrokerHeartbeatRequest):
            content = {
                "broker_id": self.real_id(step.broker_id),
                "broker_epoch": self._epoch(step.broker_epoch),
                "current_metadata_offset": step.current_metadata_offset,
                "want_fence": step.want_fence,
                "want_shut_down": step.want_shut_down,
            }
            return HEARTBEAT, content
        if isinstance(step, AlterPartitionRequest):
            return ALTER_PARTITION, self._alteration(step)
        if isinstance(step, Create):
            assignments = [
                {"partition_index": number, "broker_ids": [self.real_id(each) for each in replicas]}
                for number, replicas in enumerate(step.replicas)
            ]
            topic = {
                "name": self._topic,
                "num_partitions": -1,
                "replication_factor": -1,
                "assignments": assignments,
                "configs": [{"name": "min.insync.replicas", "value": str(MIN_ISR)}],
            }
            return CREATE_TOPICS, {"topics": [topic], "timeout_ms": 20_000}
        assert isinstance(step, Elect)
        topics = [{"topic": self._topic, "partitions": [step.partition.partition]}]
        return ELECT_LEADERS, {"election_type": 0, "topic_partitions": topics, "timeout_ms": 20_000}

    def _registration(self, step: BrokerRegistrationRequest) -> dict[str, Any]:
        return {
            "broker_id": self.real_id(step.broker_id),
            "cluster_id": CLUSTER_ID,
            "incarnation_id": self._uuid(step.incarnation_id),
            "listeners": [{"name": "PLAINTEXT", "host": "localhost", "port": 9, "security_protocol": 0}],
            "features": [
                {"name": name, "min_supported_version": least, "max_supported_version": most}
                for name, (least, most) in _FEATURES.items()
            ],
            "log_dirs": [self._uuid(each) for each in step.log_dirs],
            "previous_broker_epoch": self._epoch(step.previous_broker_epoch),
        }

    def _alteration(self, step: AlterPartitionRequest) -> dict[str, Any]:
        ((partition, change),) = step.partitions.items()
        members = [
            {"broker_id": self.real_id(each.broker_id), "broker_epoch": self._epoch(each.broker_epoch)}
            for each in change.new_isr_with_epochs
        ]
        asked = {
            "partition_index": partition.partition,
            "leader_epoch": change.leader_epoch,
            "partition_epoch": change.partition_epoch,
            "new_isr_with_epochs": members,
            "leader_recovery_state": change.leader_recovery_state,
        }
        topic_id = self._topic_id if partition.topic_id == TOPIC_ID else self._uuid(partition.topic_id)
        topics = [{"topic_id": topic_id, "partitions": [asked]}]
        return {
            "broker_id": self.real_id(step.broker_id),
            "broker_epoch": self._epoch(step.broker_epoch),
            "topics": topics,
        }

    def _epoch(self, epoch: int) -> int:
        return self._epochs.get(epoch, epoch)

    def _uuid(self, uuid: UUID) -> bytes:
        return UUID(int=self._unique | uuid.int).bytes

    # ----------------------------------------------------------------------------------------------------- comparisons

    def compare_answers(self, step: Step, model: Any, real: Struct) -> None:
        """Compare the answers to a step. Raises `Different`."""
        if isinstance(step, BrokerRegistrationRequest):
            self._same(model.error_code, real.error_code)
            if model.error_code == NONE:
                self._same(self._epochs.setdefault(model.broker_epoch, real.broker_epoch), real.broker_epoch)
                self._same(len(set(self._epochs.values())), len(self._epochs))  # epochs never come back
        elif isinstance(step, BrokerHeartbeatRequest):
            answer = BrokerHeartbeatAnswer(real.error_code, real.is_caught_up, real.is_fenced, real.should_shut_down)
            self._same(model, answer)
        elif isinstance(step, AlterPartitionRequest):
            self._compare_alteration(model, real)
        elif isinstance(step, Create):
            self._same(model, real.topics[0].error_code)
            self._topic_id = bytes(real.topics[0].topic_id)
        else:
            (result,) = real.replica_election_results[0].partition_result
            self._same(model, result.error_code)

    def _compare_alteration(self, model: AlterPartitionAnswer, real: Struct) -> None:
        self._same(model.error_code, real.error_code)
        if model.error_code != NONE:
            return
        (altered,) = model.partitions.values()
        answer = real.topics[0].partitions[0]
        self._same(altered.error_code, answer.error_code)
        if altered.error_code == NONE:
            isr = [self.real_id(each) for each in altered.isr]
            self._same(
                (altered.leader_epoch, isr, altered.partition_epoch),
                (answer.leader_epoch, list(answer.isr), answer.partition_epoch),
            )

    def compare_metadata(self, stock: StockController, topics: Mapping[str, Topic]) -> None:
        """Compare what the metadata say of the brokers and the partitions. Raises `Different`."""
        for broker, known in self.model.brokers.items():
            real = stock.image.brokers[self.real_id(broker)]
            self._same(
                (self._epochs[known.broker_epoch], known.fenced, known.in_controlled_shutdown),
                (real.broker_epoch, real.fenced, real.in_controlled_shutdown),
            )
        if self.model.partitions:
            topic = topics[self._topic]
            for partition, record in self.model.partitions.items():
                self._same(self._state(record), _state(topic.partitions[partition.partition]))

    def _state(self, record: PartitionRecord) -> tuple[Any, ...]:
        leader, isr, elr, last_known, *rest = _state(record)
        ids = [tuple(map(self.real_id, brokers)) for brokers in (isr, elr, last_known)]
        return (leader if leader < 0 else self.real_id(leader), ids[0], frozenset(ids[1]), ids[2], *rest)

    def _same(self, model: Any, real: Any) -> None:
        if model != real:
            lines = "\n".join([*self.trace, f"model {model}", f"stock {real}"])
            raise Different(f"{self.name} (broker ids begin at {self._first_id}):\n{lines}")


def _state(record: PartitionRecord) -> tuple[Any, ...]:
    return (
        record.leader,
        tuple(record.isr),
        frozenset(elr_of(record)),
        tuple(last_known_of(record)),
        record.leader_epoch,
        record.partition_epoch,
        record.leader_recovery_state,
    )


def _short(step: Step | None) -> str:
    if isinstance(step, BrokerRegistrationRequest):
        return f"{step.broker_id} registers as {step.incarnation_id.int:x} after {step.previous_broker_epoch}"
    if isinstance(step, BrokerHeartbeatRequest):
        wants = ", fence" * step.want_fence + ", shut down" * step.want_shut_down
        return (
            f"{step.broker_id} sends a heartbeat, epoch {step.broker_epoch}{wants}, at {step.current_metadata_offset}"
        )
    if isinstance(step, AlterPartitionRequest):
        ((partition, change),) = step.partitions.items()
        members = [tuple(each) for each in change.new_isr_with_epochs]
        epochs = (change.leader_epoch, change.partition_epoch, change.leader_recovery_state)
        return f"{step.broker_id} with {step.broker_epoch} alters {partition.partition} at {epochs}: {members}"
    return str(step)
