"""Entries of the files that brokers wrote are those in Kafka's own text, which is held to Kafka's tool."""

from __future__ import annotations

import io
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from octavo.cli import main
from octavo.cli.exits import FINE
from octavo.errors import CorruptFile, InvalidInput, Unreadable
from octavo.inspect.entries import fields_of, has_entries, name_of, read_entries
from octavo.inspect.kafka_text import TextOptions, print_files
from octavo.inspect.kinds import FileName, Kind
from octavo.inspect.listing import files_below
from tests.golden.directories import unpack

NUMBER = re.compile(r"(\w+): (OptionalLong\.empty|OptionalLong\[(\d+)\]|-?\d+)")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a broker wrote."""
    return unpack("closed", tmp_path_factory.mktemp("entries"))


def in_kafkas_text(path: Path) -> list[dict[str, int | None]]:
    """The numbers of every line that Kafka's tool prints for a file."""
    out = io.BytesIO()
    print_files([str(path)], TextOptions(), out, io.BytesIO())
    rows = []
    for line in out.getvalue().decode().splitlines()[1:]:
        found = {name: None if "empty" in text else int(inner or text) for name, text, inner in NUMBER.findall(line)}
        if found:
            rows.append(found)
    return rows


@pytest.mark.parametrize(
    "kind",
    [Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX, Kind.PRODUCER_SNAPSHOT],
    ids=lambda kind: kind.name,
)
def test_entries_are_those_in_kafkas_text(directory: Path, kind: Kind) -> None:
    names = {path: FileName.parse(path.name) for path in files_below(directory)}
    paths = [path for path, name in names.items() if name.kind is kind and not name.renamed]  # it ignores the others
    compared = 0
    for path in paths:
        entries = list(read_entries(path))
        said = in_kafkas_text(path)
        if kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX) and not entries:
            continue  # Kafka's tool prints the first entry even if it is only zeros
        assert len(entries) == len(said), path
        for entry, row in zip(entries, said, strict=True):
            shared = {name: entry[name] for name in row if name in entry}
            assert shared == {name: row[name] for name in shared}
            assert len(shared) >= 2
            compared += 1
    assert compared


def test_every_kind_of_file_of_a_broker_is_dumped(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", str(directory), "--format", "jsonl", "--entries"]) == FINE
    out, err = capsys.readouterr()
    assert err == ""
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    kinds = {line.get("kind", "record") for line in lines}
    assert kinds >= {
        "record",
        "offset-index",
        "time-index",
        "transaction-index",
        "producer-snapshot",
        "leader-epoch-checkpoint",
        "offset-checkpoint",
        "partition-metadata",
        "meta-properties",
        "quorum-state",
    }
    for kind in filter(has_entries, Kind):
        assert all(tuple(line) == fields_of(kind) for line in lines if line.get("kind") == name_of(kind))


@pytest.mark.parametrize(
    ("content", "relative_offsets"),
    [
        (b"", []),
        (bytes(8), [0]),
        (bytes(800), []),
        (struct.pack(">4i", 1, 2, 3, 4), [1, 3]),
        (struct.pack(">2i", 1, 2) + bytes(1 << 20), [1]),
        (struct.pack(">2i", 1, 2) + bytes(16) + struct.pack(">2i", 5, 6) + bytes(80), [1, 0, 0, 5]),
    ],
)
def test_zeros_at_the_end_of_an_index_are_no_entries(
    content: bytes, relative_offsets: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "00000000000000000042.index"
    path.write_bytes(content)
    entries = list(read_entries(path))
    assert [entry["relativeOffset"] for entry in entries] == relative_offsets
    assert [entry["offset"] for entry in entries] == [42 + offset for offset in relative_offsets]
    other = path.rename(tmp_path / "copy.index")
    assert [entry["offset"] for entry in read_entries(other)] == [None] * len(relative_offsets)


def test_what_is_before_damage_is_read(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000042.timeindex"
    path.write_bytes(struct.pack(">qi", 5, 1) + b"cut")
    entries = read_entries(path)
    assert next(entries)["timestamp"] == 5
    with pytest.raises(CorruptFile, match="an entry takes 12 bytes, and the last one is cut"):
        next(entries)


def test_a_folder_is_listed_in_the_order_of_names(directory: Path, tmp_path: Path) -> None:
    found = files_below(directory)
    assert found == sorted(found, key=lambda path: path.relative_to(directory).parts)
    assert {path.parent for path in found} >= {directory, directory / "__cluster_metadata-0"}
    with pytest.raises(InvalidInput, match="there are no files of Kafka"):
        files_below(tmp_path)
    with pytest.raises(Unreadable):
        list(read_entries(tmp_path / "leader-epoch-checkpoint"))
