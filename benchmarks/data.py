"""The data sets of the benchmarks: files of batches that Apache Kafka wrote, built as its producer builds them.

Keys have 12 bytes, values are pieces of JSON, timestamps advance (see java/Peer.java). The files are in build/bench, in
a folder whose name depends on Peer.java and Kafka's version, and are written once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from benchmarks import jvm
from benchmarks.measure import tell

FOLDER: Final = Path(__file__).resolve().parents[1] / "build" / "bench"

CODECS: Final = ("none", "lz4", "snappy", "zstd", "gzip")


@dataclass(frozen=True)
class DataSet:
    """A data set: one file of batches."""

    codec: str = "none"  # name of the codec, or "mixed": each batch has another codec than the one before
    count: int = 1_000_000
    batch_count: int = 200
    value_size: int = 100

    @property
    def shape(self) -> str:
        """The properties that distinguish this data set from others, for the name of a result."""
        words = [] if self.codec == "none" else [self.codec]
        if self.batch_count != 200:
            words.append(f"batches of {self.batch_count:,}")
        if self.value_size != 100:
            words.append(f"values of {self.value_size:,}")
        return ", ".join(words) or "uncompressed"

    @property
    def path(self) -> Path:
        """The path of the file. `prepare` writes it."""
        return _folder() / f"{self.codec}-{self.count}-{self.batch_count}-{self.value_size}.bin"

    def read(self) -> bytes:
        """Read the whole file."""
        return self.path.read_bytes()


def prepare(data_sets: Iterable[DataSet]) -> None:
    """Write the files of the data sets that do not exist yet."""
    missing = [data_set for data_set in data_sets if not data_set.path.exists()]
    if not missing:
        return
    with jvm.Peer() as kafka:
        for data_set in missing:
            tell(f"Apache Kafka writes {data_set.count:,} records: {data_set.shape}")
            path = data_set.path
            unfinished = path.with_suffix(".part")
            kafka.ask("write", unfinished, data_set.codec, data_set.count, data_set.batch_count, data_set.value_size)
            unfinished.rename(path)


@cache
def _folder() -> Path:
    digest = hashlib.sha256(jvm.SOURCE.read_bytes() + jvm.version().encode()).hexdigest()[:12]
    folder = FOLDER / digest
    folder.mkdir(parents=True, exist_ok=True)
    return folder
