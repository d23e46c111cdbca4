"""Where consumers begin, what they are told of offsets, and what they get in which order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tests.clients.driver import Record
from tests.clients.features import Stage, feature

_GROUP: Final = "Consuming"
_LONG_AGO_MS: Final = 1_600_000_000_000


def _numbered(count: int, first: int = 0) -> list[Record]:
    return [Record(value=b"%d" % number) for number in range(first, first + count)]


def _fill(stage: Stage, count: int = 10) -> str:
    """Create a topic with records, whose values are their offsets; the time of each is a second after that before."""
    topic = stage.new_topic()
    records = [Record(value=b"%d" % n, timestamp_ms=_LONG_AGO_MS + n * 1000) for n in range(count)]
    stage.other.produce(topic, records, {})
    return topic


def _values(stage: Stage, start: int, count: int) -> list[bytes | None]:
    return [record.value for record in stage.client.consume(stage.name, 0, start, count, {})]


@feature(_GROUP, "order", "Records of three partitions, in many batches, keep the order of each partition.")
def order(stage: Stage) -> None:
    topic = stage.new_topic(3)
    records = [Record(key=b"key", value=b"%d" % n * 20, partition=n % 3) for n in range(900)]
    stage.client.produce(topic, records, {"idempotence": True, "batch_bytes": 1000})  # so that retries keep the order
    for partition in range(3):
        expected = [record.value for record in records if record.partition == partition]
        assert [record.value for record in stage.stored(partition)] == expected
        consumed = list(stage.client.consume(topic, partition, "earliest", len(expected), {}))
        assert [record.value for record in consumed] == expected
        assert [record.offset for record in consumed] == list(range(len(expected)))
        assert {record.partition for record in consumed} == {partition}


@feature(
    _GROUP, "earliest, and any offset", "A consumer begins at the earliest record, or at the offset that it names."
)
def earliest_and_offset(stage: Stage) -> None:
    topic = _fill(stage)
    first = [record.offset for record in stage.client.consume(topic, 0, "earliest", 10, {})]
    assert first == [record.offset for record in stage.stored()] == list(range(10))
    assert _values(stage, 7, 3) == [b"7", b"8", b"9"]


@feature(_GROUP, "latest", "A consumer that begins at the end gets what is produced from then on, and nothing older.")
def latest(stage: Stage) -> None:
    topic = _fill(stage)
    end = 10
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: list(stage.client.consume(topic, 0, "latest", 2, {})))
        while not waiting.done():  # nobody tells when a consumer has found the end
            stage.other.produce(topic, _numbered(1, end), {})
            end += 1
    consumed = waiting.result()
    assert len(consumed) == 2
    assert 10 <= consumed[0].offset < end
    assert consumed[1].offset == consumed[0].offset + 1
    assert [record.value for record in consumed] == [b"%d" % record.offset for record in consumed]


@feature(
    _GROUP, "offset out of range", "A consumer of an offset that is not there is told so, and begins at the earliest."
)
def out_of_range(stage: Stage) -> None:
    _fill(stage)
    assert _values(stage, 1000, 2) == [b"0", b"1"]


@feature(_GROUP, "offsets", "The earliest offset and the end of a partition are told.")
def offsets(stage: Stage) -> None:
    topic = _fill(stage)
    assert stage.client.offsets(topic, 0) == (0, 10)
    stage.other.delete_records(topic, 0, 4)
    assert stage.client.offsets(topic, 0) == (4, 10)


@feature(_GROUP, "seek by time", "The first record of a time or later is found; there may be none.")
def seek_by_time(stage: Stage) -> None:
    topic = _fill(stage)
    asked = {0: 0, _LONG_AGO_MS + 3000: 3, _LONG_AGO_MS + 3001: 4, _LONG_AGO_MS + 9001: None}
    assert {at: stage.client.offset_for_time(topic, 0, at) for at in asked} == asked
    start = stage.client.offset_for_time(topic, 0, _LONG_AGO_MS + 7500)
    assert start is not None
    assert [record.value for record in stage.client.consume(topic, 0, start, 2, {})] == [b"8", b"9"]


@feature(
    _GROUP,
    "long poll",
    "A consumer that waits at the end gets a record when it is produced, not when its time is over.",
)
def long_poll(stage: Stage) -> None:
    topic = _fill(stage, 1)
    following = stage.client.consume(topic, 0, "earliest", 4, {"max_wait_ms": 120_000})
    assert next(following).value == b"0"
    for number in range(1, 4):  # the next fetch is on its way, or waits at the broker, for longer than we have patience
        stage.other.produce(topic, _numbered(1, number), {})
        assert next(following).value == b"%d" % number
    assert list(following) == []


@feature(
    _GROUP,
    "a re-created topic",
    "A topic is deleted and created again under a producer and a consumer, which go on with the new one.",
)
def recreated_topic(stage: Stage) -> None:
    stage = stage.strict()  # where nobody creates the topic meanwhile
    topic = stage.new_topic()
    stage.client.produce(topic, _numbered(10), {"acks": "all"})
    following = stage.client.consume(topic, 0, "earliest", 13, {})
    assert [next(following).value for _ in range(10)] == [b"%d" % number for number in range(10)]
    stage.delete_topic()
    stage.new_topic()
    end = 0
    with ThreadPoolExecutor(1) as threads:
        rest = threads.submit(lambda: list(following))
        while not rest.done():  # a client may go on at the end, as after a truncation
            stage.other.produce(topic, [Record(value=b"new %d" % end)], {})
            end += 1
    offsets = [record.offset for record in rest.result()]
    assert offsets == list(range(offsets[0], offsets[0] + 3))
    assert [record.value for record in rest.result()] == [b"new %d" % offset for offset in offsets]
    stage.client.produce(topic, _numbered(2), {"acks": "all"})
    assert [record.value for record in stage.stored()] == [*(b"new %d" % offset for offset in range(end)), b"0", b"1"]
