"""The processes that a Spark has started, as the kernel lists them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path


def workers(root: int) -> Iterator[int]:
    """The Python workers below a process."""
    for process in descendants(root):
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


class CpuMeter:
    """What a process and all below it have used of the processors, those that have ended included.

    Spark's daemon of Python workers does not wait for them, so the kernel forgets what they used. What was seen counts.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._ticks: dict[tuple[int, str], int] = {}  # by process id and start, because ids are used again

    def seconds(self) -> float:
        """Look, and return the sum of all that was ever seen."""
        for process in (self._root, *descendants(self._root)):
            try:
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            self._ticks[process, fields[19]] = sum(map(int, fields[11:13]))  # in user and in system mode
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")


def ancestors(process: int) -> Iterator[int]:
    """The parent of a process, its parent, and so on."""
    parents = _parents()
    while process := parents.get(process, 0):
        yield process


def descendants(root: int) -> list[int]:
    """The children of a process, their children, and so on."""
    parents = _parents()
    found = [root]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return found[1:]


def kill(processes: Iterable[int]) -> None:
    """Kill processes as the kernel does where memory is short; those that have ended already are left out."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _parents() -> dict[int, int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(fields[1])
    return parents
