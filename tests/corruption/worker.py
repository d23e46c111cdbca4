"""Inside the child process: do the cases that the parent asks for, and say which one is being done.

Before each case its name is written to memory that the parent sees, so that it can name the case of which this process
died or in which it hangs.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import resource
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

Case = tuple[str, Callable[[], object]]  # a name and what to do: raising anything is a failure

HEADROOM: Final = 512 << 20  # address space that may be taken: the windows that zstd reserves fit, a lie does not
PROGRESS_SIZE: Final = 1024
_MAX_PROBLEMS: Final = 5


class Progress:
    """What this process is doing, for the parent to read."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), PROGRESS_SIZE)
        self._count = 0

    def tell(self, name: str) -> None:
        self._count += 1
        text = f"{self._count} {name}".encode()[: PROGRESS_SIZE - 1] + b"\0"
        self._memory[: len(text)] = text


def status(field: str) -> int:
    """A field of /proc/self/status, in bytes: `VmRSS`, `VmHWM`, `VmSize`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    raise LookupError(field)


def forget_peak() -> None:
    """Let `VmHWM` begin again at what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def do_cases(cases: Iterator[Case], progress: Progress) -> dict[str, Any]:
    """Do them all; the answer tells how many, what went wrong, and how much memory they took at their worst."""
    problems: list[str] = []
    count = 0
    forget_peak()
    before = status("VmRSS")
    for name, check in cases:
        count += 1
        progress.tell(name)
        try:
            check()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic in Rust is no Exception
            where = traceback.extract_tb(error.__traceback__)[-1]
            problems.append(f"{name}: {type(error).__name__} in {where.name}: {error}"[:4000])
            if len(problems) == _MAX_PROBLEMS:
                break
    return {"count": count, "problems": problems, "grown": status("VmHWM") - before}


def main() -> None:
    faulthandler.enable()
    answers = sys.stdout
    sys.stdout = sys.stderr
    progress = Progress(Path(sys.argv[1]))
    progress.tell("starting: imports, and compiling the kernels")
    from octavo.records import from_arrow, to_arrow
    from octavo.records.kernels import kernels
    from tests.corruption.guard import guard_allocations
    from tests.corruption.outcome import read_both
    from tests.corruption.samples import SAMPLES

    guard_allocations()
    for sample in SAMPLES.values():
        read_both(sample)
    from_arrow(next(iter(to_arrow(SAMPLES["magic 2, none"]))))
    _ = kernels(0).validate
    size = status("VmSize")
    resource.setrlimit(resource.RLIMIT_AS, (size + HEADROOM, size + HEADROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a case that is the end of it is named, and can be done again
    for line in sys.stdin:
        request = json.loads(line)
        function = getattr(import_module(request["module"]), request["function"])
        answer = do_cases(function(*request["arguments"]), progress)
        progress.tell("waiting")
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
