"""Transactions: committed and aborted, fenced, and found half-way."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from octavo.coordinator.transactions.epochs import LAST_EPOCH
from octavo.coordinator.transactions.partitions import partitions_of
from octavo.coordinator.transactions.requests import WriteMarkers
from octavo.errors import (
    ErrorCode,
    InvalidInput,
    ProducerFenced,
    TransactionIsEnding,
    UnknownPartition,
    UnknownProducer,
    WrongTimeout,
    WrongTransactionState,
)
from octavo.log import DataDirectory, Log
from octavo.log.coordinator import OffsetAndMetadata, ProducerIdentity, markers
from octavo.log.coordinator.coordinator import transaction_hosts
from octavo.log.coordinator.markers import Markers, write_marker
from octavo.log.names import TopicPartition
from octavo.log.origin import Origin
from octavo.records import BatchBuilder, read_batches
from octavo.records.control import end_transaction_marker
from octavo.schemas.metadata.nodes import FeatureLevelRecord
from octavo.schemas.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    TransactionState,
    read_transaction_key,
)
from octavo.schemas.versioned import read_value, write_key, write_value
from tests.clock import Clock
from tests.unit.log.coordinator.parts import T0, T1, TIME_MS, committed, is_decided, opened, send


def states(data: DataDirectory) -> list[TransactionState]:
    """What has been written to `__transaction_state`, in order."""
    found = []
    for record in data.log("__transaction_state", 0).reader().records():
        assert record.key is not None
        assert record.value is not None
        assert read_transaction_key(record.key) is not None
        found.append(TransactionState(read_value(TransactionLogValue, record.value).transaction_status))
    return found


def put(data: DataDirectory, value: TransactionLogValue, transactional_id: str = "id") -> None:
    """Write a state as somebody did who has died since."""
    if "__transaction_state" not in data.topics:
        data.create_topic("__transaction_state", 1, {"cleanup.policy": "compact"})
    builder = BatchBuilder()
    key = write_key(TransactionLogKey(transactional_id=transactional_id))
    builder.append(key, write_value(value, 1), timestamp_ms=data.now_ms())
    data.log("__transaction_state", 0).append(builder.build(), origin=Origin.COORDINATOR)


def state(
    status: TransactionState,
    producer: ProducerIdentity,
    partitions: tuple[int, ...] = (0, 1),
    updated_ms: int = TIME_MS,
    **more: int,
) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        transaction_timeout_ms=60_000,
        transaction_status=status,
        transaction_partitions=(PartitionsSchema(topic="t", partition_ids=partitions),),
        transaction_last_update_timestamp_ms=updated_ms,
        transaction_start_timestamp_ms=TIME_MS,
        **more,
    )


def mark(data: DataDirectory, producer: ProducerIdentity, place: TopicPartition, *, commit: bool, time_ms: int) -> None:
    marker = end_transaction_marker(
        commit,
        timestamp_ms=time_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        coordinator_epoch=0,
    )
    data.log(*place).append(marker, origin=Origin.COORDINATOR)


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_ends_in_all_its_partitions(tmp_path: Path, commit: bool) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        producer = coordinator.init_producer_id("id")
        coordinator.add_partitions("id", producer, [T0])
        send(data, producer, T0, b"a", 0)
        coordinator.add_partitions("id", producer, [T0, T1])
        coordinator.add_partitions("id", producer, [T1])
        send(data, producer, T1, b"b", 0)
        assert not is_decided(data, T0)
        assert committed(data, T0) == committed(data, T1) == []
        coordinator.end_transaction("id", producer, commit)
        assert is_decided(data, T0)
        assert is_decided(data, T1)
        assert committed(data, T0) + committed(data, T1) == ([b"a", b"b"] if commit else [])
        coordinator.end_transaction("id", producer, commit)  # once more is no mistake
        prepare, complete = (
            (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
            if commit
            else (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
        )
        assert states(data) == [
            TransactionState.EMPTY,
            TransactionState.ONGOING,
            TransactionState.ONGOING,
            prepare,
            complete,
        ]
        with pytest.raises(WrongTransactionState) as refused:
            coordinator.end_transaction("id", producer, not commit)
        assert refused.value.code is ErrorCode.INVALID_TXN_STATE


def test_the_topic_is_made_as_kafka_makes_it_but_for_its_partitions(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        data.coordinator.init_producer_id("id")
        topic = data.topics["__transaction_state"]
        assert len(topic.partitions) == 1
        assert topic.config == {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": "1",
            "segment.bytes": "104857600",
            "unclean.leader.election.enable": "false",
        }
        assert data.coordinator.transaction("id") == TransactionLogValue(
            producer_id=0,
            previous_producer_id=0,
            producer_epoch=0,
            transaction_timeout_ms=60_000,
            transaction_status=TransactionState.EMPTY,
            transaction_partitions=None,
            transaction_last_update_timestamp_ms=TIME_MS,
            transaction_start_timestamp_ms=-1,
        )
        assert data.coordinator.transaction("none") is None


def test_one_transaction_follows_another_with_the_same_epoch(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        for number in range(6):
            data.coordinator.add_partitions("id", producer, [T0])
            send(data, producer, T0, b"%d" % number, number)
            data.coordinator.end_transaction("id", producer, number % 2 == 0)
        assert committed(data, T0) == [b"0", b"2", b"4"]


def test_a_new_producer_fences_the_old_off_and_aborts_what_it_has_open(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        old = coordinator.init_producer_id("id")
        coordinator.add_partitions("id", old, [T0])
        send(data, old, T0, b"lost", 0)
        new = coordinator.init_producer_id("id")
        assert new == ProducerIdentity(old.producer_id, old.epoch + 2)  # one was for fencing
        assert is_decided(data, T0)
        with pytest.raises(ProducerFenced) as fenced:
            coordinator.add_partitions("id", old, [T0])
        assert fenced.value.code is ErrorCode.PRODUCER_FENCED
        with pytest.raises(ProducerFenced):
            coordinator.end_transaction("id", old, True)
        with pytest.raises(UnknownProducer) as unknown:
            coordinator.add_partitions("id", ProducerIdentity(77, 0), [T0])
        assert unknown.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        with pytest.raises(UnknownProducer):
            coordinator.end_transaction("never", new, True)
        coordinator.add_partitions("id", new, [T0])
        send(data, new, T0, b"kept", 0)
        coordinator.end_transaction("id", new, True)
        assert committed(data, T0) == [b"kept"]


def test_without_anything_open_one_epoch_is_enough(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        assert [data.coordinator.init_producer_id("id").epoch for _ in range(3)] == [0, 1, 2]
    with opened(tmp_path) as data:
        assert data.coordinator.init_producer_id("id") == ProducerIdentity(0, 3)


@pytest.mark.parametrize("epoch", [LAST_EPOCH - 1, LAST_EPOCH, LAST_EPOCH + 1])
@pytest.mark.parametrize("is_open", [True, False])
def test_when_the_epochs_are_used_up_there_is_a_new_id(tmp_path: Path, epoch: int, is_open: bool) -> None:
    old = ProducerIdentity(5, min(epoch, LAST_EPOCH) if is_open else epoch)
    with opened(tmp_path) as data:
        put(data, state(TransactionState.ONGOING if is_open else TransactionState.COMPLETE_ABORT, old, (0,)))
        if is_open:
            send(data, old, T0, b"lost", 0)
        new = data.coordinator.init_producer_id("id")
        if epoch == LAST_EPOCH - 1 and not is_open:
            assert new == ProducerIdentity(5, LAST_EPOCH)
        else:
            is_used_up = is_open and epoch >= LAST_EPOCH  # the abort takes the new id
            assert new.epoch == (1 if is_used_up else 0)
            assert new.producer_id != 5
        assert is_decided(data, T0)
        assert committed(data, T0) == []


def test_what_was_decided_before_a_crash_is_finished_when_the_state_is_read(tmp_path: Path) -> None:
    first, second = ProducerIdentity(5, 0), ProducerIdentity(6, 0)
    with opened(tmp_path) as data:
        for producer, value in ((first, b"commit"), (second, b"abort")):
            send(data, producer, T0, value, 0)
            send(data, producer, T1, value, 0)
        put(data, state(TransactionState.PREPARE_COMMIT, first), "first")
        put(data, state(TransactionState.PREPARE_ABORT, second), "second")
        mark(data, first, T1, commit=True, time_ms=TIME_MS)  # this far it came
    with opened(tmp_path) as data:
        assert not is_decided(data, T0)
        data.coordinator.finish_prepared()
        for place in (T0, T1):
            assert is_decided(data, place)
            assert committed(data, place) == [b"commit"]
        assert states(data)[2:] == [TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
        assert data.coordinator.init_producer_id("first") == ProducerIdentity(5, 1)


def test_data_of_the_next_transaction_are_not_committed_with_the_one_before(tmp_path: Path) -> None:
    """The power went: of the end of the first transaction, and of the second, only the data are on the disk."""
    producer = ProducerIdentity(5, 0)
    clock = Clock()
    with opened(tmp_path, clock) as data:
        send(data, producer, T0, b"older", 0)
        mark(data, producer, T0, commit=True, time_ms=TIME_MS - 1)
        send(data, producer, T0, b"first", 1)
        send(data, producer, T1, b"first", 0)
        put(data, state(TransactionState.PREPARE_COMMIT, producer))
        mark(data, producer, T0, commit=True, time_ms=TIME_MS)
        send(data, producer, T0, b"second", 2)
    with opened(tmp_path, clock) as data:
        data.coordinator.finish_prepared()
        assert committed(data, T0) == [b"older", b"first"]
        assert committed(data, T1) == [b"first"]
        assert is_decided(data, T0)
        new = data.coordinator.init_producer_id("id")
        assert new == ProducerIdentity(5, 1)
        data.coordinator.add_partitions("id", new, [T0])
        send(data, new, T0, b"third", 0)
        data.coordinator.end_transaction("id", new, True)
        assert committed(data, T0) == [b"older", b"first", b"third"]


@pytest.mark.parametrize("is_known", [True, False])
def test_data_that_are_open_though_nobody_knows_are_aborted(tmp_path: Path, is_known: bool) -> None:
    producer = ProducerIdentity(5, 0)
    with opened(tmp_path) as data:
        put(data, state(TransactionState.ONGOING if is_known else TransactionState.COMPLETE_COMMIT, producer, (0,)))
        send(data, producer, T1, b"stray", 0)
        data.coordinator.init_producer_id("id")
        assert is_decided(data, T1)
        assert committed(data, T1) == []


def test_a_transaction_of_kafkas_newer_kind_is_finished_with_its_next_id(tmp_path: Path) -> None:
    before, after = ProducerIdentity(5, LAST_EPOCH), ProducerIdentity(5, LAST_EPOCH + 1)
    with opened(tmp_path) as data:
        send(data, before, T0, b"v", 0)
        value = state(TransactionState.PREPARE_COMMIT, after, (0,), next_producer_id=900, client_transaction_version=2)
        put(data, value)
        assert data.coordinator.init_producer_id("id") == ProducerIdentity(900, 1)
        assert committed(data, T0) == [b"v"]


def test_what_is_written_in_a_transaction_is_in_the_page_cache_and_its_end_is_known(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as data:
        producer = data.coordinator.init_producer_id("id")
        data.coordinator.add_partitions("id", producer, [T0, T1])
        known = data.coordinator.transaction("id")
        assert known is not None
        assert partitions_of(known) == {T0, T1}
        assert known.transaction_start_timestamp_ms == known.transaction_last_update_timestamp_ms
        send(data, producer, T0, b"v", 0)
        data.coordinator.end_transaction("id", producer, True)
        log = data.log(*T0)
        [_, marker] = read_batches(log.read(0, 1 << 20).records)
        assert (marker.producer_id, marker.producer_epoch, marker.base_sequence) == (producer.producer_id, 0, -1)
        assert marker.is_control
        assert marker.is_transactional


def test_a_commit_is_on_the_disk_before_it_is_decided_and_decided_before_it_is_seen(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        data.coordinator.add_partitions("id", producer, [T0])
        send(data, producer, T0, b"v", 0)
        state_log, log = data.log("__transaction_state", 0), data.log(*T0)
        assert log.recovery_point == 0
        data.coordinator.end_transaction("id", producer, True)
        assert log.recovery_point == 2  # with the marker
        assert state_log.recovery_point == 3  # EMPTY, ONGOING, PREPARE_COMMIT; not COMPLETE_COMMIT


def test_transactions_whose_time_is_over_are_aborted(tmp_path: Path) -> None:
    clock = Clock()
    with opened(tmp_path, clock) as data:
        coordinator = data.coordinator
        slow = coordinator.init_producer_id("slow", timeout_ms=1_000)
        quick = coordinator.init_producer_id("quick", timeout_ms=60_000)
        for transactional_id, producer in (("slow", slow), ("quick", quick)):
            coordinator.add_partitions(transactional_id, producer, [T0])
            send(data, producer, T0, transactional_id.encode(), 0)
        clock.now_ms += 1_000
        assert coordinator.abort_timed_out(clock.now_ms) == []
        clock.now_ms += 1_000
        assert coordinator.abort_timed_out(clock.now_ms) == ["slow"]
        with pytest.raises(ProducerFenced):
            coordinator.end_transaction("slow", slow, True)
        coordinator.end_transaction("quick", quick, True)
        assert committed(data, T0) == [b"quick"]


def test_a_transaction_that_never_began_does_not_end(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        producer = data.coordinator.init_producer_id("id")
        with pytest.raises(WrongTransactionState, match="EMPTY"):
            data.coordinator.end_transaction("id", producer, True)


def test_what_kafka_would_not_take_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        with pytest.raises(InvalidInput):
            data.coordinator.init_producer_id("")
        for timeout_ms in (0, 900_001):
            with pytest.raises(WrongTimeout) as refused:
                data.coordinator.init_producer_id("id", timeout_ms)
            assert refused.value.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT
        producer = data.coordinator.init_producer_id("id")
        with pytest.raises(UnknownPartition):
            data.coordinator.add_partitions("id", producer, [TopicPartition("none", 0)])
        assert states(data) == [TransactionState.EMPTY]


def test_a_topic_may_be_deleted_before_its_transaction_ends(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        data.create_topic("gone")
        producer = data.coordinator.init_producer_id("id")
        data.coordinator.add_partitions("id", producer, [T0, TopicPartition("gone", 0)])
        send(data, producer, T0, b"v", 0)
        data.delete_topic("gone")
        data.coordinator.end_transaction("id", producer, True)
        assert committed(data, T0) == [b"v"]


def test_producers_in_many_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    with opened(tmp_path) as data:

        def work(name: str) -> None:
            producer = data.coordinator.init_producer_id(name)
            for number in range(20):
                data.coordinator.add_partitions(name, producer, [T0, T1])
                send(data, producer, T0, b"%d" % number, number)
                send(data, producer, T1, b"%d" % number, number)
                data.coordinator.commit_offsets(name, {T0: OffsetAndMetadata(number)}, name, producer)
                data.coordinator.end_transaction(name, producer, number % 2 == 1)

        threads = [threading.Thread(target=work, args=(f"id {number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = sorted(b"%d" % number for number in range(1, 20, 2)) * 4
        for place in (T0, T1):
            assert is_decided(data, place)
            assert sorted(value or b"" for value in committed(data, place)) == sorted(expected)
        assert data.coordinator.committed("id 3") == {T0: OffsetAndMetadata(19)}


def test_an_end_that_failed_half_way_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        producer = coordinator.init_producer_id("id")
        coordinator.add_partitions("id", producer, [T0, T1])
        for place in (T0, T1):
            send(data, producer, place, b"v", 0)

        def fail(log: Log, *arguments: int, commit: bool, timestamp_ms: int) -> None:
            if log.partition == T1:
                raise OSError("no room")
            write_marker(log, *arguments, commit=commit, timestamp_ms=timestamp_ms)

        with monkeypatch.context() as patch:
            patch.setattr(markers, "write_marker", fail)
            with pytest.raises(OSError, match="no room"):
                coordinator.end_transaction("id", producer, True)
        with pytest.raises(TransactionIsEnding) as ending:
            coordinator.add_partitions("id", producer, [T0])
        assert ending.value.code is ErrorCode.CONCURRENT_TRANSACTIONS
        with pytest.raises(WrongTransactionState):
            coordinator.end_transaction("id", producer, False)
        coordinator.end_transaction("id", producer, True)
        for place in (T0, T1):
            assert committed(data, place) == [b"v"]
            assert is_decided(data, place)


def test_a_directory_of_an_older_cluster_gets_records_that_it_can_read(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        data._metadata._append([FeatureLevelRecord(name="transaction.version", feature_level=0)])
        producer = data.coordinator.init_producer_id("id")
        data.coordinator.add_partitions("id", producer, [T0])
        values = [record.value or b"" for record in data.log("__transaction_state", 0).reader().records()]
        assert [value[:2] for value in values] == [b"\x00\x00", b"\x00\x00"]
        data._metadata._append([FeatureLevelRecord(name="transaction.version", feature_level=2)])
        data.coordinator.add_partitions("id", producer, [T1])  # the level is raised while the directory is open
        *_, last = data.log("__transaction_state", 0).reader().records()
        assert (last.value or b"")[:2] == b"\x00\x01"


def test_markers_that_take_long_are_not_written_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        producer = coordinator.init_producer_id("id")
        coordinator.add_partitions("id", producer, [T0, T1])
        send(data, producer, T0, b"a", 0)
        send(data, producer, T1, b"b", 0)
        host = transaction_hosts(data).host_for("id")
        written: list[str] = []

        def write_slowly(log: Log, *arguments: int, commit: bool, timestamp_ms: int) -> None:
            host.run(lambda shard: shard.repeat_markers("id"))  # its time has come
            written.append(log.partition.folder)
            write_marker(log, *arguments, commit=commit, timestamp_ms=timestamp_ms)

        monkeypatch.setattr(markers, "write_marker", write_slowly)
        coordinator.end_transaction("id", producer, commit=True)
        assert written == [T0.folder, T1.folder]
        assert states(data)[-2:] == [TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT]


def test_markers_that_come_late_do_not_end_the_next_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as data:
        coordinator = data.coordinator
        producer = coordinator.init_producer_id("id")
        host = transaction_hosts(data).host_for("id")
        left: list[WriteMarkers] = []
        coordinator.add_partitions("id", producer, [T0])
        send(data, producer, T0, b"a", 0)
        with monkeypatch.context() as patched:
            patched.setattr(Markers, "write", lambda self, host, wanted, durable: left.append(wanted))
            coordinator.end_transaction("id", producer, commit=True)  # another thread is to write them
        host.run(lambda shard: shard.repeat_markers("id"))  # but their time comes before
        coordinator.add_partitions("id", producer, [T0])
        send(data, producer, T0, b"b", 1)
        transaction_hosts(data).markers.write(host, left[0], False)
        assert len(data.log(*T0).producers.open_transactions) == 1
        coordinator.end_transaction("id", producer, commit=False)
        assert committed(data, T0) == [b"a"]


def test_nothing_is_kept_for_an_id_that_nobody_uses_at_the_moment(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        transactions = transaction_hosts(data)
        for number in range(3):
            data.coordinator.init_producer_id(f"id-{number}")
        assert not transactions._locks
        lock = transactions._lock_of("id-0")
        assert transactions._lock_of("id-0") is lock
