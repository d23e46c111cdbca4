"""Tables of records that tell their offsets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from octavo.spark.files import Root
from octavo.spark.tables.restore.runs import DataFile, Run, survey

TIME_US = 1_700_000_000_000_000


def table(offsets: Sequence[int], partition: int = 0, topic: str | None = "orders", **more: Any) -> pa.Table:
    """Rows with these offsets."""
    columns: dict[str, Any] = {
        "key": pa.array([b"key %d" % offset if offset % 3 else None for offset in offsets], pa.binary()),
        "value": pa.array([b"value %d" % offset if offset % 5 else None for offset in offsets], pa.binary()),
        "partition": pa.array([partition] * len(offsets), pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "timestamp": pa.array([TIME_US + offset * 1000 for offset in offsets], pa.timestamp("us", "UTC")),
    }
    if topic is not None:
        columns["topic"] = [topic] * len(offsets)
    return pa.table({**columns, **more})


def file_of(folder: Path, name: str, rows: pa.Table, rows_of_group: int = 100) -> DataFile:
    """A file with these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name, row_group_size=rows_of_group)
    return DataFile(Root(str(folder / name)))


def runs_of(*files: DataFile) -> list[Run]:
    """What is in these files."""
    return [run for file in files for run in survey(file)]
