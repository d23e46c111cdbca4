"""The data sets that are decoded and encoded."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.data import CODECS, DataSet

# Beside the usual shape: few and many records in a batch, small and large values.
UNUSUAL: Final = (
    DataSet(count=100_000, batch_count=1),
    DataSet(count=300_000, batch_count=10_000),
    DataSet(count=500_000, value_size=10),
    DataSet(count=10_000, value_size=10_240),
)


def usual(scale: int) -> list[DataSet]:
    """A million records in batches of 200, with each codec."""
    return [DataSet(codec=codec, count=1_000_000 // scale) for codec in CODECS]


def to_encode(scale: int) -> list[DataSet]:
    """The same to be written; with a codec fewer, since compressing takes its time."""
    return [DataSet(codec=codec, count=(1_000_000 if codec == "none" else 200_000) // scale) for codec in CODECS]


def unusual(scale: int) -> list[DataSet]:
    """The other shapes, with each codec."""
    return [replace(shape, codec=codec, count=shape.count // scale) for shape in UNUSUAL for codec in CODECS]


def segments(scale: int) -> list[DataSet]:
    """Segments of a GiB."""
    return [DataSet(count=8_720_000 // scale), DataSet(codec="mixed", count=17_200_000 // scale)]
