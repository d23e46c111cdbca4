"""Transactions over the wire, of both versions: identities, partitions, offsets, endings, time-outs, restarts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.wire import api_keys
from octavo.coordinator.transactions.epochs import LAST_EPOCH
from octavo.coordinator.transactions.transaction_shard import TransactionShard
from octavo.errors import ErrorCode
from octavo.log import DataDirectory, Isolation, Log
from octavo.log.coordinator.coordinator import transaction_hosts
from octavo.log.coordinator.markers import write_marker
from octavo.log.origin import Origin
from octavo.records import BatchBuilder
from octavo.schemas.transaction_state import TransactionLogKey, TransactionLogValue
from octavo.schemas.versioned import write_key, write_value
from octavo.server.serving import Server, serve
from tests.server.group_client import GroupClient

FENCED, WAIT, STATE = ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
ABORTABLE, OLD_EPOCH = ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_PRODUCER_EPOCH
CONFIG = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "10"}
NUMBERS = itertools.count()
PATIENCE_S = 60


class Transactional:
    """A producer with a transactional id, and the identity that it was given last."""

    def __init__(self, address: str, name: str) -> None:
        self.client = GroupClient(address)
        self.name = name
        self.producer_id = self.epoch = -1

    def ask(self, api_key: int, version: int, **content: Any) -> Any:
        return self.client.ask(api_key, version, **content)

    def _identity(self) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.producer_id, "producer_epoch": self.epoch}

    def init(self, timeout_ms: int = 60_000, **more: Any) -> int:
        content = {"transactional_id": self.name, "transaction_timeout_ms": timeout_ms}
        answer = self.ask(api_keys.INIT_PRODUCER_ID, 5, **{**content, "producer_id": -1, "producer_epoch": -1, **more})
        if answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)

    def add(self, *partitions: int, topic: str = "t", version: int = 3) -> list[int]:
        topics = [{"name": topic, "partitions": list(partitions)}]
        content = {f"v3_and_below_{key}": value for key, value in self._identity().items()}
        answer = self.ask(api_keys.ADD_PARTITIONS_TO_TXN, version, **content, v3_and_below_topics=topics)
        [results] = answer.results_by_topic_v3_and_below
        return [each.partition_error_code for each in results.results_by_partition]

    def produce(self, value: bytes, sequence: int, version: int, partition: int = 0) -> tuple[int, str | None]:
        builder = BatchBuilder(
            producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=sequence, transactional=True
        )
        builder.append(b"key", value, timestamp_ms=int(time.time() * 1000))  # a marker after an old one would roll
        topics = [{"name": "t", "partition_data": [{"index": partition, "records": builder.build()}]}]
        answer = self.ask(
            api_keys.PRODUCE, version, transactional_id=self.name, acks=-1, timeout_ms=1000, topic_data=topics
        )
        [result] = answer.responses[0].partition_responses
        return result.error_code, getattr(result, "error_message", None)

    def commit_offset(self, group: str, offset: int, version: int) -> int:
        offsets = [{"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}]
        content = {"group_id": group, "topics": [{"name": "t", "partitions": offsets}]}
        member = {"generation_id": -1, "member_id": "", "group_instance_id": None}
        answer = self.ask(api_keys.TXN_OFFSET_COMMIT, version, **self._identity(), **content, **member)
        return int(answer.topics[0].partitions[0].error_code)

    def end(self, version: int, *, commit: bool, epoch: int | None = None) -> int:
        asked = self._identity() | ({} if epoch is None else {"producer_epoch": epoch})
        answer = self.ask(api_keys.END_TXN, version, **asked, committed=commit)
        if answer.error_code == ErrorCode.NONE and version >= 5:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)

    def described(self) -> Any:
        [state] = self.ask(api_keys.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.name]).transaction_states
        return state


@pytest.fixture(scope="module")
def broker() -> Iterator[Server]:
    with serve(config=CONFIG) as server:
        prepare(server)
        yield server


def prepare(server: Server) -> None:
    """Create a topic, and what the coordinators need."""
    server.directory.create_topic("t", 2)
    with GroupClient(server.bootstrap_servers) as client:
        for key_type in (0, 1):
            found = client.ask(api_keys.FIND_COORDINATOR, 4, key_type=key_type, coordinator_keys=["any"])
            assert found.coordinators[0].error_code == ErrorCode.NONE


@pytest.fixture
def producer(broker: Server) -> Iterator[Transactional]:
    made = Transactional(broker.bootstrap_servers, f"id-{next(NUMBERS)}")
    with made.client:
        yield made


def committed(server: Server, partition: int = 0) -> list[bytes | None]:
    reader = server.directory.log("t", partition).reader(isolation=Isolation.READ_COMMITTED)
    return [record.value for record in reader.records()]


def test_version_1_adds_partitions_first_and_keeps_its_epoch(broker: Server, producer: Transactional) -> None:
    assert producer.init() == ErrorCode.NONE
    name = producer.name.encode()
    assert producer.produce(name, 0, 10) == (STATE, "Partition was not added to the transaction")
    assert producer.produce(name, 0, 11)[0] == ABORTABLE
    assert producer.end(4, commit=True) == STATE
    assert producer.add(0, 7) == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert producer.described().transaction_state == "Empty"
    assert producer.add(0) == [ErrorCode.NONE]
    assert producer.produce(name, 0, 10) == (ErrorCode.NONE, None)
    assert producer.produce(name, 1, 11)[0] == ErrorCode.NONE
    assert name not in committed(broker)
    assert producer.end(4, commit=True) == ErrorCode.NONE
    assert committed(broker).count(name) == 2
    assert producer.end(4, commit=True) == ErrorCode.NONE  # its answer was lost
    assert producer.end(4, commit=False) == STATE
    assert producer.add(1) == [ErrorCode.NONE]
    assert producer.end(4, commit=False, epoch=5) == FENCED
    assert producer.end(1, commit=False, epoch=5) == OLD_EPOCH
    assert producer.end(4, commit=False) == ErrorCode.NONE


def test_version_2_adds_by_writing_and_gets_an_epoch_per_transaction(broker: Server, producer: Transactional) -> None:
    producer.init()
    name = producer.name.encode()
    assert producer.produce(name, 3, 12)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.produce(name, 0, 12)[0] == ErrorCode.NONE
    state = producer.described()
    assert (state.transaction_state, [list(each.partitions) for each in state.topics]) == ("Ongoing", [[0]])
    assert producer.end(5, commit=True) == ErrorCode.NONE
    assert producer.epoch == 1
    assert committed(broker).count(name) == 1
    assert producer.end(5, commit=True, epoch=0) == ErrorCode.NONE  # its answer was lost
    assert producer.epoch == 1
    assert producer.produce(b"next", 0, 12, partition=1)[0] == ErrorCode.NONE
    assert producer.end(5, commit=True, epoch=0) == FENCED  # one that is late does not end the next transaction
    producer.epoch = 0
    assert producer.produce(b"late", 1, 12)[0] == OLD_EPOCH
    producer.epoch = 1
    assert producer.end(5, commit=False) == ErrorCode.NONE
    assert producer.end(5, commit=False) == ErrorCode.NONE  # nothing was written, and the epoch grows
    assert producer.epoch == 3
    assert b"next" not in committed(broker, 1)


@pytest.mark.parametrize(("version", "code"), [(3, STATE), (4, ABORTABLE), (5, ErrorCode.NONE)])
def test_offsets_count_when_their_transaction_is_committed(
    broker: Server, producer: Transactional, version: int, code: ErrorCode
) -> None:
    group = f"group of {producer.name}"
    producer.init()
    assert producer.commit_offset(group, 7, version) == code
    if code is not ErrorCode.NONE:
        added = producer.ask(api_keys.ADD_OFFSETS_TO_TXN, 4, **producer._identity(), group_id=group)
        assert added.error_code == ErrorCode.NONE
        assert producer.commit_offset(group, 7, version) == ErrorCode.NONE
    coordinator = broker.directory.coordinator
    assert coordinator.committed(group) == {}
    assert producer.end(5, commit=True) == ErrorCode.NONE
    assert [each.offset for each in coordinator.committed(group).values() if each] == [7]
    producer.epoch = 0
    assert producer.commit_offset(group, 8, 5) == OLD_EPOCH


def test_a_second_producer_fences_the_first(broker: Server, producer: Transactional) -> None:
    producer.init()
    producer.produce(b"zombie", 0, 12)
    second = Transactional(broker.bootstrap_servers, producer.name)
    with second.client:
        assert second.init() == WAIT  # until the transaction is aborted
        assert second.init() == ErrorCode.NONE
        assert second.epoch == 2
        assert producer.add(0) == [FENCED]
        assert producer.add(0, version=1) == [OLD_EPOCH]
        assert producer.produce(b"zombie", 1, 12)[0] == OLD_EPOCH
        assert producer.end(5, commit=True) == FENCED
    assert b"zombie" not in committed(broker)


def test_a_producer_whose_id_is_over_is_fenced_where_it_has_written(broker: Server, producer: Transactional) -> None:
    host = broker.broker.coordinators.find_transaction_host(producer.name)
    assert host is not None
    producer.init()
    producer.produce(b"zombie", 0, 12)
    host.run(lambda shard: use_epochs_up(shard, producer.name))
    producer.epoch = LAST_EPOCH
    assert producer.produce(b"more of the zombie", 0, 12)[0] == ErrorCode.NONE
    assert producer.commit_offset("group of a zombie", 1, 5) == ErrorCode.NONE
    second = Transactional(broker.bootstrap_servers, producer.name)
    with second.client:
        while second.init() == WAIT:
            pass
        assert second.producer_id != producer.producer_id
    assert producer.produce(b"zombie", 1, 12)[0] == OLD_EPOCH
    assert producer.commit_offset("group of a zombie", 2, 5) == OLD_EPOCH
    assert producer.produce(b"zombie", 0, 12, partition=1)[0] == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert producer.end(5, commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert not {b"zombie", b"more of the zombie"} & set(committed(broker))


def use_epochs_up(shard: TransactionShard, name: str) -> None:
    """Have the last epoch that a producer gets be that of now."""
    value = shard.transactions[name]
    shard.write(TransactionLogKey(transactional_id=name), replace(value, producer_epoch=LAST_EPOCH), 1)


def test_what_is_wrong_whatever_the_state_is(producer: Transactional) -> None:
    assert producer.init(timeout_ms=0) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert producer.init(timeout_ms=900_001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert producer.init(transactional_id="") == ErrorCode.INVALID_REQUEST
    assert producer.init(producer_id=3) == ErrorCode.INVALID_REQUEST
    assert producer.end(5, commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert producer.described().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_transactions_are_listed_by_state_and_producer(producer: Transactional) -> None:
    producer.init()
    producer.produce(b"open", 0, 12)
    asked = {"state_filters": ["Ongoing", "Sleeping"], "producer_id_filters": [producer.producer_id]}
    listed = producer.ask(api_keys.LIST_TRANSACTIONS, 1, **asked, duration_filter=-1)
    assert list(listed.unknown_state_filters) == ["Sleeping"]
    [state] = listed.transaction_states
    assert (state.transactional_id, state.transaction_state) == (producer.name, "Ongoing")
    assert producer.ask(api_keys.LIST_TRANSACTIONS, 1, **asked, duration_filter=60_000).transaction_states == ()
    by_name = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
    for pattern, names in ((f"{producer.name[:-1]}.", 1), ("id", 0)):
        found = producer.ask(api_keys.LIST_TRANSACTIONS, 2, **by_name, transactional_id_pattern=pattern)
        assert [each.transactional_id for each in found.transaction_states].count(producer.name) == names
    wrong = producer.ask(api_keys.LIST_TRANSACTIONS, 2, **by_name, transactional_id_pattern="(")
    assert wrong.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert producer.end(5, commit=False) == ErrorCode.NONE


def test_brokers_verify_partitions_in_batches(producer: Transactional) -> None:
    producer.init()
    producer.produce(b"v", 0, 12)
    asked = {**producer._identity(), "topics": [{"name": "t", "partitions": [0, 1]}], "verify_only": True}
    answer = producer.ask(api_keys.ADD_PARTITIONS_TO_TXN, 5, transactions=[asked])
    [result] = answer.results_by_transaction
    codes = [each.partition_error_code for each in result.topic_results[0].results_by_partition]
    assert codes == [ErrorCode.NONE, ABORTABLE]
    assert producer.end(5, commit=False) == ErrorCode.NONE


def test_a_marker_ends_a_transaction_that_hangs(broker: Server, producer: Transactional) -> None:
    producer.init()
    producer.produce(b"hangs", 0, 12, partition=1)
    log = broker.directory.log("t", 1)
    assert log.last_stable_offset < log.end_offset
    topics = [{"name": "t", "partition_indexes": [1]}, {"name": "none", "partition_indexes": [0]}]
    marker = {"producer_id": producer.producer_id, "producer_epoch": 0, "transaction_result": False, "topics": topics}
    answer = producer.ask(api_keys.WRITE_TXN_MARKERS, 1, markers=[{**marker, "coordinator_epoch": 0}])
    codes = {topic.name: topic.partitions[0].error_code for topic in answer.markers[0].topics}
    assert codes == {"t": ErrorCode.NONE, "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert log.last_stable_offset == log.end_offset
    assert producer.end(5, commit=False) == ErrorCode.NONE


def test_records_that_get_to_the_log_after_the_marker_are_refused(
    broker: Server, producer: Transactional, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Log.append

    def late(log: Log, batches: bytes, **options: Any) -> Any:
        if "within" in options:  # another thread is faster
            write_marker(log, producer.producer_id, producer.epoch, 0, commit=False, timestamp_ms=0)
        return append(log, batches, **options)

    assert producer.init() == ErrorCode.NONE
    assert producer.add(0) == [ErrorCode.NONE]
    assert producer.produce(b"first", 0, 11)[0] == ErrorCode.NONE
    with monkeypatch.context() as patched:
        patched.setattr(Log, "append", late)
        assert producer.produce(b"late", 1, 11)[0] == STATE
    assert not broker.directory.log("t", 0).producers.has_open(producer.producer_id, producer.epoch)


def test_a_transaction_whose_time_is_over_is_aborted(broker: Server, producer: Transactional) -> None:
    producer.init(timeout_ms=1)
    producer.produce(b"slow", 0, 12)
    deadline = time.monotonic() + PATIENCE_S
    while producer.described().transaction_state != "CompleteAbort":
        assert time.monotonic() < deadline
    assert producer.end(5, commit=True) == STATE  # its epoch is that of the transaction before
    assert b"slow" not in committed(broker)


def test_a_transaction_goes_on_after_a_restart(tmp_path: Path) -> None:
    with serve(tmp_path) as server:
        prepare(server)
        producer = Transactional(server.bootstrap_servers, "id")
        with producer.client:
            producer.init()
            assert producer.produce(b"before", 0, 12)[0] == ErrorCode.NONE
            assert producer.commit_offset("g", 5, 5) == ErrorCode.NONE
    with serve(tmp_path) as server:
        again = Transactional(server.bootstrap_servers, "id")
        again.producer_id, again.epoch = producer.producer_id, producer.epoch
        with again.client:
            assert again.produce(b"after", 1, 12)[0] == ErrorCode.NONE
            assert committed(server) == []
            assert again.end(5, commit=True) == ErrorCode.NONE
            assert committed(server) == [b"before", b"after"]
            assert [each.offset for each in server.directory.coordinator.committed("g").values() if each] == [5]


def test_nobody_coordinates_before_the_topic_exists() -> None:
    with serve() as server:
        server.directory.create_topic("t")
        producer = Transactional(server.bootstrap_servers, "id")
        with producer.client:
            assert producer.init() == ErrorCode.NOT_COORDINATOR
            assert producer.init(transactional_id="") == ErrorCode.INVALID_REQUEST
            producer.producer_id = producer.epoch = 0
            assert producer.produce(b"v", 0, 12)[0] == ErrorCode.NOT_ENOUGH_REPLICAS
            assert producer.end(5, commit=True) == ErrorCode.NOT_COORDINATOR


def test_a_state_that_kafka_does_not_have_is_told_as_unknown(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as directory:
        value = TransactionLogValue(
            producer_id=7,
            producer_epoch=0,
            transaction_timeout_ms=60_000,
            transaction_status=99,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=0,
            transaction_start_timestamp_ms=-1,
        )
        builder = BatchBuilder()
        builder.append(write_key(TransactionLogKey(transactional_id="x")), write_value(value, 0), timestamp_ms=0)
        topic = transaction_hosts(directory).partition_for("x")
        directory.log(*topic).append(builder.build(), origin=Origin.COORDINATOR)
    with serve(tmp_path) as server:
        described = Transactional(server.bootstrap_servers, "x")
        assert described.described().transaction_state == "Unknown"
        listed = described.ask(
            api_keys.LIST_TRANSACTIONS, 1, state_filters=[], producer_id_filters=[], duration_filter=-1
        )
        assert [each.transaction_state for each in listed.transaction_states] == ["Unknown"]
