"""Run all kinds of soak for so many minutes: `python -m tests.soak --minutes 60`.

Each kind gets a share of the time, and seeds and tests that follow from the number of the run. It is one more than the
last time, so that seeds move on; `--seed` does a run again. What has no time in this run has its turn in a later one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.soak.kinds import KINDS, ROOT, Kind, named
from tests.soak.plugin import run_of_the_day
from tests.soak.process import KindProcess
from tests.soak.sharing import Claim, divide, turned
from tests.soak.table import summary

FOLDER: Final = ROOT / "build" / "soak"
_KEPT: Final = 5  # runs, of which logs are kept
_OVERRUN: Final = 0.06  # of the whole time, until what still runs is ended
_GRACE: Final = 1.5  # how much longer than its share a kind may take while others wait
_GRACE_S: Final = 60.0
_LOOK_AGAIN_S: Final = 0.2
_INTERRUPTED: Final = 130


class Slot:
    """One kind after the other. Those that come later have what the earlier ones leave."""

    def __init__(
        self, kinds: tuple[Kind, ...], run: int, folder: Path, *, until: float, limit: float, grace_s: float
    ) -> None:
        """`until`: when to end; `limit`: when to end even what hangs; `grace_s`: what a kind may overrun before."""
        self._run: Final = run
        self._until: Final = until
        self._limit: Final = limit
        self._grace_s: Final = grace_s
        self._folder: Final = folder
        self._turns: Final = [kind.name for kind in turned(kinds, run)]
        self.waiting: Final = list(kinds)
        self.current: KindProcess | None = None
        self.done: Final[list[KindProcess]] = []

    def go_on(self) -> bool:
        """Begin, end, or look at a kind. Returns whether there is more to do."""
        if self.current is None:
            return self._begin_next()
        now = time.monotonic()
        grace = self.current.share * _GRACE + self._grace_s
        if not self.current.is_over():
            if self.current.took > grace or now > self._limit:
                self.end(f"it had not ended {self.current.took - self.current.share:.0f} s after its share")
            return True
        self._is_done()
        return True

    def end(self, because: str) -> None:
        """End the kind that runs, if one does."""
        if self.current is not None:
            self.current.end(because)
            self._is_done()

    def _is_done(self) -> None:
        assert self.current is not None
        self.done.append(self.current)
        _say(f"  {self.current.kind.name}: {self.current.took:.0f} s, {self.current.cases:,} cases")
        for problem in self.current.problems:
            _say(f"  FAILED {self.current.kind.name}: {problem}")
        self.current = None

    def _begin_next(self) -> bool:
        """Whose turn it is, is granted what it needs first; in which order they run is another matter."""
        left = self._until - time.monotonic()
        waiting = {kind.name: kind for kind in self.waiting}
        claims = [Claim(name, waiting[name].least, waiting[name].weight) for name in self._turns if name in waiting]
        shares = divide(claims, left)
        kind = next((each for each in self.waiting if each.name in shares), None)
        if kind is None:
            return False
        self.waiting.remove(kind)
        _say(f"  {kind.name} begins, for {shares[kind.name]:.0f} s")
        self.current = KindProcess(kind, self._run, shares[kind.name], self._folder)
        return True


def run_kinds(
    kinds: Mapping[str, tuple[Kind, ...]], run: int, seconds: float, folder: Path, grace_s: float = _GRACE_S
) -> int:
    """Run the kinds of each slot one after the other, and print what came of it. Returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    until = begin + seconds
    limit = until + max(grace_s / 2, _OVERRUN * seconds)
    slots = [Slot(each, run, folder, until=until, limit=limit, grace_s=grace_s) for each in kinds.values() if each]
    was_interrupted = False
    try:
        while [slot for slot in slots if slot.go_on()]:
            time.sleep(_LOOK_AGAIN_S)
    except KeyboardInterrupt:
        was_interrupted = True
        for slot in slots:
            slot.end("it was interrupted")
    done = [each for slot in slots for each in slot.done]
    waiting = [each for slot in slots for each in slot.waiting]
    for line in summary(run, seconds, time.monotonic() - begin, done, waiting, folder):
        _say(line)
    if was_interrupted:
        return _INTERRUPTED
    return int(not done or any(each.problems for each in done))


def next_run(folder: Path) -> int:
    """Return the number of the run that begins, and remember that it has."""
    kept = folder / "next"
    run = int(kept.read_text()) if kept.exists() else run_of_the_day()
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_text(f"{run + 1}\n")
    return run


def _is_set_up(kind: Kind) -> bool:
    return os.sep not in kind.python or (ROOT / kind.python).exists()


def _make_room(folder: Path) -> None:
    runs = sorted((each for each in folder.glob("[0-9]*") if each.is_dir()), key=lambda each: each.stat().st_mtime)
    for old in runs[: -_KEPT + 1]:
        shutil.rmtree(old)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, help="the number of a run that is done again")
    parser.add_argument("--only", metavar="KIND", action="append", help="only this kind; may be given several times")
    parser.add_argument("--list", action="store_true", help="say which kinds there are")
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    if arguments.list:
        for kind in (each for kinds in KINDS.values() for each in kinds):
            _say(f"{kind.name:18}{' '.join(kind.tests)}")
        return 0
    try:
        kinds = KINDS if arguments.only is None else named(arguments.only)
    except ValueError as error:
        sys.exit(str(error))
    missing = [str(kind.python) for each in kinds.values() for kind in each if not _is_set_up(kind)]
    if missing:
        sys.exit(f"there is no {', '.join(missing)}: `make older-sparks` brings it")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _make_room(FOLDER)
    run = next_run(FOLDER) if arguments.seed is None else arguments.seed
    _say(f"Soak {run} takes {arguments.minutes:g} minutes; SEED={run} does the same again. Logs: build/soak/{run}")
    return run_kinds(kinds, run, arguments.minutes * 60, FOLDER / str(run))


if __name__ == "__main__":
    sys.exit(main())
