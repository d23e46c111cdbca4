"""Kafka reads, writes and prints the records of its internal topics as we do; and its own definitions are ours."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final

import pytest

from octavo.errors import BadRecord
from octavo.inspect.kafka_json import RECORD_DECODERS
from octavo.schemas.consumer_offsets.serde import KINDS as GROUP_KINDS
from octavo.schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from octavo.schemas.framed import write_framed
from octavo.schemas.metadata.serde import KINDS as METADATA_KINDS
from octavo.schemas.remote_log_metadata.serde import KINDS as REMOTE_KINDS
from octavo.schemas.remote_log_metadata.serde import read_remote_metadata, write_remote_metadata
from octavo.schemas.share_group_state import KINDS as SHARE_KINDS
from octavo.schemas.transaction_state import KINDS as TRANSACTION_KINDS
from octavo.schemas.versioned import CoordinatorKey, read_any_key, read_value_of, write_key, write_value
from tests.kafka.definitions import check_message, read_definitions
from tests.kafka.judge import Judge
from tests.messages import coordinator_records, framed_records
from tests.soak.plugin import Soak

COORDINATORS: Final[dict[str, Mapping[int, type[CoordinatorKey[Any]]]]] = {
    "group": GROUP_KINDS,
    "share": SHARE_KINDS,
    "transaction": TRANSACTION_KINDS,
}
PARSERS: Final = {
    "offsets-decoder": "OffsetsMessageParser",
    "transaction-log-decoder": "TransactionLogMessageParser",
    "cluster-metadata-decoder": "ClusterMetadataLogMessageParser",
    "remote-log-metadata-decoder": "RemoteMetadataLogMessageParser",
    "share-group-state-decoder": "ShareGroupStateMessageParser",
}
OFFSET: Final = 12345678901

Pair = tuple[bytes | None, bytes | None]


def ask(judge: Judge, op: str, records: Sequence[Pair], **more: Any) -> Iterator[dict[str, Any]]:
    for begin in range(0, len(records), 1000):
        part = [
            [None if each is None else b64encode(each).decode() for each in record]
            for record in records[begin : begin + 1000]
        ]
        yield from judge.ask(op, records=part, **more)


@pytest.mark.parametrize("topic", COORDINATORS)
def test_kafka_reads_and_writes_every_record_in_every_version_as_we_do(topic: str, kafka_broker: Judge) -> None:
    kinds = COORDINATORS[topic]
    records = list(coordinator_records(kinds, 31, 12))
    written = [(write_key(key), write_value(value, version)) for key, value, version in records]
    told = ask(kafka_broker, "rewriteRecords", written, topic=topic)
    for (key, value, _), (key_data, value_data), answer in zip(records, written, told, strict=True):
        assert "error" not in answer, (key, value, answer)
        assert (b64decode(answer["key"]), b64decode(answer["value"])) == (key_data, value_data)
        assert (read_any_key(kinds, key_data), read_value_of(key, value_data)) == (key, value)


def test_kafka_reads_and_writes_records_of_remote_storage_as_we_do(kafka_broker: Judge) -> None:
    records = list(framed_records(REMOTE_KINDS, 32, 30))
    written = [(None, write_remote_metadata(record, version=version)) for record, version in records]
    told = ask(kafka_broker, "rewriteRecords", written, topic="remote")
    for (record, _), (_, data), answer in zip(records, written, told, strict=True):
        assert "error" not in answer, (record, answer)
        assert b64decode(answer["value"]) == data
        assert read_remote_metadata(data) == record


# What Kafka's tool prints


def pairs(decoder: str, seed: int, rounds: int) -> list[Pair]:
    """Records that are sound."""
    coordinators = {
        "offsets-decoder": GROUP_KINDS,
        "transaction-log-decoder": TRANSACTION_KINDS,
        "share-group-state-decoder": SHARE_KINDS,
    }
    if decoder in coordinators:
        made = coordinator_records(coordinators[decoder], seed, rounds)
        return [(write_key(key), write_value(value, version)) for key, value, version in made]
    kinds: Any = METADATA_KINDS if decoder == "cluster-metadata-decoder" else REMOTE_KINDS
    return [(None, write_framed(record, version=version)) for record, version in framed_records(kinds, seed, rounds)]


def damaged(sound: Sequence[Pair], seed: int) -> Iterator[Pair]:
    """Each record with its key or value cut off, overwritten, of another type or version, longer, or missing."""
    random = Random(seed)
    for record in sound:
        yield record[0], None
        yield None if record[0] is None else record[0] + b"more", record[1]
        for at, part in enumerate(record):
            if part is None:
                continue
            spoiled = [part[: random.randrange(len(part) + 1)] for _ in range(3)]
            spoiled += [number.to_bytes(2, signed=True) + part[2:] for number in (-1, 1, 5, 99, random.choice((2, 9)))]
            spoiled += [part[:2] + b"\xff\xff\xff\xff" + bytes([random.choice((0x0F, 0x07, 0x8F))]) + part[3:]]
            for _ in range(12):
                where = random.randrange(min(len(part), random.choice((4, 40, 400))))
                spoiled.append(part[:where] + bytes([random.randrange(256)]) + part[where + 1 :])
            for bad in spoiled:
                yield (bad, record[1]) if at == 0 else (record[0], bad)


def compare(judge: Judge, decoder: str, records: Sequence[Pair]) -> int:
    """How many records Kafka cannot decode, after all its texts were found the same as ours."""
    undecoded = 0
    told = ask(judge, "printRecords", records, parser=PARSERS[decoder], offset=OFFSET)
    for (key, value), answer in zip(records, told, strict=True):
        try:
            ours: Any = RECORD_DECODERS[decoder](OFFSET, key, value)
        except BadRecord as error:
            ours = {"class": "java.lang.RuntimeException", "message": error.rule}
        assert ours == (answer.get("error") or (answer["key"], answer["payload"])), (key, value)
        if "error" in answer:
            continue
        undecoded += "skipping." in str(answer["key"]) or str(answer["payload"]).startswith("Error at")
    return undecoded


@pytest.mark.parametrize("decoder", RECORD_DECODERS)
def test_kafka_prints_every_record_in_every_version_as_we_do(decoder: str, kafka_broker: Judge) -> None:
    records = pairs(decoder, 33, 6)
    undecoded = compare(kafka_broker, decoder, records)
    assert undecoded < len(records) if decoder == "remote-log-metadata-decoder" else not undecoded


@pytest.mark.parametrize("decoder", RECORD_DECODERS)
def test_kafka_says_the_same_about_records_that_are_damaged(decoder: str, kafka_broker: Judge) -> None:
    records = list(damaged(pairs(decoder, 34, 1), 35))
    records += [(None, None), (b"", b""), (b"\x00", b"\x00")]
    assert compare(kafka_broker, decoder, records) > len(records) // 10


@pytest.mark.soak
@pytest.mark.parametrize("decoder", RECORD_DECODERS)
def test_kafka_says_the_same_about_very_many_damaged_records(decoder: str, kafka_broker: Judge, soak: Soak) -> None:
    for seed in soak.seeds():
        compare(kafka_broker, decoder, list(damaged(pairs(decoder, seed, 1), seed)))


# What the definitions say


@pytest.mark.parametrize("topic", COORDINATORS)
def test_the_declarations_are_those_of_kafka(topic: str, kafka_broker: Judge) -> None:
    definitions = read_definitions(kafka_broker.release, f"kafka-{topic}-coordinator", "common/message")
    kinds = COORDINATORS[topic]
    assert {each["apiKey"] for each in definitions.values()} == kinds.keys()
    assert len(definitions) == 2 * len(kinds)
    for number, kind in kinds.items():
        definition = definitions[kind.__name__]
        assert definition["apiKey"] == number == kind.TYPE
        check_message(kind, definition, range(1), None)
        value = kind.VALUE
        assert definitions[value.__name__]["apiKey"] == number
        flexible = value.VERSIONS[-1] >= value.FIRST_FLEXIBLE
        check_message(value, definitions[value.__name__], value.VERSIONS, value.FIRST_FLEXIBLE if flexible else None)


def test_the_declarations_of_remote_storage_are_those_of_kafka(kafka_broker: Judge) -> None:
    definitions = read_definitions(kafka_broker.release, "kafka-storage", "message")
    definitions = {name: each for name, each in definitions.items() if "apiKey" in each}
    assert {each["apiKey"] for each in definitions.values()} == REMOTE_KINDS.keys()
    for number, kind in REMOTE_KINDS.items():
        assert definitions[kind.__name__]["apiKey"] == number
        check_message(kind, definitions[kind.__name__], kind.VERSIONS, 0)


@pytest.mark.parametrize("kind", [ConsumerProtocolSubscription, ConsumerProtocolAssignment])
def test_the_messages_of_consumers_are_those_of_kafka(kind: Any, kafka_broker: Judge) -> None:
    [definition] = [
        each
        for name, each in read_definitions(kafka_broker.release, "kafka-clients", "common/message").items()
        if name == kind.__name__
    ]
    definition["fields"] = [  # fields inside are there whenever the structure is
        {**each, "fields": [{**inner, "versions": "0+"} for inner in each["fields"]]} if "fields" in each else each
        for each in definition["fields"]
    ]
    check_message(kind, definition, kind.VERSIONS, None)
