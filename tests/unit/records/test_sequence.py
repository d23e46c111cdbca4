from __future__ import annotations

import pytest

from octavo.records.layout import MAX_SEQUENCE
from octavo.records.sequence import decrement_sequence, increment_sequence, record_sequence


@pytest.mark.parametrize(
    ("sequence", "increment", "expected"),
    [(0, 0, 0), (0, 1, 1), (MAX_SEQUENCE, 1, 0), (MAX_SEQUENCE - 1, 3, 1), (5, MAX_SEQUENCE, 4)],
)
def test_incrementing_wraps_to_zero(sequence: int, increment: int, expected: int) -> None:
    assert increment_sequence(sequence, increment) == expected


@pytest.mark.parametrize(
    ("sequence", "decrement", "expected"),
    [(1, 1, 0), (0, 1, MAX_SEQUENCE), (2, 5, MAX_SEQUENCE - 2)],
)
def test_decrementing_wraps_to_the_largest(sequence: int, decrement: int, expected: int) -> None:
    assert decrement_sequence(sequence, decrement) == expected


def test_a_record_has_a_sequence_only_where_its_batch_has_one() -> None:
    assert record_sequence(-1, 5) == -1
    assert record_sequence(MAX_SEQUENCE, 2) == 1
