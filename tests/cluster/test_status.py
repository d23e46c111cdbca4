"""`octavo cluster status` tells the same, whichever broker of a cluster is asked."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.cluster.nodes import Cluster, wait_until
from tests.server.commands import Commands

KAFKA, OTHER, THIRD = 1, 2, 3


def status(cluster: Cluster, folder: Path, broker: int, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code of the command, and what it printed."""
    told = Commands(cluster.brokers[broker].address, folder)("cluster", "status", "--json", *words)
    assert told.out, told.err
    return told.code, json.loads(told.out)


def test_replicas_that_lag_and_partitions_that_nobody_leads(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create("looked-at", 2)
    cluster.create("looked-at-in-vain", 1, [THIRD])
    topics = ("--topic", "looked-at", "--topic", "looked-at-in-vain")

    def is_well(broker: int) -> bool:
        return status(cluster, tmp_path, broker, *topics)[0] == 0

    for broker in (KAFKA, OTHER):
        wait_until(partial(is_well, broker), "the cluster is not well")
    cluster.brokers[THIRD].kill()

    def is_told(broker: int) -> bool:
        _, found = status(cluster, tmp_path, broker, *topics)
        states = [each["state"] for each in found["partitions"]]
        return bool(states == ["under-replicated", "under-replicated", "offline"])

    for broker in (KAFKA, OTHER):
        wait_until(partial(is_told, broker), "nobody misses the broker that was killed")
    producer = Producer({"bootstrap.servers": cluster.address, "acks": "all"})
    for number in range(10):
        producer.produce("looked-at", b"value", partition=number % 2)
    assert not producer.flush(30)
    for broker in (KAFKA, OTHER):
        code, found = status(cluster, tmp_path, broker, *topics)
        assert (code, found["isWell"]) == (1, False)
        assert [each["isActive"] for each in found["controllers"]] == [True]
        assert {each["id"]: each["state"] for each in found["brokers"]} == {
            KAFKA: "serves",
            OTHER: "serves",
            THIRD: "fenced",
        }
        for each in found["partitions"][:2]:
            assert each["lag"] == {str(KAFKA): 0, str(OTHER): 0, str(THIRD): None}
        assert found["partitions"][2]["leader"] is None
