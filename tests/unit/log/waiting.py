"""Wait for another thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_LONGEST_S: Final = 300


def until(condition: Callable[[], bool]) -> None:
    """Return as soon as the condition is true."""
    give_up = time.monotonic() + _LONGEST_S
    while not condition():
        assert time.monotonic() < give_up, "it never came"
        time.sleep(0.001)
