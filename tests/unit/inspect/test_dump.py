"""Lines of JSON, held against what Kafka says is in its files."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import BadRecord, ChecksumMismatch, InvalidInput
from octavo.inspect import Binary, Dump
from octavo.records import BatchBuilder, Codec, TimestampType
from tests.golden import files
from tests.kafka.answers import ReadBatch, ReadRecord

SEGMENT = files.FOLDER / "segment.bin"


def rows(dump: Iterable[str]) -> list[dict[str, Any]]:
    lines = list(dump)
    assert all(line.endswith("\n") and "\n" not in line[:-1] for line in lines)
    return [json.loads(line) for line in lines]


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def batch_of(*values: bytes | None, base_offset: int = 0, codec: Codec = Codec.NONE, magic: int = 2) -> bytes:
    builder = BatchBuilder(magic, base_offset=base_offset, codec=codec)
    for value in values:
        builder.append(None, value, timestamp_ms=0)
    return builder.build()


def _from_text(told: str | dict[str, str]) -> bytes:
    return told.encode() if isinstance(told, str) else bytes.fromhex(told["hex"])


BACK: dict[Binary, Callable[[Any], bytes]] = {
    Binary.HEX: bytes.fromhex,
    Binary.BASE64: b64decode,
    Binary.TEXT: _from_text,
}


def expected(batch: ReadBatch, record: ReadRecord, position: int, path: Path) -> dict[str, Any]:
    row: dict[str, Any] = {
        "topic": None,
        "partition": None,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestampType": record.timestamp_type,
        "key": record.key,
        "value": record.value,
        "headers": [[key, value] for key, value in record.headers],
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "sequence": record.sequence,
        "isTransactional": batch.transactional,
        "isControl": batch.control,
        "magic": batch.magic,
        "compression": batch.codec,
        "leaderEpoch": batch.leader_epoch,
        "file": str(path),
        "position": position,
    }
    if batch.control:
        assert record.control is not None
        row["control"] = {"type": record.control_type, "version": 0, **record.control}
    return row


@pytest.mark.parametrize("binary", list(Binary))
@pytest.mark.parametrize("name", files.names())
def test_the_rows_are_what_kafka_says(name: str, binary: Binary) -> None:
    golden = files.load(name)
    path = files.FOLDER / f"{name}.bin"
    back = BACK[binary]

    def as_bytes(told: Any) -> bytes | None:
        return None if told is None else back(told)

    found = rows(Dump(path, binary=binary))
    for row in found:
        row["key"], row["value"] = as_bytes(row["key"]), as_bytes(row["value"])
        row["headers"] = [[key, as_bytes(value)] for key, value in row["headers"]]
    said, position = [], 0
    for batch in golden.batches:
        said += [expected(batch, record, position, path) for record in batch.records]
        position += batch.size
    assert found == said
    assert [list(row) for row in found] == [list(row) for row in said]  # the order, for those who read it


def test_null_stays_null_and_empty_stays_empty(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log", batch_of(None, b""))
    for binary in Binary:
        assert [row["value"] for row in rows(Dump(path, binary=binary))] == [None, ""]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("Käfig 🗝".encode(), "Käfig 🗝"),
        (b'{"a": "\\n"}\n\x00', '{"a": "\\n"}\n\x00'),
        (b"\xff\x00", {"hex": "ff00"}),
        (b"\xed\xa0\x80", {"hex": "eda080"}),  # a surrogate: no UTF-8
        ("\N{LINE SEPARATOR}".encode(), "\N{LINE SEPARATOR}"),
    ],
)
def test_text_is_utf_8_and_what_is_not_is_an_object(tmp_path: Path, value: bytes, told: object) -> None:
    path = written(tmp_path / "a.log", batch_of(value))
    assert [row["value"] for row in rows(Dump(path, binary=Binary.TEXT))] == [told]


def test_topic_and_partition_are_in_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "orders-3" / "00000000000000000000.log", batch_of(b"a", b"b"))
    assert [(row["topic"], row["partition"]) for row in rows(Dump(path))] == [("orders", 3)] * 2
    monkeypatch.chdir(path.parent)  # a name without its folder will do
    [row, _] = rows(Dump(Path(path.name)))
    assert (row["topic"], row["file"]) == ("orders", path.name)


@pytest.mark.parametrize("offsets", [(1000, 1004), (1013, 1014), (None, 1016), (1039, None), (5, 5), (None, None)])
def test_a_range_of_offsets_is_half_open(offsets: tuple[int | None, int | None]) -> None:
    first, behind = offsets
    wanted = [
        record.offset
        for record in files.load("segment").records
        if (first is None or record.offset >= first) and (behind is None or record.offset < behind)
    ]
    assert [row["offset"] for row in rows(Dump(SEGMENT, offsets=offsets))] == wanted


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Dump(SEGMENT, offsets=(2, 1))


def damaged(tmp_path: Path) -> tuple[Path, int]:
    batches = [batch_of(b"a" * 30, base_offset=n) for n in range(3)]
    data = bytearray(b"".join(batches))
    data[len(batches[0]) + 70] ^= 1
    return written(tmp_path / "a.log", bytes(data)), len(batches[0])


def test_damage_raises_after_everything_before_it(tmp_path: Path) -> None:
    path, position = damaged(tmp_path)
    lines = iter(Dump(path))
    assert json.loads(next(lines))["offset"] == 0
    with pytest.raises(ChecksumMismatch) as caught:
        next(lines)
    assert caught.value.position == position


def test_damage_outside_the_wanted_offsets_does_not_matter(tmp_path: Path) -> None:
    path, _ = damaged(tmp_path)
    assert [row["offset"] for row in rows(Dump(path, offsets=(2, None)))] == [2]


def test_without_verification_a_wrong_checksum_goes_unnoticed(tmp_path: Path) -> None:
    path, _ = damaged(tmp_path)
    assert [row["offset"] for row in rows(Dump(path, verify=False))] == [0, 1, 2]


def test_resync_goes_on_behind_damage_and_keeps_account(tmp_path: Path) -> None:
    path, position = damaged(tmp_path)
    dump = Dump(path, resync=True)
    assert [row["offset"] for row in rows(dump)] == [0, 2]
    assert [(found.position, type(found.error)) for found in dump.damage] == [(position, ChecksumMismatch)]
    assert dump.position == dump.size == path.stat().st_size


def bad_marker() -> bytes:
    """A control batch whose checksum is right and whose record says nothing."""
    builder = BatchBuilder(control=True, base_offset=1)
    builder.append(b"\x00\x00\x00\x01", None, timestamp_ms=0)
    return builder.build()


def test_a_batch_with_a_right_checksum_and_wrong_records_is_damage_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.log", batch_of(b"a") + bad_marker() + batch_of(b"c", base_offset=2))
    with pytest.raises(BadRecord):
        list(Dump(path))
    dump = Dump(path, resync=True)
    assert [row["offset"] for row in rows(dump)] == [0, 2]
    assert [type(found.error) for found in dump.damage] == [BadRecord]


def test_a_torn_tail_is_told_and_no_damage() -> None:
    dump = Dump(files.FOLDER / "segment-torn.bin")
    rows(dump)
    assert dump.torn_tail == sum(batch.size for batch in files.load("segment-torn").batches)
    assert dump.damage == []


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    assert rows(Dump(written(tmp_path / "a.log", b""))) == []


def test_what_cannot_be_mapped_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="directory"):
        Dump(tmp_path)
    with pytest.raises(FileNotFoundError):
        Dump(tmp_path / "none.log")
    with pytest.raises(OSError, match="no ordinary file"):
        Dump(Path("/dev/null"))


def test_append_times_count_for_all_records_of_the_batch(tmp_path: Path) -> None:
    builder = BatchBuilder(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time_ms=7)
    builder.append(None, b"a", timestamp_ms=1)
    [row] = rows(Dump(written(tmp_path / "a.log", builder.build())))
    assert (row["timestamp"], row["timestampType"]) == (7, "LogAppendTime")


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_that_its_producer_left_at_offset_0_is_looked_into(tmp_path: Path, magic: int) -> None:
    wrapper = batch_of(*(b"%d" % number for number in range(10)), codec=Codec.GZIP, magic=magic)
    path = written(tmp_path / "a.log", bytes(8) + wrapper[8:])  # no checksum covers the offset
    assert [row["offset"] for row in rows(Dump(path, offsets=(4, 6)))] == [4, 5]
    assert rows(Dump(path, offsets=(10, None))) == []
