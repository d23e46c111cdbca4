"""Segments of old releases: messages of magic 0 and 1, plain and wrapped, planted as files where a log is to be.

end_offset = plant(folder, Random(seed), segments=3)
log = Log.open(folder, ...)          # finds segments that have no index yet, and goes on behind them
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Final

from tests.batches import TIME_MS, build
from tests.kafka.answers import BatchSpec, Codec, RecordSpec
from tests.workload.generator import Shape, draw_record

_CODECS: Final[tuple[Codec, ...]] = ("none", "none", "gzip", "snappy", "lz4")
DAY_MS: Final = 86_400_000


def plant(
    folder: Path,
    random: Random,
    *,
    segments: int = 3,
    batches: int = 12,
    shape: Shape | None = None,
    codecs: bool = True,
) -> int:
    """Write segments of both magics into a new folder; the offset behind them. Each is a day younger than the last."""
    folder.mkdir(parents=True)
    offset = 0
    for number in range(segments):
        path = folder / f"{offset:020d}.log"
        data = bytearray()
        for _ in range(batches):
            magic = random.choice((0, 1)) if number == 1 else number % 2
            batch, offset = _draw(random, shape or Shape(), magic, offset, codecs)
            data += batch
        path.write_bytes(data)
        time = (TIME_MS - (segments - number) * DAY_MS) // 1000
        os.utime(path, (time, time))
    return offset


def _draw(random: Random, shape: Shape, magic: int, offset: int, codecs: bool) -> tuple[bytes, int]:
    """Messages from an offset on, and the offset behind them; some offsets are left out, as by compaction."""
    codec = random.choice(_CODECS) if codecs else "none"
    offset += random.choice((0, 0, 0, 2))
    time_ms = TIME_MS - 10 * DAY_MS + offset
    records = []
    following = offset
    for _ in range(random.choice((1, 2, 5))):
        record = draw_record(random, shape, time_ms + random.randrange(50))
        records.append(
            RecordSpec(timestamp_ms=record.timestamp_ms, key=record.key, value=record.value, offset=following)
        )
        following += random.choice((1, 1, 1, 3))
    append_time = magic == 1 and random.random() < 0.3
    spec = BatchSpec(
        magic=magic,
        codec=codec,
        base_offset=offset,
        records=records,
        timestamp_type="LogAppendTime" if append_time else None,
        log_append_time_ms=time_ms if append_time else -1,
    )
    return build(spec), following
