"""Led partitions for tests: broker 1 leads, brokers 2 and 3 follow."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from octavo.cluster.leading import ClusterView, LedPartition, Outcome
from octavo.schemas.metadata.nodes import RegisterBrokerRecord
from octavo.schemas.metadata.topics import PartitionRecord
from tests.unit.cluster.partitions import TOPIC_ID, A

EPOCHS: Final = {1: 101, 2: 102, 3: 103, 4: 104}  # of the brokers
LAG_MS: Final = 30_000


def broker(
    number: int, *, epoch: int | None = None, fenced: bool = False, leaving: bool = False
) -> RegisterBrokerRecord:
    """A registration."""
    return RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=UUID(int=number),
        broker_epoch=EPOCHS[number] if epoch is None else epoch,
        end_points=(),
        features=(),
        rack=None,
        fenced=fenced,
        in_controlled_shutdown=leaving,
    )


def state(
    *isr: int,
    replicas: tuple[int, ...] = (1, 2, 3),
    leader: int = 1,
    leader_epoch: int = 5,
    partition_epoch: int = 20,
) -> PartitionRecord:
    """A partition, by the metadata."""
    return PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=replicas,
        isr=isr,
        removing_replicas=(),
        adding_replicas=(),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
    )


class Leader:
    """A partition led by broker 1, whose log ends at 100 and has the high watermark 80 when it becomes the leader."""

    def __init__(self, *isr: int, min_isr: int = 1, replicas: tuple[int, ...] = (1, 2, 3)) -> None:
        self.brokers = {number: broker(number) for number in EPOCHS}
        self.cluster = ClusterView(1, EPOCHS[1], self.brokers, LAG_MS)
        self.led = LedPartition(A, self.cluster, min_isr=min_isr)
        self.now_ms = 1_000_000
        self.end = 100
        self.first = self.lead(state(*isr, replicas=replicas))

    def lead(self, record: PartitionRecord) -> Outcome:
        """Metadata come."""
        return self.led.lead(record, self.now_ms, end_offset=self.end, high_watermark=80, epoch_start=self.end)

    def append(self, count: int) -> Outcome:
        """Records are appended."""
        self.end += count
        return self.led.appended(self.end, self.now_ms)

    def fetch(self, replica: int, offset: int, *, epoch: int | None = None) -> Outcome:
        """A follower has everything before `offset`."""
        epoch = EPOCHS[replica] if epoch is None else epoch
        assert self.led.refusal(replica, epoch, self.led.leader_epoch) == 0
        return self.led.fetched(
            replica, epoch, fetch_offset=offset, log_start_offset=0, end_offset=self.end, now_ms=self.now_ms
        )
