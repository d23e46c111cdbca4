"""`octavo dump` decodes internal topics by the names of their folders, and keys and values by options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from octavo.cli import main
from octavo.inspect import record_lines
from octavo.records import BatchBuilder
from octavo.records.kernels import Kernels
from octavo.schemas.consumer_offsets.offsets import OffsetCommitKey, OffsetCommitValue
from octavo.schemas.versioned import write_key, write_value
from tests.plugin import install

KEY: Final = write_key(OffsetCommitKey(group="g", topic="t", partition=3))
VALUE: Final = write_value(OffsetCommitValue(offset=7, metadata="m", commit_timestamp=9), 4)
KEY_JSON: Final = {"type": "1", "data": {"group": "g", "topic": "t", "partition": 3}}

Records = list[tuple[bytes | None, bytes | None]]


def segment(folder: Path, records: Records, *, copies: int = 1) -> Path:
    """A segment with these records in each of some batches."""
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / "00000000000000000000.log"
    batches = []
    for number in range(copies):
        builder = BatchBuilder(base_offset=number * len(records))
        for key, value in records:
            builder.append(key, value, timestamp_ms=1_700_000_000_000)
        batches.append(builder.build())
    path.write_bytes(b"".join(batches))
    return path


@pytest.fixture
def offsets(tmp_path: Path) -> Path:
    """A file of `__consumer_offsets`, in which one record is cut off."""
    return segment(tmp_path / "__consumer_offsets-3", [(KEY, VALUE), (KEY, None), (KEY, VALUE[:9])])


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A file of JSON, in which one value is no JSON."""
    return segment(tmp_path / "orders-0", [(b"tea", b'{"price":2.50}'), (b"\xff", b"{"), (None, None)])


def lines(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str | Path) -> list[dict[str, Any]]:
    assert main(["dump", "--format", "jsonl", *map(str, arguments)]) == 0
    return [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]


def test_an_internal_topic_is_decoded_and_its_bytes_stay(
    offsets: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    first, deleted, broken = lines(capfdbinary, offsets, "--binary", "hex")
    assert (first["key"], first["decodedKey"]) == (KEY.hex(), KEY_JSON)
    assert (first["value"], first["decodedValue"]["data"]["offset"]) == (VALUE.hex(), 7)
    assert "decodeError" not in first
    assert (deleted["value"], deleted["decodedKey"], deleted["decodedValue"]) == (None, KEY_JSON, None)
    assert (broken["decodedKey"], broken["decodedValue"]) == (KEY_JSON, None)
    assert broken["decodeError"].startswith("Could not read record with version 4")


def test_it_is_not_decoded_if_that_is_not_wanted(offsets: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert not [name for line in lines(capfdbinary, offsets, "--no-decode") for name in line if name.startswith("deco")]


def test_other_topics_are_not_decoded_unasked(orders: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert not [name for line in lines(capfdbinary, orders) for name in line if name.startswith("deco")]


def test_formats_of_keys_and_values(orders: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    tea, broken, empty = lines(capfdbinary, orders, "--value-format", "json", "--key-format", "string")
    assert (tea["decodedKey"], tea["decodedValue"]) == ("tea", {"price": 2.5})
    assert (broken["decodedKey"], broken["decodedValue"]) == (None, None)
    assert broken["decodeError"].startswith("key: the value is not UTF-8")
    assert (empty["decodedKey"], empty["decodedValue"], "decodeError" in empty) == (None, None, False)


def test_a_schema_is_text_or_a_file(orders: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = tmp_path / "schema.ddl"
    file.write_text("price DOUBLE, name STRING")
    for schema in ("price DOUBLE, name STRING", str(file)):
        found = lines(capfdbinary, orders, "--value-format", "json", "--schema", schema)
        assert found[0]["decodedValue"] == {"price": 2.5, "name": None}


def test_a_format_of_another_package(
    orders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    install(packages, "octavo_test_length")
    monkeypatch.syspath_prepend(packages)
    found = lines(capfdbinary, orders, "--value-format", "length", "--message", "size")
    assert [line["decodedValue"] for line in found] == [{"size": 14}, {"size": 1}, None]


def test_many_records_are_decoded_in_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    records: Records = [(KEY, VALUE), (KEY, None), (KEY, VALUE[:9]), (None, VALUE)]
    path = segment(tmp_path / "__consumer_offsets-3", records, copies=300)
    one_by_one = lines(capfdbinary, path)
    loaded = Kernels(compiled=False)  # what prints columns is tried compiled elsewhere
    monkeypatch.setattr(record_lines.RecordLines, "_compiled", lambda _: loaded)
    assert lines(capfdbinary, path) == one_by_one
    assert len(one_by_one) == 1200


def test_parquet_has_columns_for_what_is_decoded(orders: Path, tmp_path: Path) -> None:
    output = tmp_path / "orders.parquet"
    options = ["--value-format", "json", "--key-format", "string"]
    assert main(["dump", str(orders), "--format", "parquet", "--output", str(output), *options]) == 0
    found = pq.read_table(output, columns=["value", "decodedKey", "decodedValue", "decodeError"]).to_pylist()
    assert found[0] == {
        "value": b'{"price":2.50}',
        "decodedKey": '"tea"',
        "decodedValue": '{"price":2.50}',
        "decodeError": None,
    }
    assert found[1]["decodeError"].startswith("key: ")


def test_a_table_shows_what_is_decoded(
    offsets: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert main(["dump", "--format", "table", str(offsets)]) == 0
    shown = capfdbinary.readouterr().out.decode()
    assert "OffsetCommit group=g topic=t partition=3  " in shown
    assert "offset=7 leaderEpoch=-1 metadata=m commitTimestamp=9" in shown
    assert "cannot be decoded: Could not read record" in shown


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--value-format", "xml"], "there is no format 'xml' of values: there are json, avro, protobuf, string"),
        (["--value-format", "avro"], "--value-format avro needs --schema or --schema-folder"),
        (["--schema", "x"], "--schema says how a format is decoded: give --value-format as well"),
        (["--key-message", "x"], "--key-message says how a format is decoded: give --key-format as well"),
        (["--value-format", "json", "--print-data-log"], "does not go with --value-format"),
        (["--value-format", "json", "--format", "kafka"], "Kafka's text has no place for --value-format"),
    ],
)
def test_options_that_make_no_sense(
    options: list[str], problem: str, orders: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["dump", str(orders), *options]) == 2
    told = capfdbinary.readouterr()
    assert problem in told.err.decode()
    assert told.out == b""
