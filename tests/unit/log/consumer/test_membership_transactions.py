"""Members of groups whose offsets are committed by transactions: fencing, stable offsets, exactly once."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from octavo.errors import ConsumerError, MemberFenced, TransactionFailed
from octavo.log import ConsumerGroupMetadata, DataDirectory, Producer
from octavo.log.consumer import Consumer, OffsetAndMetadata
from tests.crash.storage import FastStorage
from tests.unit.log.consumer.parts import T0, T1, numbers, opened, write
from tests.unit.log.consumer.test_membership import throw_out

GROUP = {
    "group.id": "g",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
}


def test_offsets_of_a_member_that_was_thrown_out_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as data, Consumer(data, GROUP) as consumer, Producer(data, transactional_id="x") as producer:
        producer.init_transactions()
        assert consumer.consumer_group_metadata() == ConsumerGroupMetadata("g")
        consumer.subscribe(["t"])
        told = consumer.consumer_group_metadata()
        assert (told.group_id, told.member_id) == ("g", consumer.memberid())
        producer.begin_transaction()
        producer.send_offsets_to_transaction({T0: 0}, told)
        producer.commit_transaction()
        throw_out(data, consumer)
        producer.begin_transaction()
        with pytest.raises(MemberFenced, match="no longer a member of group 'g'"):
            producer.send_offsets_to_transaction({T0: 5}, told)
        with pytest.raises(TransactionFailed):
            producer.commit_transaction()
        producer.abort_transaction()
        assert consumer.committed([T0]) == {T0: OffsetAndMetadata(0)}
    with opened(tmp_path) as data, Consumer(data) as alone, pytest.raises(ConsumerError, match=r"without group\.id"):
        alone.consumer_group_metadata()


@pytest.mark.parametrize(("commits", "first"), [(True, 7), (False, 0)])
def test_who_takes_over_waits_for_the_end_of_a_transaction(tmp_path: Path, commits: bool, first: int) -> None:
    with opened(tmp_path) as data, Producer(data, transactional_id="x") as producer:
        write(data.log(*T0), 0, 10)
        write(data.log(*T1), 100, 3)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction({T0: 7}, "g")
        with Consumer(data, GROUP) as consumer:
            consumer.subscribe(["t"])
            assert numbers(consumer.poll()) == [100, 101, 102]
            (producer.commit_transaction if commits else producer.abort_transaction)()
            assert numbers(consumer.poll()) == list(range(first, 10))


def test_records_are_copied_exactly_once_while_consumers_come_and_go(tmp_path: Path) -> None:
    partitions, each = 4, 100
    with DataDirectory.open(tmp_path, storage=FastStorage()) as data:
        data.create_topic("t", partitions)
        data.create_topic("copy", 1)
        for partition in range(partitions):
            write(data.log("t", partition), partition * each, each)

        def end() -> dict[str, int]:
            with Consumer(data, GROUP, group_id="end") as consumer:
                consumer.assign([("copy", 0)])
                return dict(Counter(str(record.value) for record in consumer.records(timeout=0)))

        def copy(name: str, most: int) -> None:
            read = 0
            with Consumer(data, GROUP) as consumer, Producer(data, transactional_id=name) as producer:
                producer.init_transactions()
                consumer.subscribe(["t"])
                while read < most and len(end()) < partitions * each:
                    records = consumer.poll(timeout=0.01, max_records=10)
                    if not records:
                        continue
                    producer.begin_transaction()
                    for record in records:
                        producer.send("copy", record.value)
                    offsets = {record.topic_partition: record.offset + 1 for record in records}
                    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
                    producer.commit_transaction()
                    read += len(records)

        threads = [
            threading.Thread(target=copy, args=(f"copies-{number}", most))
            for number, most in enumerate((10_000, 30, 60, 10_000))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(end().values()) == {1}
        assert len(end()) == partitions * each
