"""Directories to spoil, and whether they are still what they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from octavo.log import DataDirectory, Isolation, Log
from octavo.log.reading.readable_log import ReadableLog
from octavo.records import BatchBuilder, Record, read_batches

TIME_MS: Final = 1_700_000_000_000
CONFIG: Final = {"internal.segment.bytes": "1000", "index.interval.bytes": "100", "retention.ms": "-1"}
COUNT: Final = 40  # records of a partition


def write_directory(folder: Path, *, clean: bool = True) -> Path:
    """Two topics, of which "b" has two partitions; each log with several segments."""
    with DataDirectory.open(folder) as data:
        for topic, partitions in (("a", 1), ("b", 2)):
            data.create_topic(topic, partitions, CONFIG)
            for partition in range(partitions):
                for number in range(COUNT):
                    append(data.log(topic, partition), number)
                assert len(data.log(topic, partition).segments) > 3
    if not clean:
        (folder / ".kafka_cleanshutdown").unlink()
    return folder


def append(log: Log, number: int) -> int:
    """One batch of one record, of about 150 bytes, that can be told by its number."""
    builder = BatchBuilder()
    builder.append(b"%d" % number, bytes([number % 256]) * 80, timestamp_ms=TIME_MS + number)
    return log.append(builder.build(), now_ms=TIME_MS + number).base_offset


def records(log: ReadableLog) -> list[Record]:
    """All that the log holds."""
    found: list[Record] = []
    offset = log.start_offset
    while data := bytes(log.read(offset, 1 << 20, isolation=Isolation.LOG_END).records):
        found += (record for batch in read_batches(data) for record in batch)
        offset = found[-1].offset + 1
    return found


def keys(log: ReadableLog) -> list[int]:
    """The numbers of the records that the log holds, which are as they were written."""
    found = records(log)
    assert [record.offset for record in found] == list(range(log.start_offset, log.end_offset))
    numbers = [int(record.key or b"-1") for record in found]
    assert all(record.value == bytes([number % 256]) * 80 for record, number in zip(found, numbers, strict=True))
    return numbers


def segments(folder: Path, suffix: str = ".log") -> list[Path]:
    """The files of a partition, oldest first."""
    return sorted(folder.glob("*" + suffix))


class Seen(NamedTuple):
    """A file or folder as it was found."""

    mode: int
    mtime_ns: int
    content: bytes | None


def look(folder: Path) -> dict[str, Seen]:
    """Everything in and about a folder. The lock is not opened: that would give it away where this process has it."""
    seen = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        regular = stat.S_ISREG(status.st_mode) and path.name != ".lock"
        seen[str(path.relative_to(folder))] = Seen(
            status.st_mode, status.st_mtime_ns, path.read_bytes() if regular else None
        )
    return seen


@contextmanager
def left_as_it_was(folder: Path) -> Iterator[None]:
    """Whatever happens inside, the folder is the same afterwards, byte for byte and time for time."""
    old = 10**18  # long ago, so that the smallest change shows
    for path in (folder, *folder.rglob("*")):
        os.utime(path, ns=(old, old), follow_symlinks=False)
    before = look(folder)
    yield
    after = look(folder)
    changed = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    assert not changed
