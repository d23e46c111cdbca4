from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from octavo.errors import BadLength, BadRecord, BadVarint, FormatError, InvalidInput
from octavo.records.control import (
    Control,
    ControlType,
    Endpoint,
    EndTransactionMarker,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    control_batch,
    end_transaction_marker,
    read_control,
    write_control,
)
from octavo.records.reader import read_batches
from octavo.records.record import Record
from tests.batches import TIME_MS

DIRECTORY = UUID("00112233-4455-6677-8899-aabbccddeeff")

CONTENTS: list[tuple[Control, str, str]] = [
    (EndTransactionMarker(type=ControlType.ABORT, coordinator_epoch=7), "00000000", "000000000007"),
    (EndTransactionMarker(type=ControlType.COMMIT, coordinator_epoch=-1), "00000001", "0000ffffffff"),
    (
        LeaderChange(leader_id=3, voters=(QuorumVoter(id=3), QuorumVoter(id=4)), granting_voters=(QuorumVoter(id=3),)),
        "00000002",
        "0000 00000003 03 00000003 00 00000004 00 02 00000003 00 00",
    ),
    (
        LeaderChange(version=1, leader_id=3, voters=(QuorumVoter(id=3, directory_id=DIRECTORY),)),
        "00000002",
        "0001 00000003 02 00000003 00112233445566778899aabbccddeeff 00 01 00",
    ),
    (SnapshotHeader(last_contained_log_timestamp_ms=TIME_MS), "00000003", "0000 0000018bcfe56800 00"),
    (SnapshotFooter(), "00000004", "0000 00"),
    (KRaftVersion(kraft_version=1), "00000005", "0000 0001 00"),
    (
        KRaftVoters(
            voters=(
                KRaftVoter(
                    id=1,
                    directory_id=DIRECTORY,
                    endpoints=(Endpoint(name="C", host="h", port=65535),),
                    max_supported_version=1,
                ),
            )
        ),
        "00000006",
        "0000 02 00000001 00112233445566778899aabbccddeeff 02 0243 0268 ffff 00 0000 0001 00 00 00",
    ),
    (UnknownControl(type_id=99, value=b"?"), "00000063", "3f"),
]


@pytest.mark.parametrize(("content", "key", "value"), CONTENTS)
def test_each_type_is_written_and_read(content: Control, key: str, value: str) -> None:
    record = Record(key=bytes.fromhex(key), value=bytes.fromhex(value))
    assert write_control(content) == (record.key, record.value)
    assert read_control(record) == content


@pytest.mark.parametrize(("content", "key", "value"), CONTENTS[:-1])
def test_every_cut_of_a_value_is_refused(content: Control, key: str, value: str) -> None:
    whole = bytes.fromhex(value)
    for size in range(len(whole)):
        with pytest.raises(BadLength) as caught:
            read_control(Record(key=bytes.fromhex(key), value=whole[:size]), position=42)
        assert caught.value.position == 42


@pytest.mark.parametrize(("content", "key", "value"), CONTENTS)
def test_bytes_behind_key_and_value_are_passed_over(content: Control, key: str, value: str) -> None:
    record = Record(key=bytes.fromhex(key) + b"more", value=bytes.fromhex(value) + b"more")
    if isinstance(content, UnknownControl):
        content = replace(content, value=record.value)
    assert read_control(record) == content


@pytest.mark.parametrize("tagged", ["01 05 03 aabbcc", "02 00 00 8001 01 ff"])
def test_tagged_fields_are_passed_over(tagged: str) -> None:
    value = bytes.fromhex("0000 0001" + tagged)
    assert read_control(Record(key=b"\0\0\0\5", value=value)) == KRaftVersion(kraft_version=1)


def test_later_versions_are_read_as_version_0() -> None:
    assert read_control(Record(key=b"\0\7\0\1", value=b"\0\7\0\0\0\1")) == EndTransactionMarker(
        type=ControlType.COMMIT, coordinator_epoch=1, version=7
    )
    assert read_control(Record(key=b"\0\0\0\5", value=b"\0\7\0\1\0")) == KRaftVersion(kraft_version=1, version=7)


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        (None, b"", BadLength),
        (b"\0\0\0", b"", BadLength),
        (b"\xff\xff\0\0", b"\0\0\0\0\0\0", BadRecord),
        (b"\0\0\0\0", None, BadRecord),
        (b"\0\0\0\0", b"\xff\xff\0\0\0\0", BadRecord),
        (b"\0\0\0\2", None, BadRecord),
        (b"\0\0\0\2", b"\0\0\0\0\0\1\0", BadRecord),  # null voters
        (b"\0\0\0\2", b"\0\0\0\0\0\1\x7f", BadLength),
        (b"\0\0\0\2", b"\0\0\0\0\0\1\xff\xff\xff\xff\x0f", BadLength),
        (b"\0\0\0\2", b"\0\0\0\0\0\1\xff\xff\xff\xff\xff\x01", BadVarint),
        (b"\0\0\0\5", b"\0\0\0\1\xff\xff\xff\xff\x0f", BadLength),  # four billion tagged fields
        (b"\0\0\0\6", b"\0\0\2\0\0\0\1" + bytes(16) + b"\2\0", BadRecord),  # a null name
        (b"\0\0\0\6", b"\0\0\2\0\0\0\1" + bytes(16) + b"\2\xff\xff\x03", BadLength),
    ],
)
def test_what_cannot_be_is_refused(key: bytes | None, value: bytes | None, kind: type[FormatError]) -> None:
    with pytest.raises(kind) as caught:
        read_control(Record(key=key, value=value), position=42)
    assert type(caught.value) is kind
    assert caught.value.position == 42


def test_the_end_of_a_transaction_gives_the_known_bytes() -> None:
    data = end_transaction_marker(
        True,
        offset=5,
        timestamp_ms=TIME_MS,
        producer_id=1000,
        producer_epoch=3,
        coordinator_epoch=7,
        leader_epoch=2,
    )
    assert data.hex() == (
        "0000000000000005000000420000000202ad320ccb0030000000000000018bcfe568000000018bcfe5680000000000"
        "000003e80003ffffffff000000012000000008000000010c00000000000700"
    )
    (batch,) = read_batches(data)
    assert [read_control(record) for record in batch] == [
        EndTransactionMarker(type=ControlType.COMMIT, coordinator_epoch=7)
    ]


def test_a_batch_of_the_quorum_holds_what_was_given() -> None:
    contents = [content for content, _, _ in CONTENTS if content.type >= ControlType.LEADER_CHANGE]
    (batch,) = read_batches(control_batch(contents, base_offset=9, timestamp_ms=TIME_MS, leader_epoch=4))
    assert [read_control(record) for record in batch] == contents
    assert (batch.is_control, batch.is_transactional, batch.leader_epoch, batch.base_offset) == (True, False, 4, 9)


def test_what_kafka_would_not_write_is_refused() -> None:
    with pytest.raises(InvalidInput):
        EndTransactionMarker(type=ControlType.LEADER_CHANGE, coordinator_epoch=0)
    with pytest.raises(InvalidInput):
        control_batch([CONTENTS[0][0]], timestamp_ms=TIME_MS, leader_epoch=1)
    with pytest.raises(InvalidInput):
        control_batch([LeaderChange(leader_id=1)], timestamp_ms=TIME_MS, leader_epoch=-1)
    with pytest.raises(InvalidInput):
        end_transaction_marker(True, timestamp_ms=0, producer_id=-1, producer_epoch=0, coordinator_epoch=0)


@pytest.mark.parametrize(
    "content",
    [
        EndTransactionMarker(type=ControlType.COMMIT, coordinator_epoch=2**31),
        LeaderChange(leader_id=2**31),
        LeaderChange(leader_id=0, voters=(QuorumVoter(id=0, directory_id=DIRECTORY),)),
        KRaftVersion(kraft_version=2**15),
        KRaftVoters(
            voters=(KRaftVoter(id=1, directory_id=DIRECTORY, endpoints=(Endpoint(name="", host="", port=-1),)),)
        ),
        KRaftVoters(
            voters=(
                KRaftVoter(id=1, directory_id=DIRECTORY, endpoints=(Endpoint(name="n" * 40_000, host="", port=0),)),
            )
        ),
        UnknownControl(type_id=2**15, value=None),
    ],
)
def test_what_does_not_fit_is_refused(content: Control) -> None:
    with pytest.raises(InvalidInput):
        write_control(content)
