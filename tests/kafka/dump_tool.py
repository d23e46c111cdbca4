"""Kafka's `kafka-dump-log` and ours side by side: the same arguments, and what both print."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from octavo.inspect.kafka_text import RecordDecoder, TextOptions, print_files
from tests.kafka.judge import Judge

_TOOL: Final = "org.apache.kafka.tools.DumpLogSegments"
_RUNS_A_QUESTION: Final = 200
# What cannot be the same: where in Java's source an exception comes from, and the identities of Java's objects.
_FRAMES: Final = re.compile(rb"^\t(at .*|\.\.\. \d+ more)\n", re.MULTILINE)
_IDENTITIES: Final = re.compile(rb"(FileChannelImpl|\[B)@[0-9a-f]+")
_NO_MEMORY: Final = b"OutOfMemoryError"
_FLAGS: Final = {
    "--print-data-log",
    "--deep-iteration",
    "--skip-record-metadata",
    "--verify-index-only",
    "--index-sanity-check",
}
_NUMBERS: Final = {"--max-bytes", "--max-message-size"}
_CLASSES: Final = {"--key-decoder-class", "--value-decoder-class"}


class Run(NamedTuple):
    """One call of the tool."""

    files: Sequence[str]
    options: Sequence[str] = ()


class Printed(NamedTuple):
    """What a run prints."""

    out: bytes
    err: bytes


def ask_kafka(judge: Judge, runs: Sequence[Run]) -> list[tuple[Printed, int]]:
    """What Kafka's tool prints in each run, without what can never be the same, and its exit code."""
    answers = []
    for start in range(0, len(runs), _RUNS_A_QUESTION):
        part = runs[start : start + _RUNS_A_QUESTION]
        asked = [{"main": _TOOL, "arguments": ["--files", ",".join(run.files), *run.options]} for run in part]
        answers += judge.ask("tools", runs=asked)
    return [(Printed(_same(answer["out"]), _same(answer["err"])), answer["exit"]) for answer in answers]


def ask_octavo(run: Run) -> tuple[Printed, bool]:
    """What is printed here, and whether damage was met."""
    out, err = io.BytesIO(), io.BytesIO()
    is_damaged = print_files(run.files, text_options(run.options), out, err)
    return Printed(out.getvalue(), err.getvalue()), is_damaged


def text_options(arguments: Iterable[str]) -> TextOptions:
    """The options as the command would parse them."""
    parsed: dict[str, Any] = {}
    decoders = []
    left = iter(arguments)
    for argument in left:
        name = argument.removeprefix("--").replace("-", "_")
        if argument in _FLAGS:
            parsed[name] = True
        elif argument in _NUMBERS:
            parsed[name] = int(next(left))
        elif argument in _CLASSES:
            parsed[name] = next(left)
        else:
            decoders.append(RecordDecoder(argument.removeprefix("--")))
    return TextOptions(decoders=decoders, **parsed)


def differences(judge: Judge, runs: Sequence[Run]) -> list[str]:
    """The runs in which the two do not print the same, described. Ours comes first: Kafka's tool trims indexes."""
    ours = [ask_octavo(run) for run in runs]
    found = []
    for run, (printed, is_damaged), (expected, exit_code) in zip(runs, ours, ask_kafka(judge, runs), strict=True):
        if any(_NO_MEMORY in each.err for each in (printed, expected)):
            continue  # how much there is depends on the process
        if printed != expected:
            found.append(f"{run}:\n{_first_difference(printed, expected)}")
        elif exit_code and not is_damaged:
            found.append(f"{run}: Kafka ends with {exit_code}, and no damage was noted")
    return found


def _first_difference(printed: Printed, expected: Printed) -> str:
    lines = []
    for name, ours, theirs in zip(Printed._fields, printed, expected, strict=True):
        for number, (our_line, their_line) in enumerate(zip(ours.split(b"\n"), theirs.split(b"\n"), strict=False)):
            if our_line != their_line:
                lines.append(f"  {name}, line {number}:\n    octavo {our_line!r}\n    kafka  {their_line!r}")
                break
        else:
            if ours != theirs:
                lines.append(f"  {name}: {len(ours)} bytes, and {len(theirs)} of Kafka")
    return "\n".join(lines)


def _same(text: str) -> bytes:
    return _IDENTITIES.sub(rb"\1@0", _FRAMES.sub(b"", b64decode(text)))
