"""How many processors there are for this process: `usable_processors`."""

from __future__ import annotations

import os


def usable_processors() -> int:
    """Return the number of processors that this process may use, where the system tells; else that of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
