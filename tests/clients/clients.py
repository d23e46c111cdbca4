"""The columns of the matrix: `CLIENTS`, each with the cells that it cannot fill."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.clients.driver import ClientUnavailable, Driver
from tests.clients.program import Program
from tests.kafka.releases import Name, command, find, version
from tests.machines.programs import GO, KCAT, NODE, absent
from tests.machines.programs import find as find_program

_HERE: Final = Path(__file__).parent
_BUILT: Final = _HERE.parents[1] / "build" / "clients"  # by `make clients`
_NODE_MODULES: Final = _BUILT / "kafkajs" / "node_modules"
_FRANZ_GO: Final = _BUILT / "franz-go" / "driver"


@dataclass(frozen=True)
class Client:
    """A column."""

    name: str
    version: Callable[[], str]
    connect: Callable[[str], Driver]  # takes bootstrap servers
    connect_apart: Callable[[str], Program]  # the same in a process of its own
    cannot: Mapping[str, str] = field(default_factory=dict)  # what the client has no way to do, and why
    not_yet: Mapping[str, str] = field(default_factory=dict)  # what Octavo does not let it do, and why
    not_on_kafka: Mapping[str, str] = field(default_factory=dict)  # what Apache Kafka does not let it do, and why
    needs_java: bool = False


def _pinned(package: str) -> Callable[[], str]:
    """Return what reads the version of a Python package that constraints.txt has."""

    def version() -> str:
        lines = (_HERE.parents[1] / "constraints.txt").read_text().splitlines()
        return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))

    return version


def _in_python(client: str) -> Callable[[str], Program]:
    """Return what connects a client of Python's in a process of its own."""
    return lambda address: Program([sys.executable, "-m", "tests.clients.python", client, address])


def _librdkafka(address: str) -> Driver:
    from tests.clients.python.librdkafka import Librdkafka

    return Librdkafka(address)


def _java(release: Name) -> Callable[[str], Program]:
    """Return what connects the Java client of a release of Apache Kafka."""
    return lambda address: Program([*command(find(release), main="Driver"), address])


def _aiokafka(address: str) -> Driver:
    from tests.clients.python.aio import Aiokafka

    return Aiokafka(address)


def _kafka_python(address: str) -> Driver:
    from tests.clients.python.kafka_python import KafkaPython

    return KafkaPython(address)


def _kcat(address: str) -> Driver:
    from tests.clients.kcat import Kcat

    if find_program(KCAT) is None:
        raise ClientUnavailable(absent(KCAT))
    return Kcat(address)


def _kafkajs(address: str) -> Program:
    node = find_program(NODE)
    if node is None:
        raise ClientUnavailable(absent(NODE))
    if not _NODE_MODULES.exists():
        raise ClientUnavailable("kafkajs is not there: `make clients` fetches it.")
    return Program(
        [node, str(_HERE / "kafkajs" / "driver.js"), address], env=os.environ | {"NODE_PATH": str(_NODE_MODULES)}
    )


def _franz_go(address: str) -> Program:
    if not _FRANZ_GO.exists():
        raise ClientUnavailable("franz-go is not there: `make clients` builds it." if find_program(GO) else absent(GO))
    return Program([str(_FRANZ_GO), address])


def _in_package_json(package: str) -> Callable[[], str]:
    """Return what reads the version of a package of Node's."""
    return lambda: str(json.loads((_HERE / "kafkajs" / "package.json").read_text())["dependencies"][package])


def _in_go_mod(module: str) -> Callable[[], str]:
    """Return what reads the version of a module of Go's."""
    return lambda: re.findall(rf"\t{module} v(\S+)", (_HERE / "franz_go" / "go.mod").read_text())[0]


_KAFKAJS_CODEC: Final = "kafkajs leaves lz4 and zstd to packages that have to be compiled."
_NO_ADMIN: Final = "kcat does not administer topics."

_NO_CONSUMER_PROTOCOL: Final = dict.fromkeys(
    (
        "consumer protocol",
        "consumer protocol under load",
        "consumer protocol with patterns",
        "from classic to consumer",
    ),
    "The client does not have the consumer protocol.",
)
_GROUP_ADMIN: Final = (
    "list and describe groups",
    "committed offsets",
    "change committed offsets",
    "delete committed offsets",
    "delete a group",
)
_VERSION_1: Final = "The client has transactions of version 1, with one epoch for all transactions of a producer."
_TRANSACTIONS: Final = (
    "version 2",
    "commit and abort",
    "read committed",
    "zombies",
    "time-outs",
    "consume, transform, produce",
    "a kill of the broker",
)

_CLIENTS: Final = [
    Client(
        "confluent-kafka",
        _pinned("confluent-kafka"),
        _librdkafka,
        _in_python("confluent-kafka"),
        cannot={
            "delete committed offsets": "confluent-kafka has no call for it.",
            "version 2": _VERSION_1,
        },
    ),
    Client(
        "aiokafka",
        _pinned("aiokafka"),
        _aiokafka,
        _in_python("aiokafka"),
        cannot={
            "no auto-creation by the client": "aiokafka always allows the broker to create topics.",
            "change settings": "aiokafka has no call for it.",
            "change committed offsets": "aiokafka has no call for it.",
            "delete committed offsets": "aiokafka has no call for it.",
            "delete a group": "aiokafka has no call for it.",
            "version 2": _VERSION_1,
            "fenced members": "aiokafka does not know the error of it, and goes on without telling.",
            "cooperative rebalances": "aiokafka has no cooperative assignor.",
            **_NO_CONSUMER_PROTOCOL,
        },
    ),
    Client(
        "kafka-python",
        _pinned("kafka-python"),
        _kafka_python,
        _in_python("kafka-python"),
        cannot={
            "null headers": "kafka-python refuses headers whose value is null.",
            "version 2": _VERSION_1,
            "fenced members": "kafka-python logs it, and polls nothing from then on.",
            **_NO_CONSUMER_PROTOCOL,
            "replace settings": "kafka-python adds the settings that the topic has to those that it is given.",
        },
    ),
    Client(
        "kcat",
        lambda: "1.7.1, Debian's",
        _kcat,
        _in_python("kcat"),
        cannot={
            "null and empty": "kcat takes an empty line for no record, or with -Z for null.",
            "binary headers": "kcat prints headers as text.",
            "CreateTime": "kcat has no option for the time of a record.",
            "create a topic": _NO_ADMIN,
            "add partitions": _NO_ADMIN,
            "delete a topic": _NO_ADMIN,
            "describe settings": _NO_ADMIN,
            "replace settings": _NO_ADMIN,
            "change settings": _NO_ADMIN,
            "delete records": _NO_ADMIN,
            **dict.fromkeys(
                ("a group", "commits on the side", "rebalances under load"), "kcat commits only by itself, on the side."
            ),
            "fenced members": "kcat does not tell.",
            "cooperative rebalances": "kcat does not tell which partitions it keeps.",
            **_NO_CONSUMER_PROTOCOL,
            **dict.fromkeys(_GROUP_ADMIN, "kcat does not administer groups."),
            **dict.fromkeys(_TRANSACTIONS, "kcat has no transactions."),
        },
    ),
    Client(
        "kafkajs",
        _in_package_json("kafkajs"),
        _kafkajs,
        _kafkajs,
        cannot={
            "codec lz4": _KAFKAJS_CODEC,
            "codec zstd": _KAFKAJS_CODEC,
            "headers": "kafkajs has headers in a map, which puts those of the same name next to each other.",
            "null headers": "kafkajs has no headers whose value is null.",
            "delete committed offsets": "kafkajs has no call for it.",
            "patterns": "kafkajs looks for topics only when it subscribes.",
            "version 2": _VERSION_1,
            "static members": "kafkajs has no static members.",
            "fenced members": "kafkajs has no static members.",
            "cooperative rebalances": "kafkajs has no cooperative assignor.",
            **_NO_CONSUMER_PROTOCOL,
            "no auto-creation by the broker": "kafkajs never has topics created by asking for them.",
            "change settings": "kafkajs has no call for it.",
        },
        not_on_kafka={
            "a kill of the broker": "Apache Kafka, just started, answers NOT_COORDINATOR, and kafkajs gives up.",
        },
    ),
    Client(
        "franz-go",
        _in_go_mod("github.com/twmb/franz-go"),
        _franz_go,
        _franz_go,
        not_on_kafka={
            "idempotence over a kill": "After a kill Apache Kafka may know only the last batch of a producer again. It "
            "answers OUT_OF_ORDER_SEQUENCE_NUMBER if earlier ones are repeated; franz-go then duplicates them.",
        },
    ),
    Client(
        "Apache Kafka, Java",
        lambda: version("broker"),
        _java("broker"),
        _java("broker"),
        cannot={"replace settings": "The Java client has no call for it since 4.0."},
        needs_java=True,
    ),
]

CLIENTS: Final = {client.name: client for client in _CLIENTS}
