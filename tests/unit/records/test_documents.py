"""The pages under docs/formats say what the code does: their tables are the layouts, and their hex is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.records.batch import Batch
from octavo.records.builder import BatchBuilder, empty_batch
from octavo.records.control import (
    Control,
    ControlType,
    EndTransactionMarker,
    end_transaction_marker,
    read_control,
    write_control,
)
from octavo.records.control_key import write_control_key
from octavo.records.layout import BATCH_HEADER, MESSAGE_V1, Attributes, Codec, Layout
from octavo.records.reader import read_batches
from octavo.records.record import Header, Record
from tests.batches import TIME_MS
from tests.unit.records.test_control import CONTENTS

DOCUMENTS: Final = Path(__file__).resolve().parents[3] / "docs" / "formats"
SIZES: Final = {"int8": 1, "int16": 2, "int32": 4, "uint32": 4, "int64": 8}


def blocks(name: str, kind: str = "hex") -> list[list[str]]:
    """The lines of each fenced block of a kind."""
    text = (DOCUMENTS / f"{name}.md").read_text("utf-8")
    return [block.strip().split("\n") for block in re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)]


def worked(name: str) -> list[bytes]:
    """The bytes of each worked example."""
    return [bytes.fromhex("".join(line.split()[0] for line in block)) for block in blocks(name)]


def only(data: bytes) -> Batch:
    (batch,) = read_batches(data)
    return batch


@pytest.mark.parametrize(("name", "layout"), [("batch-v2", BATCH_HEADER), ("messages-v0-v1", MESSAGE_V1)])
def test_the_table_of_the_header_is_the_layout(name: str, layout: Layout[Any]) -> None:
    text = (DOCUMENTS / f"{name}.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)` \| (\w+) \|", text, re.MULTILINE)
    at = 0
    for position, size, field, type_ in rows:
        assert int(position) == at == layout.at(field)
        assert int(size) == SIZES[type_]
        at += int(size)
    assert at == layout.size


def named_fields(block: list[str]) -> Iterator[tuple[str, int]]:
    """The name that each line of a worked example begins with, and the position of its bytes."""
    at = 0
    for line in block:
        stored, field, *_ = line.split()
        yield field, at
        at += len(stored) // 2


@pytest.mark.parametrize(("name", "layout"), [("batch-v2", BATCH_HEADER), ("messages-v0-v1", MESSAGE_V1)])
def test_the_worked_fields_stand_where_the_layout_says(name: str, layout: Layout[Any]) -> None:
    for block in blocks(name):
        in_header = [(field, at) for field, at in named_fields(block) if at < layout.size and "_" in field]
        for field, at in in_header:
            assert layout.at(field) == at
        assert in_header or name != "batch-v2"


def test_the_flags_are_the_codes() -> None:
    text = (DOCUMENTS / "batch-v2.md").read_text("utf-8")
    flags = {flag: int(mask, 16) for flag, mask in re.findall(r"^\| `(\w+)` \| (0x\w\w) \|", text, re.MULTILINE)}
    assert flags == {str(flag.name): int(flag) for flag in Attributes if flag & ~Attributes.CODEC}
    for codec in Codec:
        assert f"{codec.value} {codec.name.lower()}" in text


def test_the_worked_batch_is_read_and_written() -> None:
    data, empty = worked("batch-v2")
    assert list(only(data)) == [Record(0, TIME_MS, b"k", b"v", (Header("h", None),))]
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp_ms=TIME_MS, headers=[("h", None)])
    assert builder.build() == data
    assert list(only(empty)) == []
    assert empty == empty_batch(
        base_offset=10,
        last_offset=14,
        max_timestamp_ms=TIME_MS,
        leader_epoch=2,
        producer_id=1000,
        producer_epoch=3,
        base_sequence=20,
    )


def test_the_worked_messages_are_read_and_written() -> None:
    v0, v1, wrapper = worked("messages-v0-v1")
    assert list(only(v0)) == [Record(0, -1, b"k", b"v")]
    assert list(only(v1)) == [Record(0, TIME_MS, b"k", b"v")]
    for magic, data in ((0, v0), (1, v1)):
        builder = BatchBuilder(magic)
        builder.append(b"k", b"v", timestamp_ms=TIME_MS)
        assert builder.build() == data
    batch = only(wrapper)
    assert list(batch) == [Record(41, TIME_MS, b"k", b"v"), Record(42, TIME_MS, None, None)]
    assert (batch.base_offset, batch.last_offset, batch.codec) == (41, 42, Codec.SNAPPY)


def test_the_worked_marker_is_read_and_written() -> None:
    (data,) = worked("control")
    (record,) = only(data)
    assert read_control(record) == EndTransactionMarker(type=ControlType.COMMIT, coordinator_epoch=7)
    fields = {"offset": 5, "producer_id": 1000, "producer_epoch": 3, "coordinator_epoch": 7, "leader_epoch": 2}
    assert end_transaction_marker(True, timestamp_ms=TIME_MS, **fields) == data


def test_the_worked_values_of_the_quorum_are_read_and_written() -> None:
    contents: dict[str, Control] = {content.type.name: content for content, _, _ in reversed(CONTENTS)}
    ((*lines,),) = blocks("control", "values")
    for line in lines:
        name, stored = line.split(maxsplit=1)
        record = Record(key=write_control_key(ControlType[name]), value=bytes.fromhex(stored))
        assert read_control(record) == contents[name]
        assert write_control(contents[name]) == (record.key, record.value)


def test_the_types_of_control_records_are_the_codes() -> None:
    text = (DOCUMENTS / "control.md").read_text("utf-8")
    types = {name: int(number) for number, name in re.findall(r"^\| (\d) \| ([A-Z_]+) \|", text, re.MULTILINE)}
    assert types == {type_.name: int(type_) for type_ in ControlType if type_ != ControlType.UNKNOWN}
