"""Count what a call does, where a test must not measure time: `effort`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def effort(call: Callable[[], object]) -> int:
    """Return how many instructions of Python are executed by a call, in this thread."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
