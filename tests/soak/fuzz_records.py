"""Fuzz the readers: `python -m tests.soak.fuzz_records --seconds 600 --seed 1 --mode compiled`.

A child process does the cases, so that one that kills it or hangs can be named. What goes wrong is told with the seed,
the number of the case and a command that does it again, and the input is kept as a file.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Final

from tests.corruption.child import MODES, Child
from tests.soak.fuzzing import cases, replayed
from tests.soak.inputs import Inputs

FOLDER: Final = Path("build/fuzz")
_MEMORY_LIMIT: Final = 192 << 20


def main() -> int:
    arguments = _arguments()
    child = Child(arguments.mode)
    first, seconds = (arguments.first, arguments.seconds) if arguments.case is None else (arguments.case, 0)
    try:
        if arguments.replay is None:
            answer = child.run(cases, arguments.seed, first, seconds, max_grown=_MEMORY_LIMIT)
        else:
            answer = child.run(replayed, str(arguments.replay.resolve()))
    except AssertionError as error:
        sys.stderr.write(f"{error}\n")
        _keep(arguments.seed, arguments.mode, str(error))
        return 1
    finally:
        child.close()
    sys.stdout.write(
        f"{arguments.mode}: {answer['count']:,} cases of seed {arguments.seed}, from {first:,} on, found nothing; "
        f"{answer['grown'] >> 20} MiB of memory at the most\n"
    )
    return 0


def _keep(seed: int, mode: str, problems: str) -> None:
    """Files of the inputs that are named in `problems`, and how to do them again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    inputs = Inputs(seed)
    for number in dict.fromkeys(map(int, re.findall(r"\bnumber (\d+)", problems))):
        path = FOLDER / f"{seed}-{number}.bin"
        path.write_bytes(inputs.make(number).data)
        command = f"python -m tests.soak.fuzz_records --mode {mode} --seed {seed} --case {number}"
        sys.stderr.write(f"seed {seed}, number {number}: {path}; again: {command}\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=MODES, default="compiled")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--case", type=int, help="only the case of this number")
    parser.add_argument("--replay", type=Path, help="only the input in this file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
