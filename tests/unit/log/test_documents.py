"""`docs/formats/log-directory.md` says what the code does: its tables, hex and small files are read and written."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Final

import pytest

from octavo.log import Log, LogConfig
from octavo.log.files.clean_shutdown import NO_BROKER_EPOCH, read_broker_epoch, was_clean, write_mark
from octavo.log.files.meta_properties import MetaProperties, read_meta_properties, read_uuid, write_meta_properties
from octavo.log.files.partition_metadata import read_topic_id, write_topic_id
from octavo.log.files.text_checkpoint import (
    RECOVERY_POINT,
    EpochEntry,
    read_epochs,
    read_offsets,
    write_epochs,
    write_offsets,
)
from octavo.log.names import CLEAN_SHUTDOWN, LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA, TopicPartition
from octavo.log.segment.index import Index, OffsetEntry, OffsetIndex, TimeEntry, TimeIndex
from octavo.log.storage import DISK
from octavo.records import BatchBuilder
from tests.batches import TIME_MS
from tests.unit.records.test_documents import DOCUMENTS, SIZES, worked

PAGE: Final = "log-directory"
BASE: Final = 42
SECONDS: Final = (0, 1, 5, 3, 4, 6, 7, 9)  # of the worked batches


def text() -> str:
    return (DOCUMENTS / f"{PAGE}.md").read_text("utf-8")


def example(name: str) -> bytes:
    """The text of a small file, as the page has it."""
    (found,) = re.findall(rf"```text {re.escape(name)}\n(.*?)```", text(), re.DOTALL)
    return str(found).encode()


def batch(count: int, value: bytes, time_ms: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(None, value, timestamp_ms=time_ms)
    return builder.build()


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """The worked segment's path without a suffix, written by a log."""
    config = LogConfig.from_properties({"index.interval.bytes": "300"})
    with Log.open(tmp_path / "events-0", config, clock=lambda: TIME_MS) as log:
        log.append(batch(BASE, b"", TIME_MS))
        log.roll()
        for second in SECONDS:
            log.append(batch(1, bytes(100), TIME_MS + 1000 * second))
    return tmp_path / "events-0" / f"{BASE:020d}"


@pytest.mark.parametrize(("suffix", "index"), [(".index", OffsetIndex), (".timeindex", TimeIndex)])
def test_the_tables_of_entries_are_their_layouts(suffix: str, index: type[Index]) -> None:
    (said, rows) = re.findall(rf"^## `\{suffix}`: (\d+) bytes an entry\n\n((?:\|.*\n)+)", text(), re.MULTILINE)[0]
    at = 0
    for position, size, type_ in re.findall(r"^\| (\d+) \| (\d+) \| `\w+` \| (\w+) \|", rows, re.MULTILINE):
        assert (int(position), int(size)) == (at, SIZES[type_])
        at += int(size)
    assert at == int(said) == index._entry.size


def test_the_worked_indexes_are_written(segment: Path) -> None:
    offsets, times = worked(PAGE)
    assert segment.with_suffix(".index").read_bytes() == offsets
    assert segment.with_suffix(".timeindex").read_bytes() == times
    assert segment.with_suffix(".log").stat().st_size == 170 * len(SECONDS)


def test_the_worked_indexes_are_read(tmp_path: Path) -> None:
    offsets, times = worked(PAGE)
    (tmp_path / "offsets").write_bytes(offsets)
    (tmp_path / "times").write_bytes(times)
    index = OffsetIndex(DISK, tmp_path / "offsets", BASE)
    assert (index.count, index.last) == (3, OffsetEntry(48, 1020))
    assert index.lookup(43) is None
    assert index.lookup(47) == OffsetEntry(46, 680)
    time_index = TimeIndex(DISK, tmp_path / "times", BASE)
    assert (time_index.count, time_index.last) == (3, TimeEntry(TIME_MS + 9000, 49))
    assert time_index.lookup(TIME_MS + 6999) == TimeEntry(TIME_MS + 5000, 44)


def test_zeros_behind_the_entries_are_no_entries(tmp_path: Path) -> None:
    offsets, _ = worked(PAGE)
    (tmp_path / "offsets").write_bytes(offsets + bytes(8 * 100))
    assert OffsetIndex(DISK, tmp_path / "offsets", BASE).last == OffsetEntry(48, 1020)


def test_the_checkpoint_of_offsets_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / RECOVERY_POINT
    offsets = {TopicPartition("events", 0): 50, TopicPartition("events", 1): 0}
    write_offsets(DISK, {path: offsets})
    assert path.read_bytes() == example(RECOVERY_POINT)
    assert read_offsets(DISK, path) == offsets


def test_the_checkpoint_of_epochs_is_read_and_written(tmp_path: Path) -> None:
    path = tmp_path / LEADER_EPOCHS
    epochs = [EpochEntry(0, 0), EpochEntry(3, 42)]
    write_epochs(DISK, path, epochs)
    assert path.read_bytes() == example(LEADER_EPOCHS)
    assert read_epochs(DISK, path) == epochs


def test_the_id_of_the_topic_is_read_and_written(tmp_path: Path) -> None:
    topic_id = uuid.UUID(bytes=read_uuid("4Qz2wmGmQ9y8lSzYwPG6Lw").bytes)
    write_topic_id(DISK, tmp_path, topic_id)
    assert (tmp_path / PARTITION_METADATA).read_bytes() == example(PARTITION_METADATA).removesuffix(b"\n")
    assert read_topic_id(DISK, tmp_path) == topic_id


def test_the_identity_is_read_and_written(tmp_path: Path) -> None:
    identity = MetaProperties(
        cluster_id="iYw0q6wPTaq5Ln-vc5qOHg", node_id=1, directory_id=read_uuid("j5ZXEwQ8TsqnWESWLj6W7Q")
    )
    path = tmp_path / META_PROPERTIES
    write_meta_properties(DISK, tmp_path, identity)
    expected = example(META_PROPERTIES)
    assert len(path.read_bytes()) == len(expected)
    assert re.sub(rb"#\w.*", b"", path.read_bytes()) == re.sub(rb"#\w.*", b"", expected)  # but for the date
    path.write_bytes(expected)
    assert read_meta_properties(DISK, tmp_path) == identity


def test_the_mark_of_a_clean_shutdown_is_read_and_written(tmp_path: Path) -> None:
    write_mark(DISK, tmp_path)
    assert (tmp_path / CLEAN_SHUTDOWN).read_bytes() == example(CLEAN_SHUTDOWN).removesuffix(b"\n")
    assert was_clean(tmp_path)
    assert read_broker_epoch(DISK, tmp_path) == NO_BROKER_EPOCH
