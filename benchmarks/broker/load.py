"""Loads that real clients put on a broker: librdkafka by a program in C, and Kafka's own client by one in Java.

A client in Python would be slower than the brokers, and what it takes would be all that is measured.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import confluent_kafka

from benchmarks.broker.served import Served
from benchmarks.data import FOLDER
from tests.kafka import releases
from tests.kafka.releases import KafkaUnavailable

_HERE: Final = Path(__file__).parent / "clients"
_VALUES: Final = 4096  # so many different values are sent
_JAVA: Final = ("-Xms256m", "-Xmx256m", "-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
LIBRDKAFKA: Final = "librdkafka"
JAVA: Final = "Java"


@dataclass(frozen=True)
class Load:
    """Records that are produced, or fetched again, by one client with its settings."""

    client: str
    properties: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 1
    value_size: int = 1024
    size: int = 256 << 20  # bytes of all values

    @property
    def count(self) -> int:
        """The number of records."""
        return self.size // self.value_size

    def run(self, broker: Served, what: str, topic: str) -> float:
        """Produce to a topic or fetch it (`what`). Returns the seconds."""
        words = [what, topic, self.partitions, self.count, self.value_size, _values(self.value_size)]
        properties = {"bootstrap.servers": broker.address, **self.properties}
        words += [f"{name}={value}" for name, value in properties.items()]
        return _with_librdkafka(words) if self.client == LIBRDKAFKA else java_client().run(words)


def _with_librdkafka(words: list[Any]) -> float:
    done = subprocess.run([_compiled(), *map(str, words)], stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


class _JavaClient:
    """A Java process that produces and fetches."""

    def __init__(self) -> None:
        jars = ":".join(map(str, releases.find("broker").jars))
        self._process = subprocess.Popen(
            [releases.java(), *_JAVA, "-cp", jars, str(_HERE / "JavaLoad.java")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, words: list[Any]) -> float:
        """Do what the words say. Returns the seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("JavaLoad.java died: what it wrote to standard error says why")
        return int(answer) / 1e9

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@cache
def java_client() -> _JavaClient:
    """Return the Java process, which is started once."""
    return _JavaClient()


def close_clients() -> None:
    """End the Java process, if there is one."""
    if java_client.cache_info().currsize:
        java_client().close()
        java_client.cache_clear()


@cache
def _compiled() -> Path:
    """Return the program in C, which is compiled if it is missing. Raises `KafkaUnavailable` without a compiler."""
    compiler = shutil.which("cc")
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    library = next(folder.glob("librdkafka-*.so.1"), None)
    if compiler is None or library is None:
        raise KafkaUnavailable("this benchmark needs a C compiler (`cc`), and confluent-kafka's wheel for Linux.")
    source = _HERE / "librdkafka_load.c"
    # The program looks for the library where it is now, so another environment needs another program.
    digest = hashlib.sha256(source.read_bytes() + str(library).encode()).hexdigest()[:12]
    target = FOLDER / f"librdkafka_load-{digest}"
    if not target.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", target, source, library, f"-Wl,-rpath,{library.parent}"], check=True)
    return target


@cache
def _values(size: int) -> Path:
    """Return a file of values: pieces of JSON with random identifiers, which compress by a factor of about two."""
    path = FOLDER / f"broker-values-{_VALUES}-{size}.bin"
    if not path.exists():
        chance = random.Random(16)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(_value(chance, size) for _ in range(_VALUES)))
    return path


def _value(chance: random.Random, size: int) -> bytes:
    text = ""
    while len(text) < size:
        text += json.dumps({"id": chance.randbytes(12).hex(), "user": chance.randrange(10**6), "action": "view"})
    return text[:size].encode()
