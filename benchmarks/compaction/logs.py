"""Logs to compact: records of about 100 bytes, each with a random key out of many.

They are in build/bench, each in a folder named after its parameters, and are written once. A pass works on a copy that
shares the segment files by hard links: compaction writes new files and does not change the old ones.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.data import FOLDER
from benchmarks.measure import tell
from octavo.log import Log, LogConfig
from octavo.records import Codec
from octavo.records.arrow.writer import from_arrow

CONFIG: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0",
    "segment.bytes": str(128 << 20),
}
_VERSION: Final = 1  # version of the data; part of the folder's name
_CHUNK: Final = 100_000
_BATCH: Final = 16 << 10
_TIME_MS: Final = 1_700_000_000_000
_VALUE: Final = b'{"id":"00000000","version":00000000,"name":"somebody","tags":["alpha","beta"],"score":00000000}'

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class DirtyLog:
    """A log of which no part has been compacted yet."""

    codec: Codec
    count: int
    keys: int

    @property
    def folder(self) -> Path:
        """The data directory. `prepare` writes it."""
        return FOLDER / f"compaction-{_VERSION}-{self.codec.name.lower()}-{self.count}-{self.keys}"

    def prepare(self) -> None:
        """Write the log, unless it exists."""
        if self.folder.exists():
            return
        tell(f"{self.count:,} records are written: {self.codec.name.lower()}")
        unfinished = self.folder.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        random = np.random.default_rng(7)
        with Log.open(unfinished / "topic-0", LogConfig.from_properties(CONFIG)) as log:
            for start in range(0, self.count, _CHUNK):
                count = min(_CHUNK, self.count - start)
                rows = _rows(random.integers(0, self.keys, count), start)
                log.append_as_follower(
                    from_arrow(rows, codec=self.codec, base_offset=start, leader_epoch=0, max_size=_BATCH)
                )
            log.roll()
        unfinished.rename(self.folder)

    def copy(self, target: Path) -> Path:
        """Copy the log for a compaction; return the partition's folder in the copy."""
        last = max(self.folder.rglob("*.log"))
        for path in self.folder.rglob("*"):
            place = target / path.relative_to(self.folder)
            if path.is_dir():
                place.mkdir(parents=True)
            elif path.suffix == ".log" and path != last:
                os.link(path, place)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)
        return target / "topic-0"


def _rows(keys: npt.NDArray[np.int64], start: int) -> pa.RecordBatch:
    count = len(keys)
    values = np.tile(np.frombuffer(_VALUE, np.uint8), (count, 1))
    numbers = np.arange(start, start + count)
    for place, column in zip(_places(), (keys, numbers, keys * 7 % 10**8), strict=True):
        values[:, place : place + 8] = _digits(column)
    names = np.hstack([np.tile(np.frombuffer(b"key-", np.uint8), (count, 1)), _digits(keys)])
    times = pa.array(_TIME_MS + numbers, pa.timestamp("ms", tz="UTC"))
    return pa.record_batch({"key": _binary(names), "value": _binary(values), "timestamp": times})


def _places() -> list[int]:
    """Return the positions in `_VALUE` that are replaced by numbers."""
    return [place for place in range(len(_VALUE)) if _VALUE[place : place + 8] == b"0" * 8]


def _digits(numbers: npt.NDArray[np.int64]) -> Bytes:
    return (numbers[:, None] // 10 ** np.arange(7, -1, -1) % 10 + ord("0")).astype(np.uint8)


def _binary(rows: Bytes) -> pa.BinaryArray:
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    data = np.ascontiguousarray(rows)
    return pa.BinaryArray.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(data)])
