"""Kafka's command-line tools print the same, whether they ask Octavo or Apache Kafka."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from octavo.server.serving import serve
from tests.kafka.conftest import NewBroker
from tests.kafka.judge import Judge
from tests.kafka.releases import QUICK, java
from tests.kafka.tool_calls import CALLS, FILES
from tests.kafka.tools import Call, Printed, Tools
from tests.retention import KEPT_FOR_NOW

_CONFIG: Final = {**KEPT_FOR_NOW, "auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": "0"}
_METADATA_VERSION: Final = "4.0-IV3"  # what a directory of Octavo has
_PATIENCE: Final = 30  # tries
# What cannot be the same, and what stands for it.
_OWN: Final = (
    (re.compile(r"127\.0\.0\.1:\d+"), "ADDRESS"),
    (re.compile(r"(127\.0\.0\.1 +)\d+ *"), r"\1PORT "),
    (re.compile(r"(?<![\w.-])[\w-]{22}(?![\w(-])"), "ID"),
    (re.compile(r"/\S+/(?:ours|kafka)\b"), "FOLDER"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "TIME"),
    (re.compile(r"^\t(?:at .*|\.\.\. \d+ more)\n", re.MULTILINE), ""),
    (re.compile(r"(HighWatermark: +|\tID\t)\d+ *"), r"\1OFFSET "),  # of the metadata log
    (re.compile(r"\d+ ms ago *"), "LATELY "),
    (re.compile(r'(?<=CurrentVoters:          \[\{"id": 1, )"[^}]*'), "ITSELF"),  # by its listener, or its directory
    (re.compile(r"(records sent), .*"), r"\1"),
    (re.compile(r'"size":[1-9]\d*'), '"size":"SIZE"'),  # depends on times between records
)


def test_tools_print_the_same(kafka_broker: Judge, new_broker: NewBroker, tmp_path: Path) -> None:
    kafka = new_broker(tmp_path / "kafka", settings=_CONFIG)
    kafka.format(metadata_version=_METADATA_VERSION)
    kafka.start()
    with serve(tmp_path / "ours", config=_CONFIG) as server:
        ours = Tools(kafka_broker, server.bootstrap_servers, tmp_path)
        theirs = Tools(kafka_broker, kafka.address, tmp_path)
        ours.write(FILES)
        found = [
            line for call, told in zip(CALLS, ours.run_all(CALLS), strict=True) for line in compare(theirs, call, told)
        ]
    assert not found, "\n".join([f"{len(found)} differences:", *found[:60]])


def test_the_verifiable_producer_is_acknowledged(kafka_broker: Judge, tmp_path: Path) -> None:
    """In a process of its own: it tells what it did when its process ends."""
    jars = ":".join(map(str, kafka_broker.release.jars))
    command = [java(), *QUICK, "-cp", jars, "org.apache.kafka.tools.VerifiableProducer", "--topic", "verified"]
    with serve(tmp_path / "ours") as server:
        address = ["--bootstrap-server", server.bootstrap_servers]
        options = ["--max-messages", "20", "--acks", "-1", "--repeating-keys", "3"]
        done = subprocess.run([*command, *address, *options], capture_output=True, text=True, timeout=240)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    acknowledged = [each for each in told if each["name"] == "producer_send_success"]
    assert [(each["offset"], each["value"]) for each in acknowledged] == [(n, str(n)) for n in range(20)], done.stderr
    (result,) = [each for each in told if each["name"] == "tool_data"]
    assert (result["sent"], result["acked"]) == (20, 20)


def compare(kafka: Tools, call: Call, told: Printed) -> list[str]:
    """The differences; Kafka may answer before it has done what it was told to do before, and is asked again."""
    is_question = re.search("--list|--describe|get-offsets", call.text)
    for _ in range(_PATIENCE if is_question else 1):
        found = list(_differences(call, told, kafka.run_all([call])[0]))
        if not found:
            break
    return found


def _differences(call: Call, ours: Printed, theirs: Printed) -> Iterator[str]:
    if ours.exit_code != theirs.exit_code:
        yield f"{call.text}: ends with {ours.exit_code}, and Kafka's with {theirs.exit_code}"
    not_yet = re.findall(r"\t(\w+\(\d+\)): UNSUPPORTED", ours.out)  # of kafka-broker-api-versions
    for name, told, expected in [("stdout", ours.out, theirs.out), ("stderr", ours.err, theirs.err)]:
        our_lines, their_lines = (
            [line for line in _comparable(text) if not any(api in line for api in not_yet)] for text in (told, expected)
        )
        for line in our_lines:
            if line not in their_lines:
                yield f"{call.text}: only Octavo ({name}): {line}"
        for line in their_lines:
            if line not in our_lines:
                yield f"{call.text}: only Kafka ({name}): {line}"


def _comparable(text: str) -> list[str]:
    for pattern, name in _OWN:
        text = pattern.sub(name, text)
    return [_sorted(line) for line in text.splitlines()]


def _sorted(line: str) -> str:
    """A line of JSON with its lists in order: Java has sets in them."""
    if not line.startswith("{"):
        return line

    def walk(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: walk(node[key]) for key in sorted(node)}
        return sorted(map(walk, node), key=json.dumps) if isinstance(node, list) else node

    return json.dumps(walk(json.loads(line)))
