"""Show what is in a data directory, file by file, and how a log is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.markup import escape

from octavo.cli.demo.samples import TIME_MS, build, orders
from octavo.cli.demo.stage import Stage, table
from octavo.errors import OffsetOutOfRange
from octavo.inspect.descriptions import time_of
from octavo.log import DataDirectory, Log
from octavo.records import Codec, read_batches

TOPICS: Final = {"orders": 2, "returns": 2}
BATCH_COUNT: Final = 10  # number of records in a batch
BATCHES: Final = 24
# One segment per minute of orders, so that there are several. No retention, since all records are from 2023.
CONFIG: Final = {"segment.ms": "60000", "retention.ms": "-1", "index.interval.bytes": "2000"}

_FILES: Final = {  # descriptions of files, short enough for 80 columns
    "meta.properties": "whose it is: cluster, node, id",
    ".lock": "held by whoever writes",
    ".kafka_cleanshutdown": "closed in good order",
    "recovery-point-offset-checkpoint": "all before is on the disk",
    "replication-offset-checkpoint": "all before is visible",
    "log-start-offset-checkpoint": "starts inside a segment: none",
    "leader-epoch-checkpoint": "leaders, and where each began",
    "partition.metadata": "the topic's id",
}


def order_batch(number: int) -> bytes:
    """Build a batch of orders; `number` counts the batches from 0."""
    return build(2, Codec.NONE, orders(BATCH_COUNT, BATCH_COUNT * number))


def show(stage: Stage, folder: Path) -> None:
    """Write a data directory, list its files, and read from a log."""
    stage.chapter("Keep: a data directory, as Apache Kafka has it")
    stage.code(
        "with DataDirectory.open(folder) as data:\n"
        '    data.create_topic("orders", 2, {"segment.ms": "60000", ...})\n'
        '    data.log("orders", 0).append(batch)'
    )
    write(folder)
    drawn = table("file", "bytes", "what it is", right=("bytes",))
    for name, size, what in listing(folder):
        drawn.add_row(escape(name), size, what)
    stage.show(drawn)
    stage.say("The very files that Apache Kafka keeps: it could go on with them. Reading, by offset and by time:")
    drawn = table("asked", "answered")
    with DataDirectory.open(folder) as data:
        for asked, answered in _answers(data.log("orders", 0)):
            drawn.add_row(asked, answered)
    stage.show(drawn)


def write(folder: Path) -> None:
    """Write a data directory with all topics and batches, and close it cleanly."""
    with DataDirectory.open(folder) as data:
        for topic, partitions in TOPICS.items():
            data.create_topic(topic, partitions, CONFIG)
            for partition in range(partitions):
                log = data.log(topic, partition)
                for number in range(BATCHES):
                    log.append(order_batch(number))


def listing(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, size and meaning of each entry of a data directory.

    The first partition is listed file by file, each of the others in one line.
    """
    is_first = True
    paths = sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name.startswith("__"), path.name))
    for path in paths:
        if path.is_file():
            yield path.name, f"{path.stat().st_size:,}", _FILES.get(path.name, "")
        elif path.name.startswith("__"):
            yield f"{path.name}/", _size(path), "topics, ids, configurations"
        elif is_first:
            is_first = False
            yield f"{path.name}/", _size(path), "a partition, file by file:"
            yield from _partition(path)
        else:
            count = len(list(path.glob("*.log")))
            yield f"{path.name}/", _size(path), f"one more, {count} segments"


def _partition(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, size and meaning of a partition's files. Only the first segment's indexes are listed."""
    first = min(folder.glob("*.log"))
    last_snapshot = max(folder.glob("*.snapshot"), default=None)
    for path in sorted(folder.iterdir()):
        size = path.stat().st_size
        if path.suffix == ".log":
            batches = list(read_batches(path.read_bytes()))
            what = f"segment: offsets {batches[0].base_offset} to {batches[-1].last_offset}"
        elif path.stem != first.stem and path.suffix in {".index", ".timeindex"}:
            continue
        elif path.suffix == ".snapshot":
            if path != last_snapshot:
                continue
            what = "producers, as known at the end"
        elif path.suffix == ".index":
            what = f"{size // 8} entries: offset, position"
        elif path.suffix == ".timeindex":
            what = f"{size // 12} entries: timestamp, offset"
        else:
            what = _FILES.get(path.name, "")
        yield f"  {path.name}", f"{size:,}", what


def _size(folder: Path) -> str:
    return f"{sum(path.stat().st_size for path in folder.iterdir()):,}"


def _answers(log: Log) -> Iterator[tuple[str, str]]:
    """Yield calls of the log's methods as text, each with its result."""
    found = log.read(85, 2000)
    assert found.file_slice is not None
    batches = list(read_batches(found.records))
    rest = found.size - sum(batch.size for batch in batches)
    yield (
        "log.read(85, 2000)",
        f"{found.size:,} bytes at {found.file_slice.position:,} of {found.file_slice.file.path.name}: "
        f"offsets {batches[0].base_offset} to {batches[-1].last_offset}, and {rest} bytes of the next batch",
    )
    wanted_ms = TIME_MS + 100_500
    at = log.offset_for_timestamp(wanted_ms)
    assert at is not None
    yield f"log.offset_for_timestamp(\n    {wanted_ms})", f"offset {at.offset}, of {time_of(at.timestamp_ms)}"
    newest = log.max_timestamp_offset()
    assert newest is not None
    yield "log.max_timestamp_offset()", f"offset {newest.offset}, of {time_of(newest.timestamp_ms)}"
    count = sum(1 for _ in log.reader(230).records())
    yield "list(log.reader(230).records())", f"the last {count} records"
    try:
        log.read(1_000_000, 1)
    except OffsetOutOfRange as error:
        yield "log.read(1_000_000, 1)", f"[bold red]{type(error).__name__}[/] {error}"
