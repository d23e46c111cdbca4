"""The data sets for decoding and encoding: the usual sizes of batches and values, and unusual ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from benchmarks.data import CODECS, DataSet

# Unusual shapes: few and many records in a batch, small and large values.
UNUSUAL: Final = (
    DataSet(count=100_000, batch_count=1),
    DataSet(count=300_000, batch_count=10_000),
    DataSet(count=500_000, value_size=10),
    DataSet(count=10_000, value_size=10_240),
)


def usual(scale: int) -> list[DataSet]:
    """Return data sets of a million records in batches of 200, one for each codec."""
    return [DataSet(codec=codec, count=1_000_000 // scale) for codec in CODECS]


def to_encode(scale: int) -> list[DataSet]:
    """Return the usual data sets for encoding. With compression, which is slow, they have fewer records."""
    return [DataSet(codec=codec, count=(1_000_000 if codec == "none" else 200_000) // scale) for codec in CODECS]


def unusual(scale: int) -> list[DataSet]:
    """Return data sets of all unusual shapes, for each codec."""
    return [replace(shape, codec=codec, count=shape.count // scale) for shape in UNUSUAL for codec in CODECS]


def segments(scale: int) -> list[DataSet]:
    """Return data sets for segments of 1 GiB."""
    return [DataSet(count=8_720_000 // scale), DataSet(codec="mixed", count=17_200_000 // scale)]
