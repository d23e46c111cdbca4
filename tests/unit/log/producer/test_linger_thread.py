"""When a record is appended: as its batch is full, as it has waited for `linger.ms`, and never later."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from octavo.log import DataDirectory, Producer
from tests.clock import Clock
from tests.unit.log.producer.producing import batches, directory, values


@contextmanager
def lingering(folder: Path, *, partitions: int = 1, **settings: Any) -> Iterator[tuple[DataDirectory, Producer, Clock]]:
    clock = Clock(1000)
    with directory(folder, partitions=partitions) as data, Producer(data, clock=clock, **settings) as producer:
        yield data, producer, clock


def test_a_record_waits_for_as_long_as_it_may(tmp_path: Path) -> None:
    with lingering(tmp_path, linger_ms=50) as (data, producer, clock):
        assert producer.run_once() is None
        producer.send("t", b"1")
        clock.now_ms += 49
        producer.send("t", b"2")
        assert producer.run_once() == 1
        assert values(data) == []
        clock.now_ms += 1
        assert producer.run_once() is None
        assert [batch.count for batch in batches(data)] == [2]


def test_a_record_that_comes_later_waits_by_itself(tmp_path: Path) -> None:
    with lingering(tmp_path, linger_ms=50) as (data, producer, clock):
        producer.send("t", b"1")
        producer.flush()
        clock.now_ms += 100
        producer.send("t", b"2")
        producer.run_once()
        assert values(data) == [b"1"]
        clock.now_ms += 50
        producer.run_once()
        assert values(data) == [b"1", b"2"]


def test_without_lingering_a_record_goes_at_once(tmp_path: Path) -> None:
    with lingering(tmp_path, linger_ms=0) as (data, producer, _):
        producer.send("t", b"1")
        producer.run_once()
        assert values(data) == [b"1"]


def test_a_full_batch_goes_soon_and_what_is_behind_it_waits(tmp_path: Path) -> None:
    with lingering(tmp_path, linger_ms=60_000, batch_size=500) as (data, producer, clock):
        for number in range(6):
            producer.send("t", b"%d" % number * 100)
        clock.now_ms += 10
        producer.run_once()
        assert [batch.count for batch in batches(data)] == [4]
        clock.now_ms += 59_989
        producer.run_once()
        assert len(values(data)) == 4
        clock.now_ms += 1
        producer.run_once()
        assert values(data) == [b"%d" % number * 100 for number in range(6)]


def test_a_batch_that_waits_is_filled_by_what_comes_later(tmp_path: Path) -> None:
    with lingering(tmp_path, linger_ms=60_000, batch_size=500, partitions=2) as (data, producer, clock):
        for number in range(24):
            producer.send("t", b"%02d" % number * 50, partition=number % 2)
            clock.now_ms += 10
            producer.run_once()
        for partition in range(2):
            assert [batch.count for batch in batches(data, partition)] == [4, 4, 4]
            assert values(data, partition) == [b"%02d" % number * 50 for number in range(partition, 24, 2)]


def test_much_is_appended_by_who_sends_it_and_batches_are_full(tmp_path: Path) -> None:
    with lingering(tmp_path, linger_ms=60_000, partitions=3) as (data, producer, _):
        for number in range(10_000):
            producer.send("t", b"%0100d" % number, b"%d" % number)
        sizes = [batch.size for partition in range(3) for batch in batches(data, partition)]
        assert len(sizes) > 30
        assert min(sizes) > 16_000
        producer.flush()
        found = [int(value or b"") for partition in range(3) for value in values(data, partition)]
        assert sorted(found) == list(range(10_000))


def test_a_thread_looks_at_the_clock_where_nobody_else_does(tmp_path: Path) -> None:
    with directory(tmp_path) as data, Producer(data, {"linger.ms": 1}) as producer:
        for number in range(3):  # the thread goes to sleep in between
            done: queue.Queue[object] = queue.Queue()
            producer.send("t", b"%d" % number).add_done_callback(done.put)
            done.get(timeout=60)
        assert values(data) == [b"0", b"1", b"2"]


def test_small_records_to_many_partitions_do_not_wait_for_ever_longer(tmp_path: Path) -> None:
    with lingering(tmp_path, linger_ms=60_000, partitions=50) as (data, producer, _):
        waiting = 0
        for number in range(100_000):
            producer.send("t", b"", partition=number % 50)
            if number % 1000 == 0:
                waiting = max(waiting, number - sum(log.end_offset for log in data.logs))
        assert waiting < 60_000
        producer.flush()
        assert sum(log.end_offset for log in data.logs) == 100_000
