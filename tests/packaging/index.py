"""What the package index says that each version in constraints.txt requires of Python.

`python -m tests.packaging.index` (`make constraints`) asks it, by the pip of the environment and as that is configured.
It keeps the answers in `requires_python.txt`. So a plain test sees whether all can be installed, without a network, and
fails where the constraints have changed since.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from tests.packaging.environment import ROOT

CONSTRAINTS: Final = ROOT / "constraints.txt"
RECORD: Final = Path(__file__).with_name("requires_python.txt")
_HEAD: Final = "# What the package index says that each constraint requires of Python. Written by `make constraints`.\n"


def constraints() -> list[str]:
    """The lines of constraints.txt that name a version."""
    lines = CONSTRAINTS.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def recorded() -> dict[str, str]:
    """What the index said when it was asked last: for each constraint what it requires of Python, or nothing."""
    lines = RECORD.read_text("utf-8").splitlines()
    return {pin: requires for pin, _, requires in (line.partition(" ") for line in lines if not line.startswith("#"))}


def asked() -> dict[str, str]:
    """The same from the index, now. Nothing is installed, and of most packages only the metadata are fetched."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    # The build of an sdist, which is how it tells its metadata, takes what is in the environment.
    command += ["--no-build-isolation", "--ignore-requires-python", "--report", "-", "--requirement", str(CONSTRAINTS)]
    answered = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = [package["metadata"] for package in json.loads(answered.stdout)["install"]]
    required = {
        f"{canonicalize_name(each['name'])}=={each['version']}": each.get("requires_python", "") for each in found
    }
    return {pin: required[pin] for pin in constraints()}


def main() -> None:
    """Write down what the index says."""
    lines = [f"{pin} {requires}".rstrip() + "\n" for pin, requires in asked().items()]
    RECORD.write_text(_HEAD + "".join(lines), "utf-8")


if __name__ == "__main__":
    main()
