"""`octavo cluster status`, on a broker that is alone; tests/cluster asks members of a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.server.serving import serve
from tests.server.commands import Commands


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with serve() as server:
        commands = Commands(server.bootstrap_servers, tmp_path_factory.mktemp("commands"))
        assert commands("topics", "--create", "--topic", "plays", "--partitions", "2").code == 0
        yield commands


def test_a_broker_alone_is_well(run: Commands) -> None:
    assert run("produce", "plays", given="one\ntwo\n").code == 0
    told = run("cluster", "status", "--json")
    status = json.loads(told.out)
    assert (told.code, status["isWell"]) == (0, True)
    (broker,) = status["brokers"]
    assert (broker["id"], broker["address"], broker["state"]) == (1, run.address, "serves")
    assert (broker["leads"], broker["replicas"], broker["lag"]) == (2, 2, 0)
    assert [each["id"] for each in status["controllers"] if each["isActive"]] == [1]
    assert [(each["partition"], each["leader"], each["lag"], each["state"]) for each in status["partitions"]] == [
        (0, 1, {"1": 0}, "in sync"),
        (1, 1, {"1": 0}, "in sync"),
    ]


def test_partitions_in_sync_are_listed_on_demand(run: Commands) -> None:
    assert "plays" not in run("cluster", "status").out
    told = run("cluster", "status", "--all", "--topic", "plays")
    assert sum(line.startswith("plays ") for line in told.out.splitlines()) == 2
    assert "2 partitions: 0 under-replicated, 0 offline; 1 brokers: 0 fenced, 0 without an answer" in told.out


def test_a_missing_topic_is_an_error_and_not_asked_for_again(run: Commands) -> None:
    told = run("cluster", "status", "--topic", "nowhere")
    assert (told.code, told.out) == (2, "")
    assert told.err == "octavo: topic nowhere: UNKNOWN_TOPIC_OR_PARTITION\n"


def test_nobody_answers(tmp_path: Path) -> None:
    told = Commands("127.0.0.1:1", tmp_path)("cluster", "status", timeout_s=1)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith("octavo: ")
