"""Small compacted logs, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from octavo.log import Log, LogConfig
from octavo.log.storage import DISK, Storage
from octavo.records import Batch, BatchBuilder, Codec, read_batches
from octavo.records.layout import BatchHeader
from tests.clock import Clock

TIME_MS: Final = 1_700_000_000_000
RETENTION_MS: Final = 1000  # of tombstones
CONFIG: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": str(RETENTION_MS),
    "index.interval.bytes": "100",
}

Pair = tuple[bytes | None, bytes | None]


def open_log(folder: Path, *, clock: Clock | None = None, storage: Storage = DISK, **config: str) -> Log:
    """A compacted log; names of settings with `_` for `.`."""
    settings = CONFIG | {name.replace("_", "."): value for name, value in config.items()}
    return Log.open(folder / "topic-0", LogConfig.from_properties(settings), clock=clock or Clock(), storage=storage)


def batch_of(
    pairs: Sequence[Pair],
    *,
    codec: Codec = Codec.NONE,
    time_ms: int = TIME_MS,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """Records of these keys and values, a millisecond between them."""
    builder = BatchBuilder(
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )
    for number, (key, value) in enumerate(pairs):
        builder.append(key, value, timestamp_ms=time_ms + number)
    return builder.build()


def append(log: Log, *keys: str, codec: Codec = Codec.NONE, time_ms: int = TIME_MS) -> int:
    """One batch: `a` gives the key a a new value, `-a` deletes it. Its base offset."""
    offset = log.end_offset
    pairs = [
        (key.removeprefix("-").encode(), None if key.startswith("-") else b"%d" % (offset + number))
        for number, key in enumerate(keys)
    ]
    return log.append(batch_of(pairs, codec=codec, time_ms=time_ms)).base_offset


class Held(NamedTuple):
    """A record of a log."""

    offset: int
    key: bytes | None
    value: bytes | None


def held(log: Log) -> list[Held]:
    """All that a log holds, control records too."""
    return [Held(record.offset, record.key, record.value) for batch in batches(log) for record in batch]


def told(log: Log) -> str:
    """The same in short: `0a 2-b`."""
    return " ".join(
        f"{offset}{'' if value is not None else '-'}{(key or b'?').decode()}" for offset, key, value in held(log)
    )


def batches(log: Log) -> list[Batch]:
    """All batches of a log, verified."""
    return [batch for segment in log.segments for batch in read_batches(segment.path.read_bytes())]


def headers(log: Log) -> list[BatchHeader]:
    """Of all batches."""
    found = [batch.header for batch in batches(log)]
    assert all(isinstance(header, BatchHeader) for header in found)
    return [header for header in found if isinstance(header, BatchHeader)]


def bases(log: Log) -> list[int]:
    """Where the segments begin."""
    return [segment.base_offset for segment in log.segments]
