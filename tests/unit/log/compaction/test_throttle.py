"""Not too many bytes a second."""

from __future__ import annotations

import pytest

from octavo.errors import CompactionAborted, InvalidInput
from octavo.log.compaction import Throttle


def test_who_is_too_fast_waits() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = Throttle(1000, clock=lambda: now[0], sleep=sleep)
    throttle.note(200)  # within what the first moments allow
    assert not slept
    throttle.note(800)
    assert sum(slept) == pytest.approx(1.0)
    now[0] += 10
    throttle.note(5000)  # slower than allowed
    assert throttle.waited_s == pytest.approx(sum(slept)) == pytest.approx(1.0)


def test_who_waits_notices_that_it_is_in_vain() -> None:
    slept: list[float] = []

    def check() -> None:
        if len(slept) == 3:
            raise CompactionAborted("it is over")

    throttle = Throttle(1, clock=lambda: 0.0, sleep=slept.append)
    with pytest.raises(CompactionAborted):
        throttle.note(1 << 20, check)  # or it would be twelve days
    assert sum(slept) < 1


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_rate_must_lead_somewhere(rate: float) -> None:
    with pytest.raises(InvalidInput):
        Throttle(rate)
