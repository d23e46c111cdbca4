"""Tasks and the slices that they read, as they are sent to the workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

from pyspark.sql.datasource import InputPartition

from octavo.log.names import TopicPartition
from octavo.records.layout import MIN_INT64
from octavo.spark.files import Root


class Slice(NamedTuple):
    """Bytes of a segment, from where a batch begins to where one ends, and the offsets to read from them."""

    partition: TopicPartition
    root: Root
    folder: str
    base_offset: int  # of the segment
    identity: int  # of its file
    position: int
    end: int
    first_offset: int
    end_offset: int
    undecided_below: int | None = None  # where the task must find the last stable offset: its upper bound
    last_offset: int = MIN_INT64  # last offset of the batch before `position`, where known
    head: bytes = b""  # the bytes at `position`: a batch header, and so the checksum; empty where not known

    def folder_path(self) -> Path:
        """Return the folder as a path of its file system."""
        return Path(self.folder) if self.root.is_local else cast(Path, PurePosixPath(self.folder))

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.end - self.position


class Task(InputPartition):
    """The slices that one task reads."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)
