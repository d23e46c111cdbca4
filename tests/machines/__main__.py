"""Do what a newcomer does on machines that have nothing yet, and print what each printed last and how long it took.

As root, with debootstrap: `python3 -m tests.machines`. It takes hours if all tests run; `--tests` chooses some. What
the commands print is kept in the folder of the machines.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.machines import bare
from tests.machines.bare import Machine, User

_ROOT: Final = Path(__file__).resolve().parents[2]
# What is run on each: Debian's stable releases with all, and the coming one, for the Python that it has.
_COMMANDS: Final = {"bookworm": ("run", "test"), "trixie": ("run", "test"), "sid": ("run", "check")}
_USERS: Final[tuple[User, ...]] = ("root", "user", "alone")
_PATIENCE_S: Final = 3 * 3600


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command did on a machine."""

    machine: str
    command: str
    status: int
    minutes: float
    last: str  # line that it printed

    def row(self) -> str:
        """A line of the table."""
        ended = "well" if self.status == 0 else f"with {self.status}"
        return f"| {self.machine} | `{self.command}` | {ended} | {self.minutes:.1f} | {self.last} |"


def main() -> int:
    """Return 0 if all that was done on the machines ended well."""
    arguments = _arguments()
    outcomes = []
    for suite in arguments.suites:
        for user in arguments.users:
            outcomes += _try(suite, user, arguments)
    print("\n| machine | command | ended | minutes | last line |\n|---|---|---|---|---|")
    print("\n".join(outcome.row() for outcome in outcomes))
    return int(any(outcome.status != 0 for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m tests.machines", description=__doc__)
    parser.add_argument("--suites", nargs="+", choices=_COMMANDS, default=list(_COMMANDS), help="releases of Debian")
    parser.add_argument("--users", nargs="+", choices=_USERS, default=list(_USERS), help="who runs the commands")
    parser.add_argument(
        "--commands", nargs="+", metavar="TARGET", help="targets of make (default: run, then test or check)"
    )
    parser.add_argument("--tests", default="", metavar="ARGUMENTS", help="for pytest, such as 'tests/kafka -k varint'")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/octavo-machines"), help="where the machines are made")
    parser.add_argument("--source", type=Path, default=_ROOT, help="the repository that they clone")
    parser.add_argument("--keep", action="store_true", help="do not remove the machines afterwards")
    return parser.parse_args()


def _try(suite: str, user: User, arguments: argparse.Namespace) -> list[Outcome]:
    """Make a machine, run the commands on it one after another, and remove it."""
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    base = bare.bootstrap(suite, folder / suite)
    machine = bare.copy(base, folder / f"{suite}-{user}", user, arguments.source)
    variables = {"PYTEST_ADDOPTS": arguments.tests} if arguments.tests else {}
    outcomes = []
    for target in arguments.commands or _COMMANDS[suite]:
        log = folder / f"{suite}-{user}-{target}.log"
        outcomes.append(_command(machine, f"{suite}, {user}", f"make {target}", variables, log))
        print(outcomes[-1].row(), flush=True)
    if not arguments.keep:
        bare.remove(machine.root)
    return outcomes


def _command(machine: Machine, name: str, command: str, variables: dict[str, str], log: Path) -> Outcome:
    started = time.monotonic()
    with log.open("wb") as file:
        # Root's own terminal is not theirs, and what they start ends with them.
        process = subprocess.Popen(
            machine.command(command, variables),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=_PATIENCE_S)
        except BaseException as stopped:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            if not isinstance(stopped, subprocess.TimeoutExpired):
                raise
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return Outcome(name, command, status, (time.monotonic() - started) / 60, lines[-1] if lines else "")


if __name__ == "__main__":
    sys.exit(main())
