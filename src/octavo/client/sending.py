"""Send records to the partitions of a topic, each once: `Sender`."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

from octavo.broker.wire.api_keys import INIT_PRODUCER_ID, PRODUCE
from octavo.client.cluster import Cluster, TopicLeaders
from octavo.client.connection import check, words
from octavo.errors import BrokerUnreachable, ErrorCode, InvalidInput, RequestFailed
from octavo.records.builder import BatchBuilder
from octavo.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Codec
from octavo.records.partition import partition_for_key
from octavo.records.record import Header
from octavo.records.sequence import increment_sequence

_LARGEST_BATCH: Final = 512 << 10
_LARGEST_RECORD: Final = 100 << 20  # what a request of Kafka can have; the topic allows less
_WAIT_MS: Final = 30_000
ALL: Final = -1


class _Batch(NamedTuple):
    partition: int
    data: bytes
    record_count: int


class Sender:
    """Collects records of one topic in batches, and sends these. Within a partition, records keep their order.

    If the broker gives out producer ids, a batch whose answer was lost is sent again without being written twice.
    """

    def __init__(
        self, cluster: Cluster, topic: str, *, codec: Codec = Codec.NONE, acks: int = ALL, random: Random | None = None
    ) -> None:
        """Look up the topic, which a broker may create now. Raises `RequestFailed` and `BrokerUnreachable`."""
        self._cluster: Final = cluster
        self._name: Final = topic
        self._codec: Final = codec
        self._acks: Final = acks
        self._random: Final = random or Random()
        self._topic: TopicLeaders = cluster.persist(lambda: cluster.topic(topic, creating=True))
        self._producer: Final = self._identity() if acks == ALL else (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        self._sequences: Final[dict[int, int]] = {}
        self._builders: Final[dict[int, BatchBuilder]] = {}
        self._full: list[_Batch] = []
        self._sticky = self._random.randrange(len(self._topic.leaders))
        self.pending = 0  # records that are not sent yet
        self.sent = 0

    def _identity(self) -> tuple[int, int]:
        def ask() -> tuple[int, int]:
            connection = self._cluster.any()
            if not connection.serves(INIT_PRODUCER_ID):
                return NO_PRODUCER_ID, NO_PRODUCER_EPOCH
            answer = connection.ask(
                INIT_PRODUCER_ID, {"transactional_id": None, "transaction_timeout_ms": _WAIT_MS}, newest=4
            )
            check(answer, "a producer id")
            return answer.producer_id, answer.producer_epoch

        return self._cluster.persist(ask)

    def add(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        *,
        timestamp_ms: int,
        partition: int | None = None,
    ) -> None:
        """Add a record; batches that are full are sent. Raises what `flush` raises, and `InvalidInput`."""
        size = len(key or b"") + len(value or b"")
        if size > _LARGEST_RECORD:
            raise InvalidInput(f"a record of {size:,} bytes is larger than any request to a broker")
        number = self._choose(key) if partition is None else partition
        if number not in self._topic.leaders:
            raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {self._name} has no partition {number}")
        builder = self._builders.get(number) or self._new_builder(number)
        if builder.append(key, value, timestamp_ms=timestamp_ms, headers=headers) is None:
            self._close(number)
            self._send()
            self._new_builder(number).append(key, value, timestamp_ms=timestamp_ms, headers=headers)
        self.pending += 1

    def flush(self) -> None:
        """Send all records. Raises `RequestFailed` if a broker refuses them, and `BrokerUnreachable`."""
        for partition in list(self._builders):
            self._close(partition)
        self._send()

    def _choose(self, key: bytes | None) -> int:
        count = len(self._topic.leaders)
        return self._sticky if key is None else partition_for_key(key, count)

    def _new_builder(self, partition: int) -> BatchBuilder:
        producer_id, epoch = self._producer
        sequence = NO_SEQUENCE if producer_id == NO_PRODUCER_ID else self._sequences.get(partition, 0)
        builder = BatchBuilder(
            codec=self._codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            max_size=_LARGEST_BATCH,
        )
        self._builders[partition] = builder
        return builder

    def _close(self, partition: int) -> None:
        builder = self._builders.pop(partition)
        self._full.append(_Batch(partition, builder.build(), builder.count))
        self._sequences[partition] = increment_sequence(self._sequences.get(partition, 0), builder.count)
        if partition == self._sticky:  # records without a key go to another partition from now on
            self._sticky = self._random.randrange(len(self._topic.leaders))

    def _send(self) -> None:
        """Send what is full, until all of it is acknowledged."""
        while self._full:
            self._cluster.persist(self._send_next)

    def _send_next(self) -> None:
        """Send the next batch of each partition to its leader, and take off what is acknowledged."""
        by_leader: dict[int, dict[int, _Batch]] = {}
        for batch in self._full:
            by_leader.setdefault(self._topic.leaders[batch.partition], {}).setdefault(batch.partition, batch)
        try:
            for leader, batches in by_leader.items():
                self._send_to(leader, list(batches.values()))
        except (BrokerUnreachable, RequestFailed):
            self._topic = self._cluster.topic(self._name)
            raise

    def _send_to(self, leader: int, batches: list[_Batch]) -> None:
        answer = self._cluster.node(leader).ask(
            PRODUCE,
            {
                "transactional_id": None,
                "acks": self._acks,
                "timeout_ms": _WAIT_MS,
                "topic_data": [
                    {
                        "name": self._name,
                        "topic_id": self._topic.id,
                        "partition_data": [{"index": each.partition, "records": each.data} for each in batches],
                    }
                ],
            },
        )
        results = {each.index: each for topic in answer.responses for each in topic.partition_responses}
        for batch in batches:
            result = results.get(batch.partition)
            if result is None:
                raise BrokerUnreachable(f"node {leader}", f"it says nothing of partition {batch.partition}")
            if result.error_code not in (0, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                what = result.record_errors[0].batch_index_error_message if result.record_errors else None
                raise RequestFailed(
                    result.error_code, f"partition {batch.partition} of topic {self._name}: {what or words(result)}"
                )
            self._full.remove(batch)
            self.pending -= batch.record_count
            self.sent += batch.record_count
