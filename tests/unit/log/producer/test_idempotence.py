"""What an idempotent producer does so that every record is there once, whatever fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from octavo.errors import AppendRefused, ErrorCode, SendTimedOut
from octavo.log import Log, Producer
from octavo.log.coordinator import ProducerIdentity
from octavo.log.names import TopicPartition
from octavo.log.producer import deliverer
from octavo.records.layout import MAX_INT16, MAX_SEQUENCE
from tests.clock import Clock
from tests.unit.log.failing import FailingDisk
from tests.unit.log.producer.producing import batches, directory, producing, values

PARTITION = TopicPartition("t", 0)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited between two tries; nobody really waits."""
    taken: list[float] = []
    monkeypatch.setattr(f"{deliverer.__name__}.time", SimpleNamespace(sleep=taken.append, monotonic=lambda: sum(taken)))
    return taken


def fail(disk: FailingDisk, times: int) -> None:
    """Have the next writes to logs fail."""
    left = [times]

    def fails(what: str, path: Path) -> bool:
        if what != "write" or path.suffix != ".log" or "t-" not in str(path.parent.name) or not left[0]:
            return False
        left[0] -= 1
        return True

    disk.fails = fails


def test_every_record_has_a_sequence_number(tmp_path: Path) -> None:
    with producing(tmp_path, partitions=2, batch_size=300) as (data, producer):
        for number in range(20):
            producer.send("t", bytes(100), partition=number % 2)
        producer.flush()
        for partition in range(2):
            found = batches(data, partition)
            assert {(batch.producer_id, batch.producer_epoch) for batch in found} == {(found[0].producer_id, 0)}
            assert found[0].producer_id >= 0
            assert [batch.base_sequence for batch in found] == [0, 2, 4, 6, 8]


def test_who_is_not_idempotent_says_nothing_of_itself(tmp_path: Path) -> None:
    with producing(tmp_path, enable_idempotence=False) as (data, producer):
        assert producer.send("t", b"1").result().offset == 0
        assert [(batch.producer_id, batch.producer_epoch, batch.base_sequence) for batch in batches(data)] == [
            (-1, -1, -1)
        ]


def test_every_producer_has_an_id_of_its_own(tmp_path: Path) -> None:
    with directory(tmp_path) as data:
        for _ in range(3):
            with Producer(data, clock=Clock()) as producer:
                producer.send("t", b"1")
        assert len({batch.producer_id for batch in batches(data)}) == 3


def test_after_the_last_sequence_number_comes_0(tmp_path: Path) -> None:
    with producing(tmp_path, batch_size=500) as (data, producer):
        producer.send("t", b"first").result()
        producer._identity.advance(producer._identity.producer, PARTITION, MAX_SEQUENCE - 5, 1)
        data.log("t", 0).producers.entries.clear()  # else the jump is noticed
        for _ in range(12):
            producer.send("t", bytes(100))
        producer.flush()
        assert [batch.base_sequence for batch in batches(data)[1:]] == [MAX_SEQUENCE - 4, MAX_SEQUENCE, 3]
        assert data.log("t", 0).producers.entries[batches(data)[0].producer_id].last_sequence == 6


def test_a_failed_write_is_tried_again_after_a_while(tmp_path: Path, pauses: list[float]) -> None:
    disk = FailingDisk()
    with directory(tmp_path, storage=disk) as data, Producer(data, clock=Clock()) as producer:
        producer.send("t", b"1").result()
        fail(disk, times=6)
        assert producer.send("t", b"2").result().offset == 1
        assert pauses == [0.1, 0.2, 0.4, 0.8, 1, 1]
        assert [batch.base_sequence for batch in batches(data)] == [0, 1]
        assert {batch.producer_epoch for batch in batches(data)} == {0}


def test_a_disk_that_fails_for_too_long_loses_the_record_and_the_next_epoch_begins(
    tmp_path: Path, pauses: list[float]
) -> None:
    disk = FailingDisk()
    with directory(tmp_path, partitions=2, storage=disk) as data, Producer(data, clock=Clock()) as producer:
        for partition in range(2):
            producer.send("t", b"1", partition=partition).result()
        fail(disk, times=1_000_000)
        future = producer.send("t", b"2", partition=0)
        with pytest.raises(SendTimedOut, match=r"120000 ms \(delivery\.timeout\.ms\)"):
            future.result()
        assert 118 < sum(pauses) <= 120
        disk.fails = None
        for partition in range(2):
            assert producer.send("t", b"3", partition=partition).result().offset == 1
            assert [(batch.producer_epoch, batch.base_sequence) for batch in batches(data, partition)] == [
                (0, 0),
                (1, 0),
            ]


def test_what_was_made_before_an_epoch_ended_goes_with_the_next(tmp_path: Path, pauses: list[float]) -> None:
    disk = FailingDisk()
    settings = {"retries": 1}
    with directory(tmp_path, partitions=3, storage=disk) as data, Producer(data, settings, clock=Clock()) as producer:
        for partition in range(3):
            producer.send("t", b"1", partition=partition)
        producer.flush()
        fail(disk, times=2)
        futures = [producer.send("t", b"2", partition=partition) for partition in range(3)]
        producer.flush()
        assert isinstance(futures[0].exception(), OSError)
        assert [future.result().offset for future in futures[1:]] == [1, 1]
        for partition in range(3):
            assert producer.send("t", b"3", partition=partition).result().offset == (2 if partition else 1)
        assert [(batch.producer_epoch, batch.base_sequence) for batch in batches(data, 2)] == [(0, 0), (1, 0), (1, 1)]
        assert len(pauses) == 1


def test_after_the_last_epoch_comes_another_id(tmp_path: Path, pauses: list[float]) -> None:
    disk = FailingDisk()
    with directory(tmp_path, storage=disk) as data, Producer(data, {"retries": 1}, clock=Clock()) as producer:
        producer.send("t", b"1").result()
        producer._identity.become(ProducerIdentity(batches(data)[0].producer_id, MAX_INT16 - 1))
        fail(disk, times=2)
        assert producer.send("t", b"2").exception() is not None
        producer.send("t", b"3").result()
        first, second = batches(data)
        assert second.producer_id != first.producer_id
        assert (second.producer_epoch, second.base_sequence) == (0, 0)
        assert pauses == [0.1]


def test_who_is_interrupted_sends_the_same_again_and_the_log_has_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Log.append

    def interrupted(self: Log, *arguments: Any, **more: Any) -> None:
        append(self, *arguments, **more)
        raise KeyboardInterrupt

    with producing(tmp_path, batch_size=300, linger_ms=1_000_000) as (data, producer):
        producer.send("t", b"first").result()
        futures = [producer.send("t", b"%d" % number * 100) for number in range(20)]
        with monkeypatch.context() as patched:
            patched.setattr(Log, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.flush()
        assert not futures[0].done()
        late = producer.send("t", b"late")
        producer.flush()
        assert [future.result().offset for future in [*futures, late]] == list(range(1, 22))
        assert values(data) == [b"first", *(b"%d" % number * 100 for number in range(20)), b"late"]


def test_who_is_interrupted_before_anything_was_written_sends_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with producing(tmp_path, partitions=2, linger_ms=1_000_000) as (data, producer):
        futures = [producer.send("t", b"%d" % number, partition=number % 2) for number in range(10)]
        for target in ("octavo.log.producer.packer.columns_of", "octavo.log.log.Log.append"):
            with monkeypatch.context() as patched:
                patched.setattr(target, interrupted)
                with pytest.raises(KeyboardInterrupt):
                    producer.flush()
        producer.flush()
        assert [future.result().offset for future in futures] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
        assert values(data, 1) == [b"1", b"3", b"5", b"7", b"9"]


@pytest.mark.parametrize("is_written", [False, True])
def test_who_is_interrupted_between_batches_does_not_send_the_first_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    append = Log.append
    calls = 0

    def interrupted(self: Log, *arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise AppendRefused(ErrorCode.RECORD_LIST_TOO_LARGE, "all of them together")
        if calls == 3 and not is_written:
            raise KeyboardInterrupt
        done = append(self, *arguments, **more)
        if calls == 3:
            raise KeyboardInterrupt
        return done

    with producing(tmp_path, batch_size=100) as (data, producer):
        futures = [producer.send("t", b"%d" % number * 60) for number in range(4)]
        with monkeypatch.context() as patched:
            patched.setattr(Log, "append", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.flush()
        producer.flush()
        assert values(data) == [b"%d" % number * 60 for number in range(4)]
        assert [future.result().offset for future in futures] == [0, 1, 2, 3]


def test_a_log_that_was_truncated_goes_on_with_another_epoch(tmp_path: Path) -> None:
    with producing(tmp_path) as (data, producer):
        for value in (b"1", b"2", b"3"):
            producer.send("t", value).result()
        data.log("t", 0).truncate_to(1)
        assert producer.send("t", b"4").result().offset == 1
        assert producer.send("t", b"5").result().offset == 2
        assert [(batch.producer_epoch, batch.base_sequence) for batch in batches(data)] == [(0, 0), (1, 0), (1, 1)]


def test_who_has_an_epoch_that_is_over_is_refused(tmp_path: Path) -> None:
    with producing(tmp_path) as (data, producer):
        producer.send("t", b"1").result()
        data.log("t", 0).producers.entries[batches(data)[0].producer_id].epoch = 7
        with pytest.raises(AppendRefused) as refused:
            producer.send("t", b"2").result()
        assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
