"""A model of Kafka's active controller: registrations, sessions, elections and changes of the replicas in sync.

Each operation is one record of the metadata log, and nobody is answered before what he asked for is committed. The same
sequences of requests are put to this model and to a controller of Apache Kafka (`test_controller.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final
from uuid import UUID

from octavo.cluster.messages import (
    AlteredPartition,
    AlterPartitionAnswer,
    AlterPartitionChange,
    AlterPartitionRequest,
    BrokerState,
    TopicIdPartition,
)
from octavo.errors import ErrorCode
from octavo.schemas.metadata.topics import PartitionRecord
from tests.simulation.replication.brokers import Brokers
from tests.simulation.replication.elections import RECOVERING

_PREFERRED_LEADER_NOT_AVAILABLE: Final = 80  # no broker answers that


class Controller(Brokers):
    """The active controller, with eligible leader replicas (KIP-966)."""

    def __init__(self, min_isr: int) -> None:
        super().__init__(min_isr)
        self.on_new_isr: Callable[[TopicIdPartition, PartitionRecord], None] = lambda partition, before: None

    def create(self, partitions: Iterable[tuple[TopicIdPartition, tuple[int, ...]]]) -> int:
        """Create the partitions of a topic. Return the error."""
        for partition, replicas in partitions:
            isr = tuple(each for each in replicas if self.is_active(each))
            if not isr:
                self._next = None
                return ErrorCode.INVALID_REPLICA_ASSIGNMENT
            self._write_partition(partition, _new(partition, replicas, isr))
        self._end_operation()
        return ErrorCode.NONE

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionAnswer:
        """AlterPartition."""
        broker = self.brokers.get(request.broker_id)
        if broker is None or broker.broker_epoch != request.broker_epoch:
            return AlterPartitionAnswer(ErrorCode.STALE_BROKER_EPOCH, {})
        answers, before = {}, self.partitions
        for partition, change in request.partitions.items():
            error = self._refusal(request.broker_id, partition, change)
            if error:
                answers[partition] = AlteredPartition(error)
                continue
            isr = tuple(member.broker_id for member in change.new_isr_with_epochs)
            after = self._change(partition, isr, recovery_state=change.leader_recovery_state)
            answers[partition] = AlteredPartition(0, after.leader_epoch, after.isr, after.partition_epoch)
        self._end_operation()
        for partition in request.partitions:
            if partition in before and self.partitions[partition] is not before[partition]:
                self.on_new_isr(partition, before[partition])
        return AlterPartitionAnswer(0, answers)

    def _refusal(self, broker_id: int, partition: TopicIdPartition, change: AlterPartitionChange) -> int:
        now = self.partitions.get(partition)
        if now is None:
            is_topic = any(each.topic_id == partition.topic_id for each in self.partitions)
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic else ErrorCode.UNKNOWN_TOPIC_ID
        if change.leader_epoch > now.leader_epoch or change.partition_epoch > now.partition_epoch:
            return ErrorCode.NOT_CONTROLLER
        if change.leader_epoch < now.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if broker_id != now.leader:
            return ErrorCode.INVALID_REQUEST
        if change.partition_epoch < now.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        members = change.new_isr_with_epochs
        ids = [member.broker_id for member in members]
        if len(set(ids)) < len(ids) or not {*ids} <= {*now.replicas} or broker_id not in ids:
            return ErrorCode.INVALID_REQUEST
        if change.leader_recovery_state == RECOVERING and (len(ids) > 1 or not now.leader_recovery_state):
            return ErrorCode.INVALID_REQUEST
        return 0 if all(map(self._is_eligible, members)) else ErrorCode.INELIGIBLE_REPLICA

    def _is_eligible(self, member: BrokerState) -> bool:
        if not self.is_active(member.broker_id):
            return False
        return member.broker_epoch in (-1, self.brokers[member.broker_id].broker_epoch)

    def elect_preferred(self, partition: TopicIdPartition) -> int:
        """Have the first replica lead, as an administrator asks. Return the error."""
        now = self.partitions[partition]
        if now.leader == now.replicas[0]:
            return ErrorCode.ELECTION_NOT_NEEDED
        after = self._change(partition, now.isr, is_preferred=True)
        self._end_operation()
        return _PREFERRED_LEADER_NOT_AVAILABLE if after is now else ErrorCode.NONE

    def move_leader(self, partition: TopicIdPartition, number: int) -> None:
        """Have another replica in sync lead: it is made the first one, which is then elected."""
        now = self.partitions[partition]
        if number != now.leader >= 0 and number in now.isr and self.is_active(number):
            replicas = (number, *(each for each in now.replicas if each != number))
            self._write_partition(partition, replace(now, replicas=replicas, partition_epoch=now.partition_epoch + 1))
            self._end_operation()
            self.elect_preferred(partition)


def _new(partition: TopicIdPartition, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=partition.partition,
        topic_id=UUID(int=partition.topic_id.int),
        replicas=replicas,
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        eligible_leader_replicas=(),
        last_known_elr=(),
    )
