"""Make a log whose values are JSON objects of several types, about a hundred bytes each."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data import FOLDER
from benchmarks.measure import tell
from octavo.log import DataDirectory
from octavo.records import from_arrow

TOPIC: Final = "events"
SCHEMA: Final = "user BIGINT, action STRING, amount DOUBLE, ok BOOLEAN, tags ARRAY<STRING>, at STRUCT<x INT, y INT>"
_BATCH: Final = 200  # records, as in the other logs
_TOGETHER: Final = 100_000
_ACTIONS: Final = ("view", "click", "buy", "return", "search")
_TIME_MS: Final = 1_700_000_000_000


def make(count: int) -> Path:
    """Make a data directory with one partition of so many records, unless it exists; return its path."""
    folder = FOLDER / "spark" / f"json-{count}-1"
    if folder.exists():
        return folder
    tell(f"a log of {count:,} records of JSON")
    unfinished = folder.with_suffix(".part")
    random = np.random.default_rng(1)
    with DataDirectory.open(unfinished) as data:
        data.create_topic(TOPIC, 1, {"retention.ms": "-1", "segment.bytes": str(2**31 - 1)})
        log = data.log(TOPIC, 0)
        for first in range(0, count, _TOGETHER):
            rows = _rows(random, first, min(_TOGETHER, count - first))
            log.append_as_follower(from_arrow(rows, max_count=_BATCH, leader_epoch=0))
    unfinished.rename(folder)
    return folder


def _rows(random: np.random.Generator, first: int, count: int) -> pa.RecordBatch:
    user = pa.array(random.integers(0, 1_000_000, count)).cast(pa.string())
    parts: list[pa.Array | str] = [
        '{"user":',
        user,
        ',"action":"',
        pa.array(_ACTIONS).take(pa.array(random.integers(0, len(_ACTIONS), count))),
        '","amount":',
        pa.array(random.integers(0, 100_000, count) / 100).cast(pa.string()),
        ',"ok":',
        pc.if_else(pa.array(random.random(count) < 0.9), "true", "false"),
        ',"tags":["a","b',
        pa.array(random.integers(0, 10, count)).cast(pa.string()),
        '"],"at":{"x":',
        pa.array(random.integers(0, 5000, count)).cast(pa.string()),
        ',"y":',
        pa.array(random.integers(0, 5000, count)).cast(pa.string()),
        "}}",
    ]
    columns = [pa.scalar(part) if isinstance(part, str) else part for part in parts]
    return pa.RecordBatch.from_pydict(
        {
            "offset": pa.array(np.arange(first, first + count)),
            "timestamp": pa.array((_TIME_MS + np.arange(first, first + count)) * 1000, pa.timestamp("us", "UTC")),
            "key": user,
            "value": pc.binary_join_element_wise(*columns, ""),
        }
    )
