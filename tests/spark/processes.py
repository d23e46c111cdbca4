"""The processes that a Spark has started, as the kernel lists them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def workers(root: int) -> Iterator[int]:
    """The Python workers below a process."""
    for process in _descendants(root):
        try:
            if b"pyspark.daemon" in Path(f"/proc/{process}/cmdline").read_bytes():
                yield process
        except OSError:
            continue  # it has ended meanwhile


def has_open(process: int, suffix: str) -> bool:
    """Whether a process has a file open whose name ends so."""
    try:
        return any(str(link.readlink()).endswith(suffix) for link in Path(f"/proc/{process}/fd").iterdir())
    except OSError:
        return False


def cpu_seconds(root: int) -> float:
    """What a process and all below it have used of the processors, with those of them that have ended."""
    ticks = 0
    for process in (root, *_descendants(root)):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        ticks += sum(map(int, fields[11:15]))  # its own in user and system mode, and those of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def _descendants(root: int) -> list[int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]
