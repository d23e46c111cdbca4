"""Questions about the records of a partition, to its leader and to its followers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from octavo.broker.wire import api_keys as keys
from octavo.records import BatchBuilder
from tests.cluster.questions import Question
from tests.unit.log.logs import TIME_MS, make_batch

LEADER, FOLLOWER, THIRD = "leader", "follower", "third"
CONSUMER: Final = -1
DEBUGGING: Final = -2
STRANGER: Final = 77  # no broker
ALL: Final = -1
TIMEOUT_MS: Final = 20_000


class Topic(NamedTuple):
    """A topic of one partition."""

    name: str
    id: bytes


class Asked(NamedTuple):
    """A question to one of the brokers that have the partition."""

    whom: str
    question: Question


def produce(
    topic: Topic, *, acks: int = ALL, count: int = 1, version: int = 12, timeout_ms: int = TIMEOUT_MS
) -> Question:
    """Produce some records."""
    data = [{"index": 0, "records": make_batch(count)}]
    several = [{"name": topic.name, "topic_id": topic.id, "partition_data": data}]
    content = {"transactional_id": None, "acks": acks, "timeout_ms": timeout_ms, "topic_data": several}
    return Question(keys.PRODUCE, version, content)


def produce_in(
    topic: Topic, transactional_id: str, producer: tuple[int, int], *, sequence: int = 0, version: int = 12
) -> Question:
    """Produce a record as part of a transaction."""
    builder = BatchBuilder(
        producer_id=producer[0], producer_epoch=producer[1], base_sequence=sequence, transactional=True
    )
    builder.append(b"k", b"v", timestamp_ms=TIME_MS)
    data = [{"index": 0, "records": builder.build()}]
    several = [{"name": topic.name, "topic_id": topic.id, "partition_data": data}]
    content = {
        "transactional_id": transactional_id,
        "acks": ALL,
        "timeout_ms": TIMEOUT_MS,
        "topic_data": several,
    }
    return Question(keys.PRODUCE, version, content)


def init_producer(transactional_id: str) -> Question:
    """Ask the coordinator for a producer id."""
    content = {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": 30_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    return Question(keys.INIT_PRODUCER_ID, 5, content)


def add_partitions(topic: Topic, transactional_id: str, producer: tuple[int, int]) -> Question:
    """Tell the coordinator that a transaction writes to the partition."""
    content = {
        "v3_and_below_transactional_id": transactional_id,
        "v3_and_below_producer_id": producer[0],
        "v3_and_below_producer_epoch": producer[1],
        "v3_and_below_topics": [{"name": topic.name, "partitions": [0]}],
    }
    return Question(keys.ADD_PARTITIONS_TO_TXN, 3, content)


def end_transaction(transactional_id: str, producer: tuple[int, int], *, committed: bool) -> Question:
    """End a transaction."""
    content = {
        "transactional_id": transactional_id,
        "producer_id": producer[0],
        "producer_epoch": producer[1],
        "committed": committed,
    }
    return Question(keys.END_TXN, 4, content)


def fetch(
    topic: Topic,
    offset: int,
    *,
    version: int = 17,
    replica: int = CONSUMER,
    replica_epoch: int = -1,
    epoch: int = -1,
    last_epoch: int = -1,
    isolation: int = 0,
    wait_ms: int = 0,
    rack: str = "",
) -> Question:
    """Fetch records from an offset on."""
    one = {
        "partition": 0,
        "current_leader_epoch": epoch,
        "fetch_offset": offset,
        "last_fetched_epoch": last_epoch,
        "log_start_offset": -1,
        "partition_max_bytes": 1 << 20,
    }
    content: dict[str, Any] = {
        "replica_id": replica,
        "max_wait_ms": wait_ms,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "isolation_level": isolation,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": topic.name, "topic_id": topic.id, "partitions": [one]}],
        "forgotten_topics_data": [],
        "rack_id": rack,
    }
    if replica != CONSUMER:
        content["replica_state"] = {"replica_id": replica, "replica_epoch": replica_epoch}
    return Question(keys.FETCH, version, content)


def list_offsets(
    topic: Topic, timestamp: int, *, version: int = 11, replica: int = CONSUMER, epoch: int = -1, isolation: int = 0
) -> Question:
    """Ask for the offset of a timestamp."""
    one = {"partition_index": 0, "current_leader_epoch": epoch, "timestamp": timestamp}
    content = {
        "replica_id": replica,
        "isolation_level": isolation,
        "topics": [{"name": topic.name, "partitions": [one]}],
        "timeout_ms": TIMEOUT_MS,
    }
    return Question(keys.LIST_OFFSETS, version, content)


def epoch_end(topic: Topic, epoch: int, *, version: int = 4, current: int = -1, replica: int = DEBUGGING) -> Question:
    """Ask where an epoch ends."""
    one = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    content = {"replica_id": replica, "topics": [{"topic": topic.name, "partitions": [one]}]}
    return Question(keys.OFFSET_FOR_LEADER_EPOCH, version, content)


def delete_records(topic: Topic, offset: int, *, timeout_ms: int = TIMEOUT_MS) -> Question:
    """Delete the records before an offset."""
    one = {"partition_index": 0, "offset": offset}
    content = {"topics": [{"name": topic.name, "partitions": [one]}], "timeout_ms": timeout_ms}
    return Question(keys.DELETE_RECORDS, 2, content)


def mark(topic: Topic, *, coordinator_epoch: int = 0, number: int = 0) -> Question:
    """End the transaction of a producer that has none."""
    marker = {
        "producer_id": 4242,
        "producer_epoch": 1,
        "transaction_result": True,
        "topics": [{"name": topic.name, "partition_indexes": [number]}],
        "coordinator_epoch": coordinator_epoch,
        "transaction_version": 1,
    }
    return Question(keys.WRITE_TXN_MARKERS, 2, {"markers": [marker]})


def reassign(topic: Topic, replicas: Sequence[int], *, partition: int = 0) -> Question:
    """Have the replicas in this order, the first of which is preferred."""
    one = {"partition_index": partition, "replicas": list(replicas)}
    content = {
        "timeout_ms": TIMEOUT_MS,
        "allow_replication_factor_change": True,
        "topics": [{"name": topic.name, "partitions": [one]}],
    }
    return Question(keys.ALTER_PARTITION_REASSIGNMENTS, 0, content)


def elect(topic: Topic, *, partition: int = 0) -> Question:
    """Have the preferred replica lead."""
    content = {
        "election_type": 0,
        "topic_partitions": [{"topic": topic.name, "partitions": [partition]}],
        "timeout_ms": TIMEOUT_MS,
    }
    return Question(keys.ELECT_LEADERS, 2, content)


def describe_producers(topic: Topic) -> Question:
    """Ask for the producers of a partition."""
    return Question(keys.DESCRIBE_PRODUCERS, 0, {"topics": [{"name": topic.name, "partition_indexes": [0]}]})


def that_write(topic: Topic) -> Iterator[Asked]:
    """Questions that change a log, or are refused; each is asked once."""
    for version in range(3, 14):
        for acks in (ALL, 1):
            yield Asked(LEADER, produce(topic, acks=acks, version=version, count=2))
            yield Asked(FOLLOWER, produce(topic, acks=acks, version=version))
    yield Asked(LEADER, produce(topic, acks=2))
    for offset in (-3, 1_000_000, 7, 3, 9):
        yield Asked(LEADER, delete_records(topic, offset))
    yield Asked(FOLLOWER, delete_records(topic, 10))


def that_mark(topic: Topic) -> Iterator[Asked]:
    """Questions that write markers, or are refused; each is asked once. Markers have the time of day in them."""
    for epoch in (5, 4, 5, 6):
        yield Asked(LEADER, mark(topic, coordinator_epoch=epoch))
    yield Asked(FOLLOWER, mark(topic))
    yield Asked(LEADER, mark(topic, number=3))


def that_read(topic: Topic, end: int, racks: Sequence[str]) -> Iterator[Asked]:
    """Questions that change nothing. `end`: the end of the log. `racks`: those of the brokers."""
    for whom in (LEADER, FOLLOWER):
        for rack in (*racks, "elsewhere"):
            yield Asked(whom, fetch(topic, end - 1, rack=rack))
            yield Asked(whom, fetch(topic, end + 1, rack=rack))
        yield from _fetches(topic, whom, end)
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, TIME_MS, TIME_MS + 1, TIME_MS + 1000):
            for replica in (CONSUMER, DEBUGGING, STRANGER):
                yield Asked(whom, list_offsets(topic, timestamp, replica=replica))
        for version in range(1, 12):
            yield Asked(whom, list_offsets(topic, -1, version=version))
        for epoch in (0, 1, 100):
            yield Asked(whom, list_offsets(topic, -1, epoch=epoch))
            yield Asked(whom, list_offsets(topic, -1, epoch=epoch, isolation=1))
            for current in (-1, 0, 1, 100):
                yield Asked(whom, epoch_end(topic, epoch, current=current))
        for version in (2, 3):
            yield Asked(whom, epoch_end(topic, 0, version=version))
        yield Asked(whom, describe_producers(topic))


def _fetches(topic: Topic, whom: str, end: int) -> Iterator[Asked]:
    for version in range(4, 19):
        yield Asked(whom, fetch(topic, end - 1, version=version))
    for version in (10, 11, 15, 16):
        for epoch in (-1, 0, 1, 100):
            yield Asked(whom, fetch(topic, end, version=version, epoch=epoch))
    for offset in (-1, 0, 8, 9, end, end + 1, 1_000_000):
        for isolation in (0, 1):
            yield Asked(whom, fetch(topic, offset, isolation=isolation))
    for last_epoch in (0, 1, 100):
        for offset in (0, end, end + 1):
            yield Asked(whom, fetch(topic, offset, last_epoch=last_epoch))
    for replica in (STRANGER, 3, DEBUGGING):
        for epoch in (-1, 0, 1, 100):
            # That of broker 3 is of an earlier life, so that it does not count.
            yield Asked(whom, fetch(topic, end, replica=replica, replica_epoch=0, epoch=epoch))
