"""What records are made of: headers, nulls, times and sizes."""

from __future__ import annotations

import random
import time
from itertools import product
from typing import Final

import pytest

from tests.clients.driver import ClientError, ProduceSettings, Record
from tests.clients.features import Stage, feature

_GROUP: Final = "Records"
_MESSAGE_TOO_LARGE: Final = 10
_PLAIN: Final[ProduceSettings] = {
    "idempotence": False
}  # for some clients it is fatal if idempotent records are refused
_LONG_AGO_MS: Final = 1_600_000_000_000


def _random_bytes(size: int) -> bytes:
    """Return bytes that no codec makes smaller."""
    return random.Random(size).randbytes(size)


def _round_trip(stage: Stage, records: list[Record]) -> None:
    """Produce records, and find them in the files and by consuming, the same but for offset and time."""
    stage.client.produce(stage.name, records, {})
    stored = stage.stored()
    assert [(each.key, each.value, each.headers) for each in stored] == [
        (each.key, each.value, each.headers) for each in records
    ]
    consumed = list(stage.client.consume(stage.name, 0, "earliest", len(records), {}))
    assert [(each.offset, each.key, each.value, each.headers) for each in consumed] == [
        (each.offset, each.key, each.value, each.headers) for each in stored
    ]


@feature(_GROUP, "null and empty", "Keys and values that are null, empty or neither are three different things.")
def null_and_empty(stage: Stage) -> None:
    stage.new_topic()
    pairs = list(product((None, b"", b"some"), repeat=2))[1:]  # some clients want a key or a value
    _round_trip(stage, [Record(key=key, value=value) for key, value in pairs])


@feature(_GROUP, "headers", "Headers keep their order; names may repeat, values may be empty.")
def headers(stage: Stage) -> None:
    stage.new_topic()
    pairs = (("name", b"1"), ("other", b"2"), ("name", b"3"), ("empty", b""), ("größe", "groß".encode()))
    records = [
        Record(value=b"with", headers=pairs),
        Record(value=b"without"),
        Record(key=b"key", headers=pairs[:1]),
    ]
    _round_trip(stage, records)


@feature(_GROUP, "binary headers", "The value of a header may be any bytes.")
def binary_headers(stage: Stage) -> None:
    stage.new_topic()
    _round_trip(stage, [Record(value=b"value", headers=(("all", bytes(range(256))),))])


@feature(_GROUP, "null headers", "The value of a header may be null, which is not empty.")
def null_headers(stage: Stage) -> None:
    stage.new_topic()
    _round_trip(stage, [Record(value=b"value", headers=(("null", None), ("empty", b""), ("null", b"not now")))])


@feature(_GROUP, "CreateTime", "The time of a record is what the producer says.")
def create_time(stage: Stage) -> None:
    topic = stage.new_topic()
    records = [Record(value=b"%d" % number, timestamp_ms=_LONG_AGO_MS + number * 1000) for number in range(5)]
    stage.client.produce(topic, records, {})
    consumed = list(stage.client.consume(topic, 0, "earliest", len(records), {}))
    _check_times(stage, consumed)
    assert [record.timestamp_ms for record in consumed] == [record.timestamp_ms for record in records]
    assert {record.timestamp_type for record in consumed} <= {"CreateTime", None}


@feature(_GROUP, "LogAppendTime", "With message.timestamp.type=LogAppendTime it is when the broker got the record.")
def log_append_time(stage: Stage) -> None:
    topic = stage.new_topic(message_timestamp_type="LogAppendTime")
    before_ms = time.time_ns() // 1_000_000
    stage.client.produce(topic, [Record(value=b"%d" % number) for number in range(5)], {})
    stage.other.produce(topic, [Record(value=b"%d" % number, timestamp_ms=_LONG_AGO_MS) for number in range(5)], {})
    after_ms = time.time_ns() // 1_000_000
    consumed = list(stage.client.consume(topic, 0, "earliest", 10, {}))
    _check_times(stage, consumed)
    assert all(before_ms <= (record.timestamp_ms or 0) <= after_ms for record in consumed)
    assert {record.timestamp_type for record in consumed} <= {"LogAppendTime", None}


def _check_times(stage: Stage, consumed: list[Record]) -> None:
    stored = stage.stored()
    assert [record.timestamp_ms for record in consumed] == [record.timestamp_ms for record in stored]
    for found, expected in zip(consumed, stored, strict=True):
        assert found.timestamp_type in (expected.timestamp_type, None)


@feature(
    _GROUP,
    "record too large",
    "A record above max.message.bytes of the topic fails with MESSAGE_TOO_LARGE, and the producer goes on.",
)
def record_too_large(stage: Stage) -> None:
    topic = stage.new_topic(max_message_bytes="5000")
    with pytest.raises(ClientError) as refused:
        stage.client.produce(topic, [Record(value=_random_bytes(20_000))], _PLAIN)
    assert refused.value.code == _MESSAGE_TOO_LARGE
    assert stage.client.produce(topic, [Record(value=b"small")], _PLAIN) in ([0], [-1])
    assert [record.value for record in stage.stored()] == [b"small"]


@feature(
    _GROUP,
    "large record",
    "A record of 3 MiB is produced where max.message.bytes allows it, and consumed by who asks for 1,000 bytes.",
)
def large_record(stage: Stage) -> None:
    topic = stage.new_topic(max_message_bytes=str(4 << 20))
    records = [Record(value=_random_bytes(size)) for size in (3 << 20, 10)]
    stage.client.produce(topic, records, {})
    assert [record.value for record in stage.stored()] == [record.value for record in records]
    consumed = list(stage.client.consume(topic, 0, "earliest", len(records), {"partition_bytes": 1000}))
    assert [record.value for record in consumed] == [record.value for record in records]
