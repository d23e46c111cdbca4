"""What tasks are made of, as it travels to them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

from pyspark.sql.datasource import InputPartition

from octavo.log.names import TopicPartition
from octavo.records.layout import MIN_INT64
from octavo.spark.files import Root


class Slice(NamedTuple):
    """Bytes of a segment that begin and end where batches do, and the offsets wanted of them."""

    partition: TopicPartition
    root: Root
    folder: str
    base_offset: int  # of the segment
    identity: int  # of its file
    position: int
    end: int
    first_offset: int
    end_offset: int
    undecided_below: int | None = None  # of the partition, if how much of it is decided has to be found out
    last_offset: int = MIN_INT64  # of the batch before `position`, where that is known
    head: bytes = b""  # what the file has at `position`: the header of a batch, and so its checksum; if that is known

    def folder_path(self) -> Path:
        """The folder, as its file system names it."""
        return Path(self.folder) if self.root.is_local else cast(Path, PurePosixPath(self.folder))

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.position


class Task(InputPartition):
    """What one task reads."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)
