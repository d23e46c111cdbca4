"""A hundred megabytes of whatever makes the search behind damage work hardest."""

from __future__ import annotations

import time
from typing import Final

import pytest

from octavo.records import read_batches
from tests.corruption.resynced import ADVERSARIES, account

_SIZE: Final = 100 << 20
_SECONDS: Final = 400.0  # of one processor


@pytest.mark.soak(30)
@pytest.mark.parametrize("name", ADVERSARIES)
def test_a_hundred_megabytes_that_look_like_batches_are_searched_in_bounded_time(name: str) -> None:
    buffer = ADVERSARIES[name](_SIZE)
    begin = time.process_time()
    account(read_batches(buffer, resync=True), len(buffer))
    spent = time.process_time() - begin
    assert spent < _SECONDS, f"{spent:.0f} seconds"
