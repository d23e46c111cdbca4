"""Small logs for tests: batches that can be told apart, and what a log holds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from octavo.log import Log, LogConfig
from octavo.log.reading.readable_log import ReadableLog
from octavo.records import BatchBuilder, Codec

TIME_MS: Final = 1_700_000_000_000
SMALL: Final = {"internal.segment.bytes": "1000", "index.interval.bytes": "100"}


def make_batch(
    count: int = 1, *, first: int = 0, time_ms: int = TIME_MS, size: int = 60, codec: Codec = Codec.NONE
) -> bytes:
    """A batch of `count` records, with the numbers from `first` on for keys, a millisecond between them."""
    builder = BatchBuilder(codec=codec)
    for number in range(count):
        builder.append(b"%d" % (first + number), bytes(size), timestamp_ms=time_ms + number)
    return builder.build()


def open_log(folder: Path, **config: str) -> Log:
    """A log with small segments; names of settings with `_` for `.`."""
    settings = SMALL | {name.replace("_", "."): value for name, value in config.items()}
    return Log.open(folder / "topic-0", LogConfig.from_properties(settings), clock=lambda: TIME_MS)


def keys(log: ReadableLog, offset: int | None = None) -> list[int]:
    """The keys of all records from `offset` or the start on, as numbers."""
    return [int(record.key or b"-1") for record in log.reader(offset).records()]
