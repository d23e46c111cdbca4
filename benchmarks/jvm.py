"""Apache Kafka's own reader and writer, in a JVM of their own: see java/Peer.java for what it can be asked.

The newest release that the tests use, from the same folder. Java compiles the one source file when it starts.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from tests.kafka import releases

SOURCE: Final = Path(__file__).parent / "java" / "Peer.java"

# One thread, as everybody has: hence the collector that takes no second one. The heap has its size from the start.
_OPTIONS: Final = ("-Xms3g", "-Xmx3g", "-XX:+UseSerialGC", "-XX:-UsePerfData")


class Pass(NamedTuple):
    """One pass over all records."""

    seconds: float
    records: int
    size: int  # in bytes, of keys and values


class Peer:
    """A process that writes data, or has read some into memory and iterates over them."""

    def __init__(self) -> None:
        """Starts the process; raises `KafkaUnavailable` where it cannot be had."""
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
        """One command; its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{SOURCE.name} died of {words[0]!r}: run it by hand to see why")
        return answer.rstrip("\n")

    def load(self, path: Path, warm_seconds: float) -> None:
        """Read a file into memory, and pass over it until everything is compiled."""
        self.ask("load", path)
        self.ask("warm", warm_seconds)

    def touch(self) -> Pass:
        """One pass that looks at every key and value."""
        return self._pass("touch")

    def copy(self) -> Pass:
        """One pass that copies every key and value into an array of its own, as a consumer does."""
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
    """The release of Apache Kafka that is measured."""
    return releases.find("newest").version
