"""The columns of the matrix: `CLIENTS`, each with the cells that it cannot fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.clients.driver import Driver
from tests.clients.program import Program
from tests.kafka.releases import Name, command, find, version


@dataclass(frozen=True)
class Client:
    """A column."""

    name: str
    version: Callable[[], str]
    connect: Callable[[str], Driver]  # takes bootstrap servers
    cannot: Mapping[str, str] = field(default_factory=dict)  # what the client has no way to do, and why
    not_yet: Mapping[str, str] = field(default_factory=dict)  # what Octavo does not let it do, and why
    needs_java: bool = False


def _pinned(package: str) -> Callable[[], str]:
    """Return what reads the version of a Python package that constraints.txt has."""

    def version() -> str:
        lines = Path("constraints.txt").read_text().splitlines()
        return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))

    return version


def _librdkafka(address: str) -> Driver:
    from tests.clients.python.librdkafka import Librdkafka

    return Librdkafka(address)


def _java(release: Name) -> Callable[[str], Driver]:
    """Return what connects the Java client of a release of Apache Kafka."""
    return lambda address: Program([*command(find(release), main="Driver"), address])


def _aiokafka(address: str) -> Driver:
    from tests.clients.python.aio import Aiokafka

    return Aiokafka(address)


def _kafka_python(address: str) -> Driver:
    from tests.clients.python.kafka_python import KafkaPython

    return KafkaPython(address)


_LIBRDKAFKA_NOT_YET: Final = {
    "codec lz4": "librdkafka compresses with lz4 only if the broker lists FindCoordinator, which comes with groups."
}

_CLIENTS: Final = [
    Client("confluent-kafka", _pinned("confluent-kafka"), _librdkafka, not_yet=_LIBRDKAFKA_NOT_YET),
    Client(
        "aiokafka",
        _pinned("aiokafka"),
        _aiokafka,
        cannot={
            "no auto-creation by the client": "aiokafka always allows the broker to create topics.",
            "change settings": "aiokafka has no call for it.",
        },
    ),
    Client(
        "kafka-python",
        _pinned("kafka-python"),
        _kafka_python,
        cannot={
            "null headers": "kafka-python refuses headers whose value is null.",
            "replace settings": "kafka-python adds the settings that the topic has to those that it is given.",
        },
    ),
    Client(
        "Apache Kafka, Java",
        lambda: version("broker"),
        _java("broker"),
        cannot={"replace settings": "The Java client has no call for it since 4.0."},
        needs_java=True,
    ),
]

CLIENTS: Final = {client.name: client for client in _CLIENTS}
