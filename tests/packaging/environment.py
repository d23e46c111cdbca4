"""Wheels of this checkout, and new virtual environments that they are installed into.

No network is asked. The build backend is the one of the environment that the tests run in, and what Octavo depends on
is linked from there: the very distributions that its metadata name, and those that these name, but nothing else. So a
dependency that is used and not declared is missing, and the checkout cannot be imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[2]


def build(target: str, source: Path, folder: Path) -> Path:
    """Build the `wheel` or the `sdist` of the sources in `source`; return the file."""
    folder.mkdir()
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    _run(command, source)
    (built,) = folder.iterdir()
    return built


class Environment:
    """A virtual environment with a wheel, and what that depends on."""

    def __init__(self, folder: Path, wheel: Path, extra: str) -> None:
        self.folder: Final = folder
        self.scripts: Final = folder / "bin"
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)
        into = ["--python", str(self.scripts / "python")]
        install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
        _run([sys.executable, "-m", "pip", *into, *install], folder.parent)
        self.packages: Final = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
        _link_dependencies(Distribution.at(next(self.packages.glob("octavo-*.dist-info"))), extra, self.packages)

    def run(self, *command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs as in a shell that has activated it, in `folder`."""
        outside = ("PYTHON", "PYSPARK", "SPARK", "OCTAVO")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(outside)}
        environment["PATH"] = f"{self.scripts}{os.pathsep}{os.environ['PATH']}"
        program = [str(self.scripts / command[0]), *command[1:]]
        return subprocess.run(
            program, cwd=folder, env={**environment, **variables}, capture_output=True, text=True, timeout=500
        )


def _link_dependencies(root: Distribution, extra: str, packages: Path) -> None:
    wanted = _required(root, {extra})
    done: set[tuple[str, str]] = set()
    while wanted:
        name, asked = wanted.pop()
        if (name, asked) in done:
            continue
        done.add((name, asked))
        found = distribution(name)
        _link(found, packages)
        wanted |= _required(found, {asked})


def _required(found: Distribution, extras: set[str]) -> set[tuple[str, str]]:
    """What a distribution requires here, with these extras of its own: names, each with an extra of theirs or none."""
    required: set[tuple[str, str]] = set()
    for text in found.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            name = canonicalize_name(requirement.name)
            required |= {(name, extra) for extra in requirement.extras | {""}}
    return required


def _link(found: Distribution, packages: Path) -> None:
    for top in {file.parts[0] for file in found.files or ()}:
        if top not in ("..", "__pycache__") and not (packages / top).exists():
            (packages / top).symlink_to(Path(str(found.locate_file(top))))


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
