"""Times and durations, as people write them."""

from __future__ import annotations

import argparse

import pytest

from octavo.cli.times import duration_ms


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("P7D", 604_800_000),
        ("PT36H", 129_600_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt15m", 900_000),
        ("PT0,25S", 250),
        ("-PT1M", -60_000),
        ("PT-1H+30M", -1_800_000),
    ],
)
def test_durations_are_read_as_java_reads_them(text: str, expected_ms: int) -> None:
    assert duration_ms(text) == expected_ms


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "P1Y", "P1W", "1D", "PT1.5H", "P1H", "soon", "P1D "])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no duration"):
        duration_ms(text)
