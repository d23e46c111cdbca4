"""Faults in batches, records and old messages that Kafka wrote are found where they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from octavo.inspect.verify import check_file, check_partition, examiner
from octavo.inspect.verify.batch_rules import FAULTS as OF_KERNELS
from octavo.records.compression import Inflater
from tests.golden.files import load, names
from tests.unit.inspect.verify.planted_batches import (
    BEFORE,
    Planted,
    at_offset,
    field,
    inner,
    inside,
    put,
    record_field,
    record_place,
    right,
    write_log,
)

_NO_METADATA: Final = frozenset({"metadata-record"})  # these batches have other records than those of a quorum
LAST: Final = 105  # offset of the messages of magic 0 and 1 that have others inside
NONE: Final = load("v2-none").data
HEADERS: Final = load("v2-none-headers").data


def fixed(name: str, value: int) -> Callable[[bytes], bytes]:
    return right(field(name, value))


def record(number: int, name: str, new: bytes, *, batch: str = "v2-none", rule: str = "", header: int = 0) -> Planted:
    """Return a fault in a record, which is found at the start of the record."""
    at = record_place(load(batch).data, number, "length")
    return Planted(rule, batch, right(record_field(number, name, new, header=header)), at)


def _short_value(batch: bytes) -> bytes:
    """Make the value of the first record a byte shorter, so that this byte becomes a count of no headers."""
    at = record_place(batch, 0, "value_length")
    length = batch[at] >> 1
    shorter = put(at, bytes([(length - 1) << 1]))(batch)
    return put(record_place(batch, 0, "headers") - 1, b"\0")(shorter)


def _twice(batch: bytes) -> bytes:
    batch = fixed("base_sequence", 10)(batch)
    return batch + at_offset(200, batch)


def _with_gap(batch: bytes) -> bytes:
    return at_offset(6, batch) + at_offset(13, batch)


BATCHES: Final = [
    Planted("batch-length", "v2-none", field("length", 13)),
    Planted("batch-length", "v2-none", field("length", 48)),
    Planted("batch-length", "v2-none", field("length", len(NONE) - 12 + 1)),
    Planted("batch-length", "v2-none", field("length", len(NONE) - 12 - 7)),
    Planted("batch-length", "v2-none", field("length", 1 << 30)),
    Planted("batch-magic", "v2-none", field("magic", 3)),
    Planted("batch-magic", "v2-none", field("magic", 1)),
    Planted("batch-crc", "v2-none", lambda batch: batch[:-1] + b"\1"),
    Planted("batch-crc", "v2-zstd", field("crc", 7)),
    Planted("batch-crc", "v1-none", put(12, bytes(4))),
    Planted(
        "batch-offset",
        "v2-none",
        field("base_offset", -7),
        0,
        -7,
        frozenset({"batch-offset-order", "segment-base-offset"}),
    ),
    Planted("batch-offset-order", "v2-none", field("base_offset", 5), 0, 5),
    Planted("batch-offset-order", "v2-none", field("base_offset", 4711), 0, 4716),
    Planted("batch-leader-epoch", "v2-none", field("leader_epoch", -2)),
    Planted(
        "batch-leader-epoch-order",
        "v2-none",
        lambda batch: field("leader_epoch", 7)(batch) + field("leader_epoch", 6)(at_offset(200, batch)),
        0,
        200,
    ),
    Planted("batch-gap", "v2-none", _with_gap, len(NONE), 13, _NO_METADATA, "__cluster_metadata-0"),
    Planted("batch-attributes", "v2-none", fixed("attributes", 0x80)),
    Planted("batch-attributes", "v2-none", fixed("attributes", 0x100)),
    Planted("batch-codec", "v2-none", fixed("attributes", 5)),
    Planted("batch-last-offset-delta", "v2-none", fixed("last_offset_delta", -1)),
    Planted("batch-count", "v2-none", fixed("record_count", 7)),
    Planted("batch-count", "v2-none", fixed("record_count", -1)),
    Planted("batch-not-empty", "v2-none", fixed("record_count", 0)),
    Planted("batch-timestamp", "v2-none", fixed("max_timestamp_ms", -2)),
    Planted("batch-max-timestamp", "v2-none", fixed("max_timestamp_ms", 1_700_000_000_036)),
    Planted("batch-max-timestamp", "v2-lz4", fixed("max_timestamp_ms", 1_700_000_000_036)),
    Planted("batch-delete-horizon", "v2-empty", fixed("attributes", 0x40)),
    Planted("batch-delete-horizon", "v2-none", right(field("attributes", 0x40), field("base_timestamp_ms", -1))),
    Planted("batch-producer", "v2-idempotent", fixed("producer_epoch", -1)),
    Planted("batch-producer", "v2-none", fixed("producer_id", -2)),
    Planted("batch-sequence", "v2-idempotent", fixed("base_sequence", -1)),
    Planted("batch-sequence", "abort", fixed("base_sequence", 0)),
    Planted("batch-transactional", "v2-none", fixed("attributes", 0x10)),
    Planted("batch-sequence-order", "v2-idempotent", _twice, len(load("v2-idempotent").data), 200),
    Planted("batch-compression", "v2-zstd", right(put(70, b"\xff" * 8))),
    Planted("batch-compression", "v2-lz4", right(put(61, b"\0"))),
    Planted("batch-compression", "v1-gzip", right(put(34, b"\0")), offset=LAST),
]
CONTROL: Final = [
    Planted("control-count", "abort", right(field("record_count", 2), field("last_offset_delta", 1))),
    Planted("control-key", "abort", right(record_field(0, "key", b"\xff\xff")), 61),
    Planted("control-type", "abort", right(record_field(0, "key", b"\0\0\0\2")), 61),
    Planted("control-type", "leader-change", right(record_field(0, "key", b"\0\0\0\1")), 61),
    Planted("control-type", "commit", right(record_field(0, "key", b"\0\0\0\7")), 61),
    Planted("control-value", "commit", right(record_field(0, "value", b"\xff\xff")), 61),
    Planted("control-codec", "commit", fixed("attributes", 0x31)),
]
RECORDS: Final = [
    record(2, "length", b"\xff" * 5, rule="record-varint"),
    record(2, "timestamp", b"\xff" * 10, rule="record-varint"),
    record(5, "length", b"\x7e", rule="record-length"),
    record(1, "length", b"\x0a", rule="record-length"),
    record(1, "attributes", b"\1", rule="record-attributes"),
    Planted("record-timestamp", "v2-none", fixed("base_timestamp_ms", -2), 61),
    record(3, "offset", b"\4", rule="record-offset"),
    record(5, "offset", b"\x0c", rule="record-offset"),
    record(1, "key_length", b"\x7e", rule="record-key-length"),
    record(4, "value_length", b"\x7e", rule="record-value-length"),
    record(1, "key_length", b"\3", rule="record-null"),
    record(1, "headers", b"\1", rule="record-header-count"),
    record(0, "headers", b"\xfe\x7f", rule="record-header-count", batch="v2-none-headers"),
    record(0, "header_key_length", b"\1", rule="record-header-key", batch="v2-none-headers"),
    record(0, "header_value_length", b"\xfe", rule="record-header-value", batch="v2-none-headers", header=5),
    Planted("record-not-filled", "v2-none", right(_short_value), 61),
    Planted("records-missing", "v2-none", right(field("record_count", 7), field("last_offset_delta", 6)), len(NONE)),
    Planted("records-missing", "v2-gzip", right(field("record_count", 7), field("last_offset_delta", 6))),
    Planted("records-left-over", "v2-none", fixed("record_count", 5), record_place(NONE, 5, "length")),
    Planted("records-left-over", "v2-snappy", fixed("record_count", 5)),
]
MESSAGES: Final = [
    Planted("batch-codec", "v1-gzip", right(put(17, b"\4")), offset=LAST),
    Planted("message-attributes", "v1-none", right(put(17, b"\x10"))),
    Planted("message-attributes", "v0-none", right(put(17, b"\x08"))),
    Planted("message-timestamp", "v1-none", right(put(18, b"\xff" * 7 + b"\xfe"))),
    Planted("message-key-length", "v1-none", right(put(26, b"\0\0\1\0"))),
    Planted("message-key-length", "v0-none", right(put(18, b"\xff\xff\xff\xfe"))),
    Planted("message-value-length", "v1-none", right(put(35, b"\0\0\1\0"))),
    Planted("message-not-filled", "v0-none", right(put(27, b"\0\0\0\3"))),
    Planted("wrapper-null", "v1-none-nulls", right(put(17, b"\1"))),
    Planted("wrapper-empty", "v1-gzip", inside(lambda data: b""), offset=LAST),
    Planted("wrapper-nested", "v1-gzip", inside(inner(2, put(17, b"\2"))), offset=LAST),
    Planted("wrapper-offset", "v1-gzip", inside(inner(5, put(6, b"\1"))), offset=LAST),
    Planted("wrapper-offset", "v0-gzip", lambda batch: at_offset(107, batch), offset=107),
    Planted("wrapper-timestamp", "v1-gzip", inside(inner(1, put(18, b"\x7f"))), offset=LAST),
    Planted("inner-length", "v1-gzip", inside(lambda data: data[:-1]), offset=LAST),
    Planted("inner-length", "v0-gzip", inside(inner(1, put(8, bytes(4)), is_right=False)), offset=LAST),
    Planted("inner-magic", "v1-gzip", inside(inner(1, put(16, b"\2"))), offset=LAST),
    Planted("inner-crc", "v1-gzip", inside(inner(3, put(12, bytes(4)), is_right=False)), offset=LAST),
    Planted("inner-offset-order", "v1-gzip", inside(inner(3, put(0, bytes(8)))), offset=LAST),
]
FAULTS: Final = [*BATCHES, *CONTROL, *RECORDS, *MESSAGES]


def places(planted: Planted, folder: Path, ignore: str | None = None) -> list[tuple[str, int | None, int | None]]:
    found = planted.found(folder, () if ignore is None else {ignore})
    assert {problem.file for problem in found} <= {f"{0:020d}.log"}
    return [(problem.rule.name, problem.position, problem.offset) for problem in found]


@pytest.mark.parametrize("planted", FAULTS, ids=str)
def test_a_planted_fault_is_found_where_it_is(planted: Planted, tmp_path: Path) -> None:
    found = places(planted, tmp_path)
    assert (planted.rule, len(BEFORE) + planted.at, planted.offset) in found
    assert {rule for rule, _, _ in found} == {planted.rule, *planted.also}
    assert planted.rule not in {rule for rule, _, _ in places(planted, tmp_path, ignore=planted.rule)}


def test_every_rule_of_the_kernels_has_a_fault() -> None:
    assert {fault.rule.name for fault in OF_KERNELS.values()} <= {planted.rule for planted in FAULTS}


@pytest.mark.parametrize("name", names())
def test_what_kafka_wrote_is_sound(name: str, tmp_path: Path) -> None:
    golden = load(name)
    first = golden.batches[0].base_offset
    folder = write_log(tmp_path / "golden-0", golden.data, first)
    expected = ["segment-torn-tail"] if name == "segment-torn" else []
    assert [problem.rule.name for problem in check_file(folder / f"{first:020d}.log")] == expected


def test_a_batch_that_decompresses_to_too_much_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examiner, "Inflater", partial(Inflater, limit=100))
    found = list(check_partition(write_log(tmp_path / "large-0", load("v2-zstd").data)))
    assert [(problem.rule.name, problem.position, problem.offset) for problem in found] == [("batch-size", 0, 100)]
