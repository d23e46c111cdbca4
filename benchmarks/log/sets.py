"""The batches to append. Apache Kafka wrote them, as its producer would send them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.data import FOLDER, DataSet
from octavo.records import read_batches
from octavo.records.layout import BATCH_HEADER

SMALL: Final = {100: 138, 1000: 16}  # number of records in a batch of 16 KiB, by the size of their values
LARGE: Final = {100: 8_830, 1000: 1_025}  # number of records in a batch of 1 MiB, by the size of their values


def small(codec: str = "none", value_size: int = 100) -> DataSet:
    """Return a data set of batches of about 16 KiB."""
    count = SMALL[value_size]
    return DataSet(codec, count=count * 64, batch_count=count, value_size=value_size)


def large(codec: str = "none", value_size: int = 100) -> DataSet:
    """Return a data set of batches of about 1 MiB."""
    count = LARGE[value_size]
    return DataSet(codec, count=count * 8, batch_count=count, value_size=value_size)


def segment(scale: int) -> DataSet:
    """Return a data set for a segment of 1 GiB."""
    batch_count = SMALL[100]
    return DataSet(count=9_000_000 // scale // batch_count * batch_count, batch_count=batch_count)


def all_of_them(scale: int) -> list[DataSet]:
    """Return every data set of this benchmark."""
    shapes = (("none", 100), ("none", 1000), ("lz4", 100), ("zstd", 100))
    return [segment(scale), *(kind(*shape) for kind in (small, large) for shape in shapes)]


def as_sent(data_set: DataSet) -> list[bytes]:
    """Return the batches of a data set as a producer sends them, each with base offset 0."""
    base_offset = BATCH_HEADER.at("length")
    return [bytes(base_offset) + bytes(batch.data[base_offset:]) for batch in read_batches(data_set.read())]


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a temporary folder on the same disk as the project; it is removed at the end."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=FOLDER, prefix="log-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
