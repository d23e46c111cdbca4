"""Apache Kafka's own reader and writer, in a separate JVM. Its commands are described in java/Peer.java.

It is the newest Kafka release that the tests use, from the same folder. Java compiles Peer.java when it starts.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from tests.kafka import releases

SOURCE: Final = Path(__file__).parent / "java" / "Peer.java"

# All contenders have one thread, hence the serial collector. The heap has its full size from the start.
_OPTIONS: Final = ("-Xms3g", "-Xmx3g", "-XX:+UseSerialGC", "-XX:-UsePerfData")


class Pass(NamedTuple):
    """The time of one pass over all records, with their number and size."""

    seconds: float
    records: int
    size: int  # number of bytes in keys and values


class Peer:
    """A Java process that writes data sets, or loads one into memory and iterates over its records."""

    def __init__(self) -> None:
        """Start the process. Raises `KafkaUnavailable` if Java or Kafka is missing."""
        java = shutil.which("java")
        if java is None:
            raise releases.KafkaUnavailable("Apache Kafka needs a JDK, 17 or later: there is no `java` on the PATH.")
        jars = ":".join(map(str, releases.find("newest").jars))
        self._process = subprocess.Popen(
            [java, *_OPTIONS, "-cp", jars, str(SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, *words: object) -> str:
        """Send one command and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{SOURCE.name} died of {words[0]!r}: run it by hand to see why")
        return answer.rstrip("\n")

    def load(self, path: Path, warm_seconds: float) -> None:
        """Read a file into memory, and iterate over it for `warm_seconds`, so that the JVM compiles the code."""
        self.ask("load", path)
        self.ask("warm", warm_seconds)

    def touch(self) -> Pass:
        """Run one pass that accesses every key and value."""
        return self._pass("touch")

    def copy(self) -> Pass:
        """Run one pass that copies every key and value into its own array, as a consumer does."""
        return self._pass("copy")

    def _pass(self, mode: str) -> Pass:
        nanoseconds, count, size = map(int, self.ask(mode).split())
        return Pass(nanoseconds / 1e9, count, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def version() -> str:
    """Return the version of Apache Kafka that is measured."""
    return releases.find("newest").version
