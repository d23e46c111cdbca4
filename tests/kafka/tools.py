"""Kafka's command-line tools, run unmodified against any broker; many calls in one process.

    tools = Tools(judge, server.bootstrap_servers, tmp_path)      # the judge of a release with tools: `kafka_broker`
    printed = tools.run("topics --create --topic orders --partitions 3")
    assert printed == Printed(0, "Created topic orders.\n", "")

A call is what a user types after `kafka-`, without `--bootstrap-server`.
"""

from __future__ import annotations

import re
import shlex
from base64 import b64decode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.kafka.judge import Judge

_TOOLS: Final = "org.apache.kafka.tools"
_MAINS: Final = {
    "acls": f"{_TOOLS}.AclCommand",
    "broker-api-versions": f"{_TOOLS}.BrokerApiVersionsCommand",
    "client-metrics": f"{_TOOLS}.ClientMetricsCommand",
    "cluster": f"{_TOOLS}.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "console-producer": f"{_TOOLS}.ConsoleProducer",
    "delegation-tokens": f"{_TOOLS}.DelegationTokenCommand",
    "delete-records": f"{_TOOLS}.DeleteRecordsCommand",
    "features": f"{_TOOLS}.FeatureCommand",
    "get-offsets": f"{_TOOLS}.GetOffsetShell",
    "leader-election": f"{_TOOLS}.LeaderElectionCommand",
    "log-dirs": f"{_TOOLS}.LogDirsCommand",
    "metadata-quorum": f"{_TOOLS}.MetadataQuorumCommand",
    "producer-perf-test": f"{_TOOLS}.ProducerPerformance",
    "reassign-partitions": f"{_TOOLS}.reassign.ReassignPartitionsCommand",
    "replica-verification": f"{_TOOLS}.ReplicaVerificationTool",
    "topics": f"{_TOOLS}.TopicCommand",
    "transactions": f"{_TOOLS}.TransactionsCommand",
    "verifiable-producer": f"{_TOOLS}.VerifiableProducer",
}
_ADDRESS_LAST: Final = {"cluster"}  # whose options follow the subcommand
_ADDRESS_OPTIONS: Final = {"replica-verification": "--broker-list"}
_CALLS_A_QUESTION: Final = 20


class Call(NamedTuple):
    """What a user types, and what the tool reads from standard input."""

    text: str
    input: str = ""


class Printed(NamedTuple):
    """How a call ended."""

    exit_code: int
    out: str
    err: str


class Tools:
    """The tools, for one broker."""

    def __init__(self, judge: Judge, address: str, folder: Path) -> None:
        """folder: where `files` are written, whose names may stand in calls as `{name}`."""
        self._judge = judge
        self._address = address
        self._folder = folder

    def write(self, files: Mapping[str, str]) -> None:
        """Write files that calls name."""
        for name, text in files.items():
            (self._folder / name).write_text(text, "utf-8")

    def run(self, call: str, input: str = "") -> Printed:  # noqa: A002 - what it is
        """Run a tool once."""
        return self.run_all([Call(call, input)])[0]

    def run_all(self, calls: Sequence[Call]) -> list[Printed]:
        """Run tools one after the other."""
        told = []
        for start in range(0, len(calls), _CALLS_A_QUESTION):
            part = calls[start : start + _CALLS_A_QUESTION]
            told += self._judge.ask("tools", runs=[self._question(call) for call in part])
        return [Printed(each["exit"], _text(each["out"]), _text(each["err"])) for each in told]

    def _question(self, call: Call) -> Mapping[str, object]:
        tool, *options = shlex.split(re.sub(r"\{(\w+)\}", lambda name: str(self._folder / name[1]), call.text))
        address = [_ADDRESS_OPTIONS.get(tool, "--bootstrap-server"), self._address]
        arguments = [*options, *address] if tool in _ADDRESS_LAST else [*address, *options]
        return {"main": _MAINS[tool], "arguments": arguments, "input": call.input}


def _text(encoded: str) -> str:
    return b64decode(encoded).decode("utf-8")
