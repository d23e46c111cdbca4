"""What the commands for a broker are asked to do, of Octavo's broker and of Apache Kafka."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.cli import main

_SETTINGS: Final = re.compile(r"Configs: \S*retention.ms=3600000\S*")  # Kafka adds some of its own
_TOPIC_ID: Final = re.compile(r"TopicId: [A-Za-z0-9_-]{22}")


class Told(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class Commands:
    """Runs the commands in this process, for one broker."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self._folder = folder

    def __call__(self, *words: str, given: str | bytes = "", timeout_s: float = 30) -> Told:
        """Run a command with something on its standard input."""
        source = self._folder / "input"
        source.write_bytes(given if isinstance(given, bytes) else given.encode())
        out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
        with _standard_input(source), redirect_stdout(out), redirect_stderr(err):
            code = main([words[0], "-b", self.address, "--timeout", str(timeout_s), *words[1:]])
        out.flush()
        return Told(code, out.buffer.getvalue().decode(), err.getvalue())


@contextmanager
def _standard_input(source: Path) -> Iterator[None]:
    before = sys.stdin
    with source.open() as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before


def topics_come_and_go(run: Commands) -> None:
    """Create, list, describe, change and delete topics."""
    assert run("topics", "--create", "--topic", "plays", "--partitions", "2", "--config", "retention.ms=3600000") == (
        0,
        "Created topic plays.\n",
        "",
    )
    again = run("topics", "--create", "--topic", "plays")
    assert (again.code, again.err) == (2, "octavo: topic plays: Topic 'plays' already exists.\n")
    assert run("topics", "--create", "--topic", "plays", "--if-not-exists").code == 0
    assert run("topics", "--list", "--exclude-internal").out.splitlines() == ["plays"]
    assert run("topics", "--alter", "--topic", "plays", "--partitions", "3").code == 0
    described = run("topics", "--describe", "--topic", "plays").out
    assert _TOPIC_ID.sub("TopicId: ID", described).splitlines() == [
        "Topic: plays\tTopicId: ID\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: "
        + next(each for each in described.split("\t") if each.startswith("Configs: ")).splitlines()[0][9:],
        *(
            f"\tTopic: plays\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
            for number in range(3)
        ),
    ]
    assert "retention.ms=3600000" in described
    assert run("topics", "--alter", "--topic", "plays", "--partitions", "1").code == 2
    assert run("topics", "--create", "--topic", "no/name").code == 2
    assert run("topics", "--create", "--topic", "wrong", "--config", "retention.ms=soon").code == 2
    assert run("topics", "--delete", "--topic", "plays") == (0, "", "")
    assert run("topics", "--describe", "--topic", "plays") == (2, "", "octavo: there is no topic plays\n")
    assert run("topics", "--delete", "--topic", "plays").code == 2
    assert run("topics", "--delete", "--topic", "plays", "--if-exists").code == 0


def lines_come_back(run: Commands) -> None:
    """Send lines in every form, and read them in every form."""
    run("topics", "--create", "--topic", "lines", "--partitions", "3")
    told = run("produce", "lines", "-K", ":", "-Z", "-H", "a=1", "-H", "b", "-z", "zstd", given="k:v\nn:\n:x\nplain\n")
    assert told == (0, "", "octavo: 4 records sent to lines\n")
    found = records(run, "lines")
    assert sorted((each["key"] or "", each["value"] or "") for each in found) == [
        ("", "plain"),
        ("", "x"),
        ("k", "v"),
        ("n", ""),
    ]
    assert [each["value"] for each in found if each["key"] == "n"] == [None]
    assert all(each["headers"] == [["a", "1"], ["b", None]] for each in found)
    assert all(each["timestampType"] == "CreateTime" and each["timestamp"] > 0 for each in found)
    (keyed,) = (each for each in found if each["key"] == "k")
    shown = run(
        "consume", "lines", "-e", "-q", "-Z", "-f", r"%t %p %o %k %K %s %S %h %T%%\n", "-p", str(keyed["partition"])
    )
    assert (
        f"lines {keyed['partition']} {keyed['offset']} k 1 v 1 a=1,b=NULL {keyed['timestamp']}%"
        in shown.out.splitlines()
    )


def copies_are_alike(run: Commands) -> None:
    """What is consumed as JSON can be produced again."""
    run("topics", "--create", "--topic", "first", "--partitions", "2")
    run("topics", "--create", "--topic", "second", "--partitions", "2")
    run("produce", "first", "-D", ";", "-K", "=", given=b"a=\xff\x00;b=\xc3\xbc;c=;{}")
    lines = run("consume", "first", "-e", "-q", "--json").out
    assert run("produce", "second", "--json", "--keep-partitions", "-q", given=lines) == (0, "", "")
    first, second = ([{**each, "topic": ""} for each in records(run, topic)] for topic in ("first", "second"))
    assert first == second
    assert {"hex": "ff00"} in [each["value"] for each in first]


def places_are_found(run: Commands) -> None:
    """Begin at offsets and times, and end."""
    run("topics", "--create", "--topic", "places", "--partitions", "1")
    lines = "".join(json.dumps({"value": str(number), "timestamp": 1000 + number}) + "\n" for number in range(10))
    assert run("produce", "places", "--json", given=lines).code == 0

    def values(*words: str) -> str:
        return run("consume", "places", "-e", "-q", *words).out.replace("\n", "")

    assert values() == "0123456789"
    assert values("-o", "7") == "789"
    assert values("-o", "-2") == "89"
    assert values("-o", "end") == ""
    assert values("-o", "s@1004") == "456789"
    assert values("-o", "s@1004", "-o", "e@1006") == "45"
    assert values("-o", "s@1970-01-01T00:00:01.008") == "89"
    assert values("-c", "3") == "012"
    assert values("-D", ",") == "0,1,2,3,4,5,6,7,8,9,"
    assert (
        run("consume", "places", "-e", "-o", "11").err
        == "octavo: partition 0 of topic places does not have offset 11\n"
    )
    ends = run("consume", "places", "-e")
    assert ends.err == "octavo: reached the end of partition 0 of places, at offset 10\n"


def many_are_sent(run: Commands) -> None:
    """Send more than fits into one batch, to many partitions."""
    run("topics", "--create", "--topic", "many", "--partitions", "5")
    numbers = [str(number) for number in range(30_000)]
    given = "".join(f"{number}|{number}-{'x' * 50}\n" for number in numbers)
    assert run("produce", "many", "-K", "|", "-z", "lz4", given=given).err == "octavo: 30000 records sent to many\n"
    shown = run("consume", "many", "-e", "-q", "-f", r"%k\n").out
    assert sorted(shown.split(), key=int) == numbers


def mistakes_are_told(run: Commands) -> None:
    """Errors are one sentence."""
    assert run("consume", "nothing") == (2, "", "octavo: there is no topic nothing\n")
    run("topics", "--create", "--topic", "few", "--partitions", "1")
    assert run("consume", "few", "-p", "4").err == "octavo: topic few has no partition 4\n"
    assert "topic few has no partition 4" in run("produce", "few", "-p", "4", given="x\n").err
    assert "line 2 is no record in JSON" in run("produce", "few", "--json", given='{"value": "1"}\n[]\n').err
    assert run("consume", "few", "-o", "soon").code == 2
    assert run("consume", "few", "-f", "%q").err == "octavo: -f: there is no %q\n"
    assert run("produce", "few", "-l", os.devnull + "/no").code == 2


def records(run: Commands, topic: str) -> list[dict[str, Any]]:
    """All records of a topic, as the command prints them."""
    return [json.loads(line) for line in run("consume", topic, "-e", "-q", "--json").out.splitlines()]


SCENES: Final = (
    topics_come_and_go,
    lines_come_back,
    copies_are_alike,
    places_are_found,
    many_are_sent,
    mistakes_are_told,
)
