"""Lines that kernels print are those that are made of objects."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octavo.errors import FormatError
from octavo.inspect import Binary, Dump, record_lines
from octavo.inspect.json_lines import COLUMNS, LinePrinter
from octavo.inspect.wanted import KeyRange
from octavo.records import BatchBuilder, Codec, Header, to_arrow
from octavo.records.kernels import Kernels
from octavo.records.layout import MAX_INT64, MIN_INT64
from tests.golden import files

SPECIAL = [
    b"",
    b"plain",
    b"a long value without anything special in it, that is copied at once",
    bytes(range(128)),
    b'quoted "text" \\ with / and \b\f\n\r\t',
    "Käfig 🗝 \N{LINE SEPARATOR} \N{NO-BREAK SPACE} \U0010ffff \ud7ff \ue000".encode(),
    b"\xff\x00",
    b"\xed\xa0\x80",  # half of a surrogate pair
    b"\xc0\x80",  # too long for what it is
    b"\xe0\x9f\xbf",
    b"\xf0\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80",  # above the last character
    b"\xf5\x80\x80\x80",
    b"cut \xe2\x82",
    b"cut \xf0\x9f\x97",
    b"\x80",
]
EXTREMES = [0, 1, -1, 9, 10, -9, -10, 99, 100, 10**18, 10**18 - 1, MAX_INT64, MIN_INT64, -(10**18)]


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print every file by compiled kernels, however small it is."""
    monkeypatch.setattr(record_lines, "_WORTH_COLUMNS", 0)
    monkeypatch.setenv("OCTAVO_KERNELS", "compiled")


def collected(lines: Iterator[str] | Iterator[bytes | memoryview]) -> tuple[bytes, str | None]:
    """All that is printed, and the error after it."""
    parts: list[bytes] = []
    error = None
    try:
        parts.extend(line.encode() if isinstance(line, str) else bytes(line) for line in lines)
    except FormatError as found:
        error = f"{type(found).__name__} {found}"
    return b"".join(parts), error


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("binary", list(Binary))
@pytest.mark.parametrize("name", files.names())
def test_every_file_of_kafka_is_printed_the_same(name: str, binary: Binary) -> None:
    path = files.FOLDER / f"{name}.bin"
    assert collected(Dump(path, binary=binary).blocks()) == collected(iter(Dump(path, binary=binary)))


def batch_of_everything(codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(codec=codec)
    for number, value in enumerate(SPECIAL):
        headers = [Header(each.decode(errors="replace"), each) for each in SPECIAL[: number % 4]]
        builder.append(None if number % 3 else value, value, timestamp_ms=number, headers=[*headers, Header("", None)])
    builder.append(b"k", None, timestamp_ms=0)
    return builder.build()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("binary", list(Binary))
def test_any_bytes_are_printed_the_same_interpreted_and_compiled(
    tmp_path: Path, binary: Binary, compiled: bool
) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(batch_of_everything())
    printer = LinePrinter(None, None, str(path), list(Binary).index(binary))
    kernels = Kernels(compiled=compiled)
    chunks = to_arrow(path.read_bytes(), columns=COLUMNS)
    found = b"".join(bytes(piece) for chunk in chunks for piece in printer.print(kernels, chunk))
    assert found.decode() == "".join(Dump(path, binary=binary))


@pytest.mark.usefixtures("columns")
def test_numbers_of_any_size_are_printed(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    builder = BatchBuilder()
    builder.append(None, b"", timestamp_ms=0)
    batch = builder.build()
    path.write_bytes(b"".join(number.to_bytes(8, signed=True) + batch[8:] for number in EXTREMES))
    lines = b"".join(map(bytes, Dump(path).blocks())).splitlines()
    assert [json.loads(line)["offset"] for line in lines] == EXTREMES
    assert [line.decode() + "\n" for line in lines] == list(Dump(path))


@pytest.mark.usefixtures("columns")
def test_a_record_that_is_larger_than_a_block_is_printed_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    builder = BatchBuilder()
    for size in (1, 1 << 20, 1):
        builder.append(None, b"\x01" * size, timestamp_ms=0)
    path.write_bytes(builder.build())
    assert collected(Dump(path, binary=Binary.TEXT).blocks()) == collected(iter(Dump(path, binary=Binary.TEXT)))


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize(
    "ranges",
    [
        {"offsets": (1010, 1040)},
        {"timestamps": (1_600_000_000_005, 1_600_000_000_030)},
        {"keys": [KeyRange(b"k", b"l")]},
        {"keys": [KeyRange.exactly(b"key"), KeyRange.with_prefix(b"")], "offsets": (None, 1020)},
    ],
)
def test_ranges_choose_the_same(ranges: dict[str, Any]) -> None:
    path = files.FOLDER / "segment.bin"
    assert collected(Dump(path, **ranges).blocks()) == collected(iter(Dump(path, **ranges)))


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("resync", [False, True])
@pytest.mark.parametrize("named", ["00000000000000000000.log", "a.bin"])
def test_damage_is_met_at_the_same_place_and_passed_over_alike(tmp_path: Path, named: str, resync: bool) -> None:
    rng = random.Random(15)
    commit = (files.FOLDER / "commit.bin").read_bytes()
    batches = []
    for number in range(6):
        builder = BatchBuilder(base_offset=3 * number, codec=rng.choice(list(Codec)))
        for _ in range(3):
            builder.append(b"key", rng.randbytes(20), timestamp_ms=number)
        batches.append(builder.build())
    sound = b"".join(batches) + (18).to_bytes(8) + commit[8:]
    path = tmp_path / named
    for _ in range(60):
        data = bytearray(sound)
        match rng.randrange(4):
            case 0:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            case 1:
                start = rng.randrange(len(data))
                data[start : start + 40] = bytes(min(40, len(data) - start))
            case 2:
                del data[rng.randrange(len(data)) :]
            case 3:
                data = bytearray(sound + batches[rng.randrange(6)] + batches[0][:50])
        path.write_bytes(data)
        for verify in (True, False):
            fast, slow = (Dump(path, resync=resync, verify=verify) for _ in range(2))
            assert collected(fast.blocks()) == collected(iter(slow))
            assert [(at, size, str(error)) for at, size, error in fast.damage] == [
                (at, size, str(error)) for at, size, error in slow.damage
            ]
            assert fast.torn_tail == slow.torn_tail
