"""Compile kernels in other processes, which leave them in the cache.

A thread would hold the locks of the import system and of Numba, and a process that forks meanwhile, as Spark's daemon
does, would inherit them held. Another process holds nothing that anybody waits for, and uses another core. It may end
later than the process that started it, by some seconds: the next one needs the kernels too.

That process forks once it has imported Numba, if there are several cores. One of the two begins with the first kernel
and the other with the last, until they meet: neighbours call the same functions, which each of the two has to compile
for itself. If several processes want the same kernel, one compiles it and the others wait for that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from octavo.records.kernels.compilation.cache import folder_to_write_to
from octavo.records.kernels.compilation.loading import Kernel, kernel_named
from octavo.records.processors import usable_processors

_MOST_S: Final = 300  # seconds after which a process ends in any case
_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    "from octavo.records.kernels.compilation.elsewhere import main; main(sys.argv[2:])"
)


class Compilation(subprocess.Popen[bytes]):
    """A process that compiles kernels."""

    def is_over(self) -> bool:
        """Return whether it has ended, and so whether the cache has all kernels that it can compile."""
        return self.poll() is not None

    def __del__(self) -> None:
        """Say nothing: that it may still run when this process ends is intended."""


def start(names: Sequence[str]) -> Compilation | None:
    """Start compiling these kernels, in this order; None if no process can do it.

    There is none if nobody could find what it compiles, or if this program may not be a plain Python.
    """
    name = Path(sys.executable or "").name.lower()
    if getattr(sys, "frozen", False) or not name.startswith("python") or folder_to_write_to() is None:
        return None
    nothing = subprocess.DEVNULL  # whoever reads what this program prints must not wait for the other
    environment = {**os.environ, "OCTAVO_KERNELS": "compiled", "OPENBLAS_NUM_THREADS": "1"}
    entries: Sequence[object] = sys.path  # Python ignores those that are not text
    path = [entry for entry in entries if isinstance(entry, str)]
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(path), *names]  # -I: not what is in this folder
    try:
        return Compilation(
            command, stdin=nothing, stdout=nothing, stderr=nothing, env=environment, start_new_session=True
        )
    except OSError:
        return None


def main(names: Sequence[str]) -> None:
    """Compile the kernels with these names that the cache does not have."""
    from octavo.records.kernels.compilation.keeping import kept

    missing = [kernel for kernel in map(kernel_named, names) if kept(kernel, checked=False) is None]
    if missing:
        _compile(missing, in_two=len(missing) > 1 and usable_processors() > 1)


def _compile(kernels: Sequence[Kernel], *, in_two: bool) -> None:
    from octavo.records.kernels.compilation.compiled import prepare

    prepare()
    left, giver = os.pipe()  # has a byte for every kernel that nobody has begun
    os.write(giver, bytes(len(kernels)))
    os.close(giver)
    other = os.fork() if in_two else None
    signal.alarm(_MOST_S)  # which a fork does not inherit
    for kernel in kernels if other is None or other else reversed(kernels):
        if not os.read(left, 1):
            break
        _compile_one(kernel)
    if other:
        os.waitpid(other, 0)


def _compile_one(kernel: Kernel) -> None:
    from octavo.records.kernels.compilation.compiled import compile_kernel
    from octavo.records.kernels.compilation.keeping import alone, keep, kept

    with alone(kernel):
        if kept(kernel, checked=False) is None:
            keep(kernel, compile_kernel(kernel), checked=False)
