"""Which partition a record goes to: murmur2 of its key, the sticky one, or the one that was asked for."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pytest
from aiokafka.partitioner import murmur2 as murmur2_of_aiokafka

from octavo.errors import InvalidInput
from octavo.log.producer.partitioner import Sticky
from octavo.records.kernels import kernels
from tests.unit.log.producer.producing import producing, records, values

# From the tests of Apache Kafka.
KAFKAS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def partitions_of(keys: list[bytes | None], count: int, given: list[int] | None = None) -> list[int]:
    lengths = np.array([-1 if key is None else len(key) for key in keys], np.int32)
    held = np.maximum(lengths, 0)
    data = np.frombuffer(b"".join(key or b"" for key in keys), np.uint8)
    partitions = np.array(given or [-1] * len(keys), np.int32)
    kernels(1).partition(data, (np.cumsum(held) - held).astype(np.int32), lengths, count, partitions)
    return list(partitions.tolist())


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_a_key_has_the_partition_that_kafka_gives_it() -> None:
    for count in (1, 7, 1000):
        assert partitions_of([*KAFKAS], count) == [(hashed & 0x7FFFFFFF) % count for hashed in KAFKAS.values()]


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_any_key_has_the_partition_that_another_client_gives_it() -> None:
    random = Random(1)
    keys = [random.randbytes(random.choice([0, 1, 2, 3, 4, 5, 7, 8, 40, 300])) for _ in range(1000)]
    expected = [(murmur2_of_aiokafka(key) & 0x7FFFFFFF) % 31 for key in keys]
    assert partitions_of([*keys], 31) == expected


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_who_has_no_key_or_a_partition_already_keeps_it() -> None:
    assert partitions_of([None, b"21", None], 10, [-1, 5, 3]) == [-1, 5, 3]


@pytest.mark.usefixtures("each_kind_of_kernel")
def test_records_go_to_the_partition_of_their_key_in_the_order_in_which_they_were_sent(tmp_path: Path) -> None:
    keys = [b"key %d" % (number % 20) for number in range(300)]
    with producing(tmp_path, partitions=5) as (data, producer):
        futures = [producer.send("t", b"%d" % number, key) for number, key in enumerate(keys)]
        producer.flush()
        for number, (key, future) in enumerate(zip(keys, futures, strict=True)):
            told = future.result()
            assert told.partition == (murmur2_of_aiokafka(key) & 0x7FFFFFFF) % 5
            assert records(data, told.partition)[told.offset][3:5] == (b"%d" % number, ())
        for partition in range(5):
            numbers = [int(value or b"-1") for value in values(data, partition)]
            assert numbers == sorted(numbers)


def test_keys_can_be_ignored(tmp_path: Path) -> None:
    with producing(tmp_path, partitions=3, partitioner_ignore_keys=True, choose=lambda count: 2) as (data, producer):
        for number in range(20):
            producer.send("t", b"value", b"%d" % number)
        producer.flush()
        assert len(values(data, 2)) == 20


def test_a_partition_that_is_asked_for_counts_before_the_key(tmp_path: Path) -> None:
    with producing(tmp_path, partitions=3) as (data, producer):
        producer.send("t", b"1", b"21", partition=1)
        producer.send("t", b"2", partition=0)
        producer.flush()
        assert (values(data, 1), values(data, 0)) == ([b"1"], [b"2"])
        for partition in (-1, 3):
            with pytest.raises(InvalidInput, match="it has 3"):
                producer.send("t", b"3", partition=partition)


def test_a_caller_may_bring_a_partitioner(tmp_path: Path) -> None:
    asked = []

    def partitioner(topic: str, key: object, value: object, count: int) -> int:
        asked.append((topic, key, value, count))
        return 7 if value == b"bad" else 2

    with producing(tmp_path, partitions=3, partitioner=partitioner) as (data, producer):
        producer.send("t", b"1", b"key")
        producer.send("t", b"2", partition=0)
        producer.flush()
        assert (values(data, 2), values(data, 0)) == ([b"1"], [b"2"])
        assert asked == [("t", b"key", b"1", 3)]
        with pytest.raises(InvalidInput, match="the partitioner gives 7"):
            producer.send("t", b"bad")


def test_a_turn_lasts_until_the_next_record_would_be_too_much() -> None:
    turns = iter([4, 0, 3, 1, 2])
    sticky = Sticky(5, lambda count: next(turns))
    assert sticky.assign(np.array([40, 40, 40, 40, 100, 300, 50]), 100) == [(4, 2), (0, 4), (3, 5), (1, 6), (2, 7)]


def test_a_turn_goes_on_from_call_to_call() -> None:
    turns = iter([4, 0, 3])
    sticky = Sticky(5, lambda count: next(turns))
    assert sticky.assign(np.array([40]), 100) == [(4, 1)]
    assert sticky.assign(np.array([40]), 100) == [(4, 1)]
    assert sticky.assign(np.array([40, 60, 10]), 100) == [(0, 2), (3, 3)]


def test_records_without_keys_fill_the_batches_of_one_partition_after_the_other(tmp_path: Path) -> None:
    turns = iter([2, 0, 1, 0, 2] * 100)
    with producing(tmp_path, partitions=3, batch_size=1000, choose=lambda count: next(turns)) as (_, producer):
        futures = [producer.send("t", bytes(100)) for _ in range(27)]
        producer.flush()
        told = [future.result() for future in futures]
    assert [each.partition for each in told] == [2] * 8 + [0] * 8 + [1] * 8 + [0] * 3


def test_all_partitions_get_their_share(tmp_path: Path) -> None:
    with producing(tmp_path, partitions=4, batch_size=200, choose=Random(1).randrange) as (data, producer):
        for _ in range(2000):
            producer.send("t", bytes(100))
        producer.flush()
        for partition in range(4):
            assert 400 < len(values(data, partition)) < 600
