"""Measure how much memory this process takes, now and at its peak."""

from __future__ import annotations

import threading
from pathlib import Path

INTERVAL_SECONDS = 0.002


def resident_kib(field: str) -> int:
    """Read one of the fields in /proc/self/status, in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"this system does not tell {field}")


class Watch(threading.Thread):
    """A thread that samples the memory of this process again and again, and keeps the peak."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.highest_kib = 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(INTERVAL_SECONDS):
            self.highest_kib = max(self.highest_kib, resident_kib("RssAnon"))
