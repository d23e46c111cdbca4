"""`octavo dump --format kafka` prints what Apache Kafka's own tool prints, byte for byte."""

from __future__ import annotations

import itertools
import random
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from octavo.records import BatchBuilder, Codec
from octavo.records.layout import BATCH_HEADER, Attributes
from tests.golden import files as golden
from tests.golden.directories import unpack
from tests.kafka.damaging import damaged
from tests.kafka.dump_tool import Run, ask_octavo, differences
from tests.kafka.judge import Judge

_CLASSES: Final = "org.apache.kafka.tools.api."
_DECODERS: Final = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
_LOG_OPTIONS: Final[tuple[tuple[str, ...], ...]] = (
    (),
    ("--deep-iteration",),
    ("--print-data-log",),
    ("--print-data-log", "--skip-record-metadata"),
    ("--deep-iteration", "--skip-record-metadata"),
    ("--deep-iteration", "--max-bytes", "300"),
    ("--key-decoder-class", _CLASSES + "IntegerDecoder"),
    ("--value-decoder-class", _CLASSES + "LongDecoder"),
    ("--key-decoder-class", _CLASSES + "StringDecoder", "--value-decoder-class", _CLASSES + "DefaultDecoder"),
    ("--remote-log-metadata-decoder",),
    *((decoder,) for decoder in _DECODERS.values()),
    (*_DECODERS.values(), "--skip-record-metadata"),
)
_INDEX_OPTIONS: Final[tuple[tuple[str, ...], ...]] = (
    (),
    ("--verify-index-only",),
    ("--index-sanity-check",),
    ("--max-message-size", "70"),
    ("--max-message-size", "0"),
)
_KINDS: Final = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What brokers wrote, and beside it golden files of every magic under names of segments."""
    folder = tmp_path_factory.mktemp("dumped")
    unpack("dumped", folder)
    unpack("crashed", folder)
    old = folder / "old-0"
    old.mkdir()
    for number, name in enumerate(golden.names()):
        (old / f"{number}.log").write_bytes(golden.load(name).data)
    return folder


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _options(path: Path) -> tuple[tuple[str, ...], ...]:
    if path.suffix in (".log", ".checkpoint"):
        return _LOG_OPTIONS
    return _INDEX_OPTIONS if path.suffix in (".index", ".timeindex") else ((),)


def test_every_file_with_every_option_is_printed_as_by_kafka(kafka_broker: Judge, directory: Path) -> None:
    runs = [Run([str(path)], options) for path in _files(directory) for options in _options(path)]
    assert {Path(run.files[0]).suffix for run in runs} >= set(_KINDS)
    assert differences(kafka_broker, runs) == []


def test_kernels_print_what_objects_print(directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [
        Run([str(path)], options)
        for path in _files(directory)
        if path.suffix in (".log", ".checkpoint")
        for options in _LOG_OPTIONS[:5]
    ]
    runs += damaged_runs(directory, tmp_path, 16, 300)
    printed = []
    for mode in ("interpreted", "compiled"):
        monkeypatch.setenv("OCTAVO_KERNELS", mode)
        printed.append([ask_octavo(run) for run in runs])
    from_objects, by_kernels = printed
    assert by_kernels == from_objects


def test_several_files_are_printed_as_by_kafka_with_its_reports_in_its_order(
    kafka_broker: Judge, directory: Path
) -> None:
    files = [str(path) for path in _files(directory)]
    runs = [
        Run(files[:40], ["--deep-iteration"]),
        Run(files, ["--print-data-log"]),
        Run(files[::-1], ["--deep-iteration"]),
    ]
    assert differences(kafka_broker, runs) == []
    assert b"Non-consecutive offsets in " in ask_octavo(runs[0])[0].err


@pytest.mark.parametrize(
    ("ending", "from_end", "value", "report"),
    [
        (".index", 5, 0x7F, b"Mismatches in :"),
        (".timeindex", 1, 0x7F, b"The following indexed offsets are not found in :"),
        (".timeindex", 5, 0, b"Found timestamp mismatch in :"),
        (".timeindex", 8, 0, b"Found out of order timestamp in :"),
    ],
)
def test_indexes_that_do_not_fit_are_reported_as_by_kafka(
    kafka_broker: Judge, directory: Path, tmp_path: Path, ending: str, from_end: int, value: int, report: bytes
) -> None:
    copy = shutil.copytree(directory / "dumped", tmp_path / "copy")
    files = [path for path in _files(copy) if path.suffix == ending and path.stat().st_size]
    for path in files:
        data = bytearray(path.read_bytes())
        data[-from_end] = value
        path.write_bytes(data)
    run = Run([str(path) for path in files], ["--verify-index-only"])
    assert differences(kafka_broker, [run]) == []
    printed, is_damaged = ask_octavo(run)
    assert is_damaged
    assert printed.err.count(report) > 1


def damaged_runs(directory: Path, work: Path, seed: int, count: int) -> Iterator[Run]:
    """Copies of files with random damage, each beside the other files of its segment, and options to print it with."""
    chance = random.Random(seed)
    originals = [path for path in _files(directory) if path.suffix in _KINDS and path.stat().st_size]
    for number in range(count):
        original = chance.choice(originals)
        folder = work / str(number)
        folder.mkdir()
        beside = [path for path in original.parent.glob(f"{original.name.split('.')[0]}.*") if path.suffix in _KINDS]
        for path in beside:
            shutil.copy(path, folder)
        victim = chance.choice([original, *beside]) if original.suffix.endswith("index") else original
        (folder / victim.name).write_bytes(damaged(chance, victim.read_bytes()))
        topic = original.parent.name.rpartition("-")[0]
        options = chance.choice(_options(original))
        if topic in _DECODERS and original.suffix in (".log", ".checkpoint") and chance.random() < 0.5:
            options = (_DECODERS[topic],)
        yield Run([str(folder / original.name)], options)


def test_damaged_files_are_printed_as_by_kafka(kafka_broker: Judge, directory: Path, tmp_path: Path) -> None:
    runs = list(damaged_runs(directory, tmp_path, 15, 600))
    assert differences(kafka_broker, runs) == []
    assert sum(ask_octavo(run)[1] for run in runs) > len(runs) // 4


_LOG: Final = "dumped/plain-none-0/00000000000000000000.log"


@pytest.mark.parametrize(
    "name",
    [
        "no-dot",
        "x.log",
        ".log",
        "9223372036854775808.log",
        "-5.log",
        "+5.7.log",
        "٣.log",
        "5.log.deleted",
        "bootstrap.checkpoint",
        "00000000000000000007-0000000003.checkpoint",
        "00000000000000000007-0000000003-x.checkpoint",
        "short.checkpoint",
        "0000000000000000000x-0000000003.checkpoint",
        "0.index",
        "0.timeindex",
        "x.index",
        "x.txnindex",
        "0.txnindex",
        "0.snapshot",
    ],
)
def test_names_are_understood_as_by_kafka(kafka_broker: Judge, directory: Path, tmp_path: Path, name: str) -> None:
    for each in {name, "0.log", "0.index"}:
        shutil.copy(directory / _LOG, tmp_path / each)
    assert differences(kafka_broker, [Run([f"{tmp_path}//{name}"], ["--deep-iteration"])]) == []


def test_an_index_that_is_missing_beside_a_time_index_ends_the_run(
    kafka_broker: Judge, directory: Path, tmp_path: Path
) -> None:
    shutil.copy(directory / _LOG, tmp_path / "0.log")
    (tmp_path / "0.timeindex").write_bytes(bytes(24))
    assert differences(kafka_broker, [Run([str(tmp_path / "0.timeindex")])]) == []
    (tmp_path / "0.index").unlink()  # which Kafka's tool has created
    assert ask_octavo(Run([str(tmp_path / "0.timeindex")]))[1]
    assert not (tmp_path / "0.index").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--value-decoder-class", "nobody.has.This"),
        ("--max-bytes", "-1"),
        ("--max-bytes", "0"),
        ("--max-bytes", "17"),
        ("--max-bytes", "18"),
    ],
)
def test_options_that_lead_nowhere_end_the_run_as_with_kafka(
    kafka_broker: Judge, directory: Path, options: tuple[str, ...]
) -> None:
    assert differences(kafka_broker, [Run([str(directory / _LOG)], options)]) == []


def test_a_negative_size_of_messages_ends_the_run_as_with_kafka(kafka_broker: Judge, directory: Path) -> None:
    index = next(path for path in _files(directory) if path.suffix == ".index" and path.stat().st_size)
    assert differences(kafka_broker, [Run([str(index)], ["--max-message-size", "-1"])]) == []


def test_a_batch_that_java_has_no_memory_for_ends_the_run(tmp_path: Path) -> None:
    builder = BatchBuilder(codec=Codec.GZIP)
    builder.append(None, b"", timestamp_ms=0)
    data = bytearray(builder.build())
    data[BATCH_HEADER.at("record_count")] = 0x7F
    (tmp_path / "0.log").write_bytes(data)
    printed, is_damaged = ask_octavo(Run([str(tmp_path / "0.log")], ["--deep-iteration"]))
    assert printed.err == b'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n'
    assert is_damaged


def test_control_records_are_printed_as_by_kafka_whatever_is_in_them(kafka_broker: Judge, tmp_path: Path) -> None:
    keys = [None, b"", b"\0\0\0", b"\xff\xff\0\1", *(b"\0\1" + struct.pack(">h", number) for number in range(-1, 9))]
    values = [
        None,
        b"",
        b"\0",
        b"\0\0",
        b"\xff\xff\0\0\0\1",
        b"\0\5\0\0\0\1more",
        bytes(40),
        b"\0\1" + bytes(5) + b"\2" * 9,
    ]
    runs = []
    for number, (key, value) in enumerate(itertools.product(keys, values)):
        builder = BatchBuilder()
        builder.append(key, value, timestamp_ms=number)
        data = bytearray(builder.build())
        data[BATCH_HEADER.at("attributes") + 1] |= Attributes.CONTROL
        file = tmp_path / f"{number}.log"
        file.write_bytes(data)
        runs.append(Run([str(file)], ["--deep-iteration"]))
    assert differences(kafka_broker, runs) == []
