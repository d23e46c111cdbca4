"""Tasks and the slices that they read. Spark sends them to the workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, cast

from pyspark.sql.datasource import InputPartition

from octavo.log.names import TopicPartition
from octavo.records.layout import MIN_INT64
from octavo.spark.files import Root


class Slice(NamedTuple):
    """A part of a segment file that begins and ends at batch boundaries, and the offsets to read from it."""

    partition: TopicPartition
    root: Root
    folder: str
    base_offset: int  # base offset of the segment
    identity: int  # identity of the segment's file
    position: int
    end: int
    first_offset: int
    end_offset: int
    undecided_below: int | None = None  # set if the task must find the last stable offset: its upper bound
    last_offset: int = MIN_INT64  # last offset of the batch before `position`, if known
    head: bytes = b""  # the batch header at `position`, which contains a checksum; empty if not known

    def folder_path(self) -> Path:
        """Return the folder of the partition as a path of its file system."""
        return Path(self.folder) if self.root.is_local else cast(Path, PurePosixPath(self.folder))

    @property
    def size(self) -> int:
        """Size of the slice in bytes."""
        return self.end - self.position


class Task(InputPartition):
    """One Spark task: the slices that it reads."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        super().__init__(None)
        self.slices = tuple(slices)

    @property
    def size(self) -> int:
        """Size of all slices in bytes."""
        return sum(piece.size for piece in self.slices)
