"""Kafka reads, and would write, the records of metadata as we do; and its own definitions are ours."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from octavo.errors import FormatError
from octavo.inspect.kafka_json import message_json
from octavo.schemas.metadata.serde import KINDS, UnknownRecord, read_metadata, write_metadata
from tests.kafka.definitions import check_message, read_definitions
from tests.kafka.judge import Judge
from tests.messages import framed_records


def ask(judge: Judge, buffers: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    for begin in range(0, len(buffers), 1000):
        part = [b64encode(buffer).decode() for buffer in buffers[begin : begin + 1000]]
        yield from judge.ask("metadata", buffers=part)


def test_kafka_reads_and_writes_every_record_in_every_version_as_we_do(kafka_broker: Judge) -> None:
    records = list(framed_records(KINDS, 11, 25))
    written = [write_metadata(record, version=version) for record, version in records]
    for (record, version), data, told in zip(records, written, ask(kafka_broker, written), strict=True):
        assert "error" not in told, (record, told)
        assert (told["type"], told["version"]) == (record.TYPE, version)
        assert told["data"] == message_json(record, version)
        assert b64decode(told["bytes"]) == data


def test_kafka_and_we_agree_on_bytes_that_are_damaged(kafka_broker: Judge) -> None:
    random = Random(12)
    damaged = []
    for record, version in framed_records(KINDS, 13, 2):
        data = write_metadata(record, version=version)
        damaged += [data[: random.randrange(len(data))] for _ in range(5)]
        for _ in range(30):
            at = random.randrange(len(data))
            damaged.append(data[:at] + bytes([random.randrange(256)]) + data[at + 1 :])
    for data, told in zip(damaged, ask(kafka_broker, damaged), strict=True):
        try:
            read = read_metadata(data)
        except FormatError:
            assert "error" in told, (data, told)
            continue
        # Of a kind that never had but one version Kafka reads any as that one; here it is unknown.
        if not isinstance(read, UnknownRecord):
            assert "error" not in told, (data, read, told)
            assert json.dumps(told["data"]) == json.dumps(message_json(read, told["version"]))


def test_the_declarations_are_those_of_kafka(kafka_broker: Judge) -> None:
    definitions = read_definitions(kafka_broker.release, "kafka-metadata", "common/metadata")
    assert {each["apiKey"] for each in definitions.values()} == KINDS.keys()
    for number, kind in KINDS.items():
        assert definitions[kind.__name__]["apiKey"] == number
        check_message(kind, definitions[kind.__name__], kind.VERSIONS, 0)
