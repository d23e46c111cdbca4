"""What is appended: batches that Apache Kafka wrote, as its producer would send them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.data import FOLDER, DataSet
from octavo.records import read_batches
from octavo.records.layout import BATCH_HEADER

_SMALL = 138  # records of 100 bytes for a batch of 16 KiB
_LARGE = 8_830  # and for one of 1 MiB


def small(codec: str = "none") -> DataSet:
    """Batches of about 16 KiB."""
    return DataSet(codec, count=_SMALL * 64, batch_count=_SMALL)


def large(codec: str = "none") -> DataSet:
    """Batches of about 1 MiB."""
    return DataSet(codec, count=_LARGE * 8, batch_count=_LARGE)


def segment(scale: int) -> DataSet:
    """A segment of 1 GiB."""
    return DataSet(count=9_000_000 // scale // _SMALL * _SMALL, batch_count=_SMALL)


def all_of_them(scale: int) -> list[DataSet]:
    """Every data set of this benchmark."""
    return [segment(scale), *(kind(codec) for kind in (small, large) for codec in ("none", "lz4", "zstd"))]


def as_sent(data_set: DataSet) -> list[bytes]:
    """The batches one by one, each with the base offset 0 that a producer gives it."""
    base_offset = BATCH_HEADER.at("length")
    return [bytes(base_offset) + bytes(batch.data[base_offset:]) for batch in read_batches(data_set.read())]


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder on the disk of the project, removed in the end."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=FOLDER, prefix="log-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
