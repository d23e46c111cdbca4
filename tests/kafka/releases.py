"""The Apache Kafka releases that judge Octavo: where their jars are, and the judge program compiled for each.

Versions stand in `tests/kafka/pom.xml` alone; `make kafka` puts the jars into `build/kafka/<version>/`.
Nothing here goes to the network. What cannot be had raises `KafkaUnavailable`, which says what is missing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn
from xml.etree import ElementTree

import pytest

from tests.machines import programs

Judging = Literal["newest", "broker", "legacy", "streams"]
Name = Judging | Literal["4.0", "4.1", "4.2"]

HERE: Final = Path(__file__).resolve().parent
BUILD: Final = HERE.parents[1] / "build" / "kafka"

# Which folders under java/ each release takes its sources from; "" for the sources that all judges share.
_FOLDERS: Final[dict[Name, tuple[str, ...]]] = {
    "newest": ("", "newest"),
    "broker": ("", "storage", "broker"),
    "legacy": ("", "storage", "legacy"),
    "streams": ("streams",),
}

# Tests are short: quick to start beats quick in the end.
QUICK: Final = ("-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_JAVAC: Final = ("--release", "17", "-proc:none")


class KafkaUnavailable(Exception):
    """Kafka cannot be asked on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Apache Kafka, with all the jars it needs."""

    name: Name
    version: str
    jars: tuple[Path, ...]


def do_without(reason: Exception | str) -> NoReturn:
    """Skips the test that runs; where `CI` is set it fails instead."""
    if os.environ.get("CI"):
        pytest.fail(str(reason), pytrace=False)
    pytest.skip(str(reason))


def find(name: Name) -> Release:
    """The release called `name` in the Maven file; raises `KafkaUnavailable` if its jars are not there."""
    number = version(name)
    jars = tuple(sorted((BUILD / number).glob("*.jar")))
    needed = {f"kafka-clients-{number}.jar"}
    if name == "streams":
        jars += tuple(sorted((BUILD / f"streams-{number}").glob("*.jar")))
        needed.add(f"kafka-streams-{number}.jar")
    if not needed <= {jar.name for jar in jars}:
        raise KafkaUnavailable(
            unfetched(f"Apache Kafka {number} is not in build/kafka: run `make kafka older` to fetch it.")
        )
    return Release(name, number, jars)


def unfetched(reason: str) -> str:
    """Why something is not there that Maven fetches: `reason`, unless what fetches it is not there."""
    needed = (programs.JAVAC, programs.MAVEN)
    return next((programs.absent(program) for program in needed if programs.find(program) is None), reason)


def version(name: Name) -> str:
    """The version of the release called `name` in the Maven file. Kafka Streams is of the broker's."""
    pom = ElementTree.parse(HERE / "pom.xml")
    of = "broker" if name == "streams" else name
    found = pom.findtext(f"{{*}}properties/{{*}}kafka.{of}.version")
    assert found is not None, f"pom.xml has no kafka.{of}.version"
    return found


def command(release: Release, options: Sequence[str] = QUICK, main: str = "Judge") -> list[str]:
    """The command that runs one of the programs in java/ on `release`, compiled first if that has not been done."""
    classes = _compiled(release)
    return [
        java(),
        *options,
        "-XX:-UsePerfData",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",  # what goes wrong is told in the answers
        "-cp",
        ":".join(map(str, (classes, *release.jars))),
        f"judge.{main}",
    ]


def java() -> str:
    """The program that runs Java; raises `KafkaUnavailable` where there is none."""
    return _tool(programs.JAVA)


def _tool(program: programs.Program) -> str:
    path = programs.find(program)
    if path is None:
        raise KafkaUnavailable(programs.absent(programs.JAVAC))
    return path


def _compiled(release: Release) -> Path:
    """The folder of the compiled judge; its name holds a hash of all that it was made from."""
    sources = _sources(release)
    digest = hashlib.sha256(repr((sources, [jar.name for jar in release.jars])).encode()).hexdigest()[:12]
    target = BUILD / f"judge-{release.version}-{digest}"
    with lock(BUILD / "judge.lock"):  # several test workers start at once
        if not target.exists():
            _compile(sources, release, target)
    return target


def _sources(release: Release) -> dict[str, str]:
    """File name to source, with the imports as this release has its packages."""
    classes = _class_names(release)
    folders = [HERE / "java" / folder for folder in _FOLDERS[release.name]]
    files = sorted(file for folder in folders for file in folder.glob("*.java"))
    return {file.name: _move_imports(file.read_text("utf-8"), classes) for file in files}


def _class_names(release: Release) -> set[str]:
    names: set[str] = set()
    for jar in release.jars:
        if jar.name.startswith("kafka"):
            with zipfile.ZipFile(jar) as archive:
                names.update(archive.namelist())
    return names


def _move_imports(source: str, classes: set[str]) -> str:
    """Kafka keeps moving classes into packages named `internal` or `internals`: look one level up as well."""

    def move(match: re.Match[str]) -> str:
        package, name = match[1], match[2]
        for candidate in (package, package.removesuffix(".internals"), package.removesuffix(".internal")):
            if f"{candidate}.{name.partition('.')[0]}".replace(".", "/") + ".class" in classes:
                return f"import {candidate}.{name};"
        raise AssertionError(f"no jar holds {package}.{name}")

    return re.sub(r"^import (org\.apache\.kafka\.[a-z.]+)\.([A-Z][\w.]*);", move, source, flags=re.MULTILINE)


def _compile(sources: dict[str, str], release: Release, target: Path) -> None:
    javac = _tool(programs.JAVAC)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        files = [Path(folder, name) for name in sources]
        for file in files:
            file.write_text(sources[file.name], "utf-8")
        classes = Path(folder, "classes")
        done = subprocess.run(
            [javac, *_JAVAC, "-d", str(classes), "-cp", ":".join(map(str, release.jars)), *map(str, files)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"the judge does not compile for Kafka {release.version}:\n{done.stderr}")
        classes.rename(target)


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Be the only process in this block."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
