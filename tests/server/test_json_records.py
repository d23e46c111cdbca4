"""A record has one form as JSON: what `octavo dump` and `octavo consume` print, `octavo produce` sends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from octavo.log import DataDirectory, Producer
from octavo.server.serving import serve
from tests.server.commands import Commands, Told

RECORDS: Final[list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]]] = [
    (b"key", b"value", []),
    (None, b"", [("name", b"content"), ("name", None), ("", b"\xff\x00")]),
    (b"", None, [("größe", b"")]),
    (b"\xff\xfe", "gr\xf6\xdfe \u20ac \U0001f600".encode(), []),
    (b'{"hex":"ff00"}', b'{"a": 1}', []),
    (b"6b6579", b"null", []),
    (b'\x00\n\t"', b"\x80 is no text", []),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A partition with a committed transaction."""
    with DataDirectory.open(tmp_path / "data") as data:
        for topic in ("orders", "copy"):
            data.create_topic(topic, 1, {"retention.ms": "-1"})
        with Producer(data, {"transactional.id": "clerk"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number, (key, value, headers) in enumerate(RECORDS):
                producer.send("orders", value, key, partition=0, headers=headers, timestamp_ms=1000 + number)
            producer.commit_transaction()
    return tmp_path / "data"


def stored(data: Path, topic: str) -> list[tuple[object, ...]]:
    with DataDirectory.open(data, read_only=True) as watched:
        return [
            (record.timestamp_ms, record.key, record.value, [tuple(each) for each in record.headers])
            for batch in watched.log(topic, 0).reader(0)
            if not batch.is_control
            for record in batch
        ]


def dump(path: Path, *words: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "octavo", "dump", str(path), "--format", "jsonl", *words],
        capture_output=True,
        check=True,
    )
    return done.stdout


def copy(data: Path, work: Path, lines: bytes, *words: str) -> Told:
    with serve(data) as server:
        return Commands(server.bootstrap_servers, work)("produce", "copy", "--json", *words, given=lines)


def expected() -> list[tuple[object, ...]]:
    return [(1000 + number, key, value, headers) for number, (key, value, headers) in enumerate(RECORDS)]


@pytest.mark.parametrize("words", [[], ["--binary", "text"], ["--binary", "hex"], ["--binary", "base64"]], ids=str)
def test_what_dump_prints_produce_sends(words: list[str], data: Path, tmp_path: Path) -> None:
    """Mend 1.11: keys arrived as hex, markers as records, and lines of other files as nulls."""
    lines = dump(data / "orders-0", *words)
    assert [json.loads(line).get("kind") for line in lines.splitlines()] == [None] * (len(RECORDS) + 1)
    told = copy(data, tmp_path, lines, *words)
    assert told.code == 0
    assert told.err.splitlines() == [
        "octavo: 1 line is left out, as no records: 1 of control records",
        f"octavo: {len(RECORDS)} records sent to copy",
    ]
    assert stored(data, "orders") == stored(data, "copy") == expected()


def test_what_consume_prints_produce_sends(data: Path, tmp_path: Path) -> None:
    with serve(data) as server:
        lines = Commands(server.bootstrap_servers, tmp_path)("consume", "orders", "--json", "-e", "-q").out
    assert copy(data, tmp_path, lines.encode()).code == 0
    assert stored(data, "copy") == expected()


def test_consume_and_dump_print_the_same(data: Path, tmp_path: Path) -> None:
    with serve(data) as server:
        consumed = Commands(server.bootstrap_servers, tmp_path)("consume", "orders", "--json", "-e", "-q").out
    dumped = [json.loads(line) for line in dump(data / "orders-0").splitlines()]
    for one, other in zip(map(json.loads, consumed.splitlines()), dumped, strict=False):
        assert one == {name: other[name] for name in one}


def test_entries_of_other_files_are_printed_if_they_are_asked_for_and_never_sent(data: Path, tmp_path: Path) -> None:
    """Mend 1.11: ten records came of two."""
    lines = dump(data / "orders-0", "--entries")
    kinds = [json.loads(line).get("kind") for line in lines.splitlines()]
    assert {"leader-epoch-checkpoint", "partition-metadata", "producer-snapshot"} <= set(kinds)
    told = copy(data, tmp_path, lines + b'{"topic": "orders"}\n')
    count = len(kinds) - kinds.count(None) + 2
    assert told.err.startswith(f"octavo: {count} lines are left out, as no records: 1 of control records, ")
    assert "2 of partition-metadata, " in told.err
    assert "1 without key and value\n" in told.err
    assert stored(data, "copy") == expected()
    named = dump(data / "orders-0" / "partition.metadata")
    assert [json.loads(line)["kind"] for line in named.splitlines()] == ["partition-metadata"] * 2
