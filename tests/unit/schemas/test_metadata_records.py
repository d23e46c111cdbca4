"""Records of metadata: what is written is read, and what is not one of them gets a typed error."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from octavo.errors import BadLength, BadRecord, BadVarint, FormatError, InvalidInput, Unsupported
from octavo.schemas.lengths import varint
from octavo.schemas.metadata.nodes import BrokerEndpoint, RegisterBrokerRecord, ZkMigrationStateRecord
from octavo.schemas.metadata.progress import NoOpRecord
from octavo.schemas.metadata.serde import KINDS, UnknownRecord, read_metadata, write_metadata
from octavo.schemas.metadata.topics import ConfigRecord, PartitionRecord, TopicRecord
from tests.messages import framed_records

TOPIC_ID = UUID("5a00a979-797b-46da-bd6d-4f5f0220157f")
TOPIC = TopicRecord(name="events", topic_id=TOPIC_ID)
TOPIC_BYTES = bytes.fromhex("01 02 00  07") + b"events" + TOPIC_ID.bytes + b"\x00"
PARTITION = PartitionRecord(
    partition_id=0,
    topic_id=TOPIC_ID,
    replicas=(1,),
    isr=(1,),
    removing_replicas=(),
    adding_replicas=(),
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
)


def test_the_bytes_of_a_topic() -> None:
    assert write_metadata(TOPIC) == TOPIC_BYTES
    assert read_metadata(TOPIC_BYTES) == TOPIC


def test_every_record_in_every_version_is_read_as_it_was_written() -> None:
    for record, version in framed_records(KINDS, 1, 20):
        assert read_metadata(write_metadata(record, version=version)) == record


def test_every_type_of_kafka_4_3_is_known() -> None:
    assert sorted(KINDS) == sorted({*range(29)} - {6, 13, 16})


@pytest.mark.parametrize(("type_", "version"), [(77, 0), (2, 1), (6, 0)])
def test_what_a_later_kafka_writes_is_kept_as_it_is(type_: int, version: int) -> None:
    unknown = UnknownRecord(type=type_, version=version, body=b"abc")
    assert read_metadata(write_metadata(unknown)) == unknown


def test_unknown_tagged_fields_are_passed_over() -> None:
    data = TOPIC_BYTES[:-1] + bytes.fromhex("02  05 03 616263  80 01 00")  # tag 5 of three bytes, tag 128 of none
    assert read_metadata(data) == TOPIC


def test_unknown_tagged_fields_inside_a_structure_are_passed_over() -> None:
    endpoint = BrokerEndpoint(name="A", host="h", port=1, security_protocol=0)
    broker = RegisterBrokerRecord(
        broker_id=1, incarnation_id=TOPIC_ID, broker_epoch=1, end_points=(endpoint,), features=(), rack=None
    )
    data = write_metadata(broker, version=1)
    end = data.index(b"\x02A\x02h\x00\x01\x00\x00\x00") + 8
    assert read_metadata(data[:end] + bytes.fromhex("01 09 02 ffff") + data[end + 1 :]) == broker


def test_any_byte_but_zero_is_true_as_in_java() -> None:
    data = bytearray(
        write_metadata(next(record for record, _ in framed_records(KINDS, 3, 50) if _is_fenced(record)), version=0)
    )
    assert data[-2] == 1
    data[-2] = 0x7F
    read = read_metadata(bytes(data))
    assert isinstance(read, RegisterBrokerRecord)
    assert read.fenced is True


def _is_fenced(record: object) -> bool:
    return isinstance(record, RegisterBrokerRecord) and record.fenced and not record.log_dirs


def test_text_that_is_no_utf_8_reads_as_in_java() -> None:
    record = read_metadata(bytes.fromhex("01 02 00 03 ff41") + bytes(16) + b"\x00")
    assert record == TopicRecord(name="\N{REPLACEMENT CHARACTER}A", topic_id=UUID(int=0))


def test_a_field_is_not_written_in_a_version_that_has_no_place_for_it() -> None:
    record = replace(PARTITION, directories=(TOPIC_ID,))
    assert read_metadata(write_metadata(record, version=1)) == record
    with pytest.raises(InvalidInput, match="PartitionRecord has no directories in version 0"):
        write_metadata(record, version=0)


@pytest.mark.parametrize(
    ("record", "version"),
    [
        (ZkMigrationStateRecord(zk_migration_state=128), None),
        (TopicRecord(name="x" * 0x8000, topic_id=TOPIC_ID), None),
        (TopicRecord(name="\ud800", topic_id=TOPIC_ID), None),
        (
            ConfigRecord(resource_type=2, resource_name=None, name="a", value="b"),  # type: ignore[arg-type]  # refused
            None,
        ),
        (NoOpRecord(), 1),
    ],
)
def test_what_cannot_be_expressed_is_refused(record: TopicRecord, version: int | None) -> None:
    with pytest.raises(InvalidInput):
        write_metadata(record, version=version)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (None, BadRecord),
        (b"", BadLength),
        (b"\x00\x02\x00", Unsupported),  # frame version 0
        (b"\x02" + TOPIC_BYTES[1:], Unsupported),
        (b"\x80\x80\x80\x80\x80\x01", BadVarint),
        (b"\x01\xff\xff\xff\xff\x0f\x00", BadRecord),  # type -1
        (TOPIC_BYTES + b"\x00", BadLength),  # garbage behind it
        (TOPIC_BYTES[:-1] + b"\x01", BadLength),  # one tagged field that is not there
        (b"\x01\x02\x00\x00" + TOPIC_BYTES[10:], BadRecord),  # a name that is null
        (TOPIC_BYTES[:-1] + b"\x01\x05\x03ab", BadLength),  # an unknown one that is cut
    ],
)
def test_bad_bytes_get_a_typed_error_with_the_position_that_was_given(
    data: bytes | None, error: type[FormatError]
) -> None:
    with pytest.raises(error) as raised:
        read_metadata(data, position=1234)
    assert raised.value.position == 1234


def test_a_count_that_lies_does_not_cost_memory() -> None:
    numbers = (1, 10, 0, 1, 1, 2**31)  # a delegation token, with empty names and two thousand million renewers
    with pytest.raises(BadLength, match="more than there are bytes"):
        read_metadata(b"".join(map(varint, numbers)))


def test_no_cut_and_no_flipped_byte_raises_anything_else() -> None:
    random = Random(5)
    for record, version in framed_records(KINDS, 2, 2):
        data = write_metadata(record, version=version)
        broken = [data[:size] for size in range(0, len(data), 1 + len(data) // 50)]
        for _ in range(50):
            at = random.randrange(len(data))
            broken.append(data[:at] + bytes([random.randrange(256)]) + data[at + 1 :])
        for each in broken:
            try:
                read_metadata(each)
            except FormatError:
                continue
