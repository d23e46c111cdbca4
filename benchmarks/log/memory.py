"""Compare the memory of a process for a small and a large log, while it appends, recovers or reads."""

from __future__ import annotations

from typing import Final

from benchmarks.fresh import run_fresh
from benchmarks.log import sets
from benchmarks.measure import Result, tell, within

_MORE_MIB: Final = 16  # the most memory that a log of sixteen times the size may add


def resident(*, scale: int) -> list[Result]:
    """Measure how much more memory a large log takes than a small one."""
    tell("memory by the size of a log")
    small, large = (64 << 20) // scale, (1 << 30) // scale
    results = []
    for what in ("append", "recover", "read"):
        peaks = []
        for size in (small, large):
            with sets.scratch() as folder:
                batch = sets.small().path
                peaks.append(run_fresh("log", what, str(folder), str(batch), str(size), OCTAVO_KERNELS="compiled"))
        more = max(0.0, peaks[1]["peak_mib"] - peaks[0]["peak_mib"])
        name = f"memory to {what} {large >> 20:,} MiB, above that for {small >> 20:,}"
        results.append(within(name, more, _MORE_MIB, "MiB"))
    return results
