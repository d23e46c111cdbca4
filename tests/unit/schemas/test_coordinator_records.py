"""The records of the coordinators' topics, in all versions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final
from uuid import UUID

import pytest

from octavo.errors import BadLength, BadRecord, FormatError, InvalidInput, Unsupported
from octavo.schemas.consumer_offsets.offset_records import VERSION, Offset, write_offset_records
from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey, OffsetCommitValue, read_offset_key
from octavo.schemas.consumer_offsets.serde import KINDS as GROUP_KINDS
from octavo.schemas.consumer_offsets.serde import read_group_key
from octavo.schemas.primitives import NO_UUID
from octavo.schemas.share_group_state import KINDS as SHARE_KINDS
from octavo.schemas.transaction_state import KINDS as TRANSACTION_KINDS
from octavo.schemas.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    TransactionState,
    read_transaction_key,
)
from octavo.schemas.versioned import (
    CoordinatorKey,
    UnknownKey,
    UnknownValue,
    read_any_key,
    read_value,
    read_value_of,
    write_key,
    write_value,
)
from tests.messages import coordinator_records

OFFSET_KEY = OffsetCommitKey(group="g", topic="t", partition=3)
OFFSET_VALUE = OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9)
TRANSACTION = TransactionLogValue(
    producer_id=5,
    producer_epoch=1,
    transaction_timeout_ms=60_000,
    transaction_status=TransactionState.ONGOING,
    transaction_partitions=(PartitionsSchema(topic="t", partition_ids=(1, 2)),),
    transaction_last_update_timestamp_ms=1,
    transaction_start_timestamp_ms=2,
)


def test_the_bytes_are_those_of_the_definitions() -> None:
    assert write_key(OFFSET_KEY).hex() == "0001" + "000167" + "000174" + "00000003"
    old = "0000000000000007" + "00016d" + "0000000000000009"
    assert write_value(OFFSET_VALUE, 0).hex() == "0000" + old
    assert write_value(OFFSET_VALUE, 1).hex() == "0001" + old + "ffffffffffffffff"
    assert write_value(OFFSET_VALUE, 4).hex() == "00040000000000000007ffffffff026d000000000000000900"
    assert write_key(TransactionLogKey(transactional_id="id")).hex() == "0000" + "00026964"
    fields = "0000000000000005" + "0001" + "0000ea60" + "01"
    times = "0000000000000001" + "0000000000000002"
    old_partitions = "00000001" + "000174" + "00000002" + "0000000100000002"
    assert write_value(TRANSACTION, 0).hex() == "0000" + fields + old_partitions + times
    assert write_value(TRANSACTION, 1).hex() == "0001" + fields + "020274030000000100000002" + "00" + times + "00"


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_an_offset_is_read_as_it_was_written(version: int) -> None:
    value = OffsetCommitValue(
        offset=2**60,
        leader_epoch=5 if version >= 3 else -1,
        metadata="ü",
        commit_timestamp=1,
        expire_timestamp=8 if version == 1 else -1,
        topic_id=UUID(int=77) if version == 4 else UUID(int=0),
    )
    assert read_value(OffsetCommitValue, write_value(value, version)) == value


@pytest.mark.parametrize("version", TransactionLogValue.VERSIONS)
@pytest.mark.parametrize("partitions", [None, (), TRANSACTION.transaction_partitions])
def test_a_transaction_is_read_as_it_was_written(version: int, partitions: tuple[PartitionsSchema, ...] | None) -> None:
    value = TransactionLogValue(
        producer_id=1,
        previous_producer_id=2 if version else -1,
        next_producer_id=3 if version else -1,
        producer_epoch=4,
        next_producer_epoch=5 if version else -1,
        transaction_timeout_ms=6,
        transaction_status=7,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=8,
        transaction_start_timestamp_ms=9,
        client_transaction_version=2 if version else 0,
    )
    assert read_value(TransactionLogValue, write_value(value, version)) == value


def test_keys_of_other_kinds_are_passed_over() -> None:
    assert read_offset_key(b"\x00\x02\x00\x01g") is None  # of a group
    assert read_offset_key(b"\x00\x00" + write_key(OFFSET_KEY)[2:]) == OFFSET_KEY
    assert read_transaction_key(b"\x00\x01\x00\x01g") is None
    assert read_transaction_key(write_key(TransactionLogKey(transactional_id=""))) is not None


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", BadLength),
        (b"\x00\x01", BadLength),
        (b"\x00\x01\x00\x09g", BadLength),
        (b"\x00\x01\xff\xff", BadRecord),
    ],
)
def test_a_key_that_is_none_is_refused(data: bytes, error: type[FormatError]) -> None:
    with pytest.raises(error):
        read_offset_key(data)


def test_a_value_that_is_none_is_refused() -> None:
    with pytest.raises(Unsupported, match="no version 5"):
        read_value(OffsetCommitValue, b"\x00\x05")
    for version in TransactionLogValue.VERSIONS:
        whole = write_value(TRANSACTION, version)
        for size in range(len(whole)):
            with pytest.raises(FormatError):
                read_value(TransactionLogValue, whole[:size])
    with pytest.raises(BadLength, match="more than there are bytes"):
        read_value(TransactionLogValue, write_value(TRANSACTION, 0)[:17] + b"\x7f\xff\xff\xff" + bytes(40))


def test_what_a_version_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no version 2"):
        write_value(TRANSACTION, 2)
    with pytest.raises(InvalidInput, match="no leader_epoch in version 2"):
        write_value(OffsetCommitValue(offset=1, leader_epoch=1, metadata="", commit_timestamp=0), 2)
    with pytest.raises(InvalidInput, match="no expire_timestamp in version 4"):
        write_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=0, expire_timestamp=1), 4)
    with pytest.raises(InvalidInput, match="no topic_id in version 3"):
        write_value(OffsetCommitValue(offset=1, metadata="", commit_timestamp=0, topic_id=UUID(int=1)), 3)
    with pytest.raises(InvalidInput, match="longer than"):
        write_key(OffsetCommitKey(group="g" * 40_000, topic="t", partition=0))


KINDS: Final[list[Mapping[int, type[CoordinatorKey[Any]]]]] = [GROUP_KINDS, SHARE_KINDS, TRANSACTION_KINDS]


@pytest.mark.parametrize("kinds", KINDS)
def test_every_record_in_every_version_is_read_as_it_was_written(
    kinds: Mapping[int, type[CoordinatorKey[Any]]],
) -> None:
    for key, value, version in coordinator_records(kinds, 1, 3):
        assert read_any_key(kinds, write_key(key)) == key
        assert read_value_of(key, write_value(value, version)) == value


def test_every_type_of_kafka_4_3_is_known() -> None:
    assert sorted(GROUP_KINDS) == sorted({*range(24)} - {9, 18})
    assert sorted(SHARE_KINDS) == [0, 1]
    assert sorted(TRANSACTION_KINDS) == [0]


def test_what_a_later_kafka_writes_is_kept_as_it_is() -> None:
    key = read_group_key(b"\x00\x63abc")
    assert key == UnknownKey(type=99, body=b"abc")
    assert read_value_of(key, b"\x00\x01def") == UnknownValue(version=1, body=b"def")
    assert read_value_of(OFFSET_KEY, b"\x00\x05def") == UnknownValue(version=5, body=b"def")
    assert read_value_of(key, None) is None
    assert read_value_of(OFFSET_KEY, None) is None


def test_a_key_tells_the_type_of_its_value() -> None:
    value = read_value_of(OFFSET_KEY, write_value(OFFSET_VALUE, 4))
    assert isinstance(value, OffsetCommitValue)
    assert value.offset == 7


@pytest.mark.parametrize("kinds", KINDS)
def test_no_cut_and_no_flipped_byte_raises_anything_else(kinds: Mapping[int, type[CoordinatorKey[Any]]]) -> None:
    random = Random(5)
    for key, value, version in coordinator_records(kinds, 6, 1):
        key_data, value_data = write_key(key), write_value(value, version)
        for _ in range(40):
            at, flipped = random.randrange(len(value_data)), random.randrange(1, 256)
            damaged = value_data[:at] + bytes([value_data[at] ^ flipped]) + value_data[at + 1 :]
            for data in (damaged, value_data[:at]):
                with suppress(FormatError):
                    read_value_of(key, data)
            with suppress(FormatError):
                read_any_key(kinds, key_data[: random.randrange(len(key_data))])


def test_committed_offsets_that_are_written_by_hand_have_the_bytes_of_the_definitions() -> None:
    topic_id = UUID(int=5)
    offsets = [
        (topic, number, 1 << number, number - 1, metadata, each)
        for topic in ("", "t", "\N{EURO SIGN}" * 50)
        for number, metadata in enumerate(("", "note", "", "\N{EURO SIGN}" * 100))
        for each in (NO_UUID, topic_id)
    ]
    expected = [
        (
            write_key(OffsetCommitKey(group="g", topic=topic, partition=partition)),
            write_value(
                OffsetCommitValue(
                    offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=9, topic_id=each
                ),
                VERSION,
            ),
        )
        for topic, partition, offset, epoch, metadata, each in offsets
    ]
    assert write_offset_records("g", offsets, 9) == expected


@pytest.mark.parametrize(
    "offset",
    [
        ("t" * 40_000, 0, 0, 0, "", NO_UUID),
        ("t", 1 << 31, 0, 0, "", NO_UUID),
        ("t", 0, 1 << 63, 0, "", NO_UUID),
        ("t", 0, 0, 1 << 31, "note", NO_UUID),
        ("t", 0, 0, 0, "m" * 40_000, NO_UUID),
    ],
)
def test_a_committed_offset_that_has_no_place_in_its_record_is_refused(offset: Offset) -> None:
    with pytest.raises(InvalidInput):
        write_offset_records("g", [offset], 9)
