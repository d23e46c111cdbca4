"""Which partitions and records are part of a transaction, and the markers that end it there."""

from __future__ import annotations

from tests.server.sequences.producer import Producer
from tests.server.sequences.script import Script
from tests.server.sequences.sequence import sequence


@sequence()
def partitions_are_added(s: Script) -> None:
    p = Producer(s)
    p.add(0)
    p.init()
    p.add(0, 7)
    p.add(0, topic="missing")
    p.describe()
    p.add(0)
    p.add(0)
    p.add(0, 1, producer_epoch=5)
    p.add(1, producer_id=999_999)
    p.add(1, transactional_id="")
    p.add_batched(0, 1, verify=True)
    p.add_batched(0, verify=True)
    p.add_batched(1, verify=True, producer_epoch=7)
    p.add_batched(1, verify=True, producer_id=999_999)
    p.add_batched(1, verify=False)
    p.add_batched(1, 7, verify=True)
    p.add_batched(1, verify=False, version=4)
    p.describe()
    p.end(commit=True)
    p.add_batched(0, verify=True)
    p.describe()


@sequence()
def records_without_added_partitions(s: Script) -> None:
    p = Producer(s)
    p.init()
    p.produce("a")
    p.add(0)
    p.produce("a", 1)
    p.produce("a")
    p.produce("a", producer_epoch=7)
    p.produce("a", base_sequence=5)
    p.produce("a", producer_id=999_999)
    p.produce("a", transactional=False)
    p.describe_producers(0, 1)
    p.end(commit=True)
    p.produce("late")
    p.fetch()


@sequence()
def records_of_version_2_that_are_refused(s: Script) -> None:
    p, q = Producer(s), Producer(s, "q")
    p.init()
    p.produce("a", version=12, base_sequence=5)
    p.describe()
    p.produce("a", version=12, producer_epoch=7)
    p.produce("a", version=12)
    p.produce("a", 7, version=12)
    p.produce("a", version=13, partition=1)
    q.init()
    q.settle()
    p.produce("late", version=12)
    q.init()
    p.produce("late", version=12)
    p.produce("late", 1, version=12)
    q.fetch()
    q.describe_producers(0, 1)


@sequence()
def markers_of_an_administrator(s: Script) -> None:
    p = Producer(s)
    p.init()
    p.add(0)
    p.produce("a")
    p.describe_producers()
    p.write_marker(commit=False, partition=7)
    p.write_marker(commit=False, producer_epoch=-1)
    p.write_marker(commit=False, coordinator_epoch=-1)
    p.write_marker(commit=False)
    p.fetch()
    p.describe_producers()
    p.describe()
    p.write_marker(commit=True)
    p.end(commit=True)
    p.describe()
    p.write_marker(commit=True, producer_epoch=5, coordinator_epoch=9)
    p.write_marker(commit=True, producer_epoch=4, coordinator_epoch=9)
    p.write_marker(commit=True, producer_epoch=5, coordinator_epoch=8)
    p.describe_producers()


@sequence()
def markers_of_version_2(s: Script) -> None:
    p = Producer(s)
    p.init()
    p.produce("a", version=12)
    p.write_marker(commit=True, version=2, transaction_version=2)
    p.write_marker(commit=True, version=2, transaction_version=2, producer_epoch=p.epoch + 1)
    p.write_marker(commit=True, version=2, transaction_version=2, producer_epoch=p.epoch + 1)
    p.write_marker(commit=True, version=2, transaction_version=2)
    p.fetch()
    p.describe_producers()


@sequence()
def several_transactions_in_one_partition(s: Script) -> None:
    p, q = Producer(s), Producer(s, "q", "other")
    p.init()
    q.init()
    p.add(0)
    q.add(0)
    p.produce("a")
    q.produce("b")
    p.produce("c")
    p.end(commit=True)
    p.fetch()
    p.list_offsets()
    q.describe_producers()
    q.end(commit=False)
    p.fetch()
    p.fetch(offset=3)
    p.list_offsets()
    q.describe_producers()
