"""The replicas of a partition are the same, byte for byte, whichever broker leads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from octavo.log import DataDirectory, Isolation
from tests.cluster.moves import Mover
from tests.cluster.nodes import Cluster, Node, wait_until
from tests.cluster.replicas import expect_equal_replicas
from tests.cluster.writing import write_everything
from tests.history import Partition
from tests.kafka.java_clients import JavaClients
from tests.kafka.judge import Judge
from tests.spark import sessions


def test_replicas_are_equal_whichever_broker_leads(cluster: Cluster, kafka_broker: Judge, tmp_path: Path) -> None:
    """Each broker leads each partition once; then leadership moves back and forth."""
    cluster.create("equal", 3)
    partitions = [("equal", number) for number in range(3)]
    mover = Mover(cluster, kafka_broker, tmp_path)
    for turn in range(3):
        mover.elect({each: 1 + (each[1] + turn) % 3 for each in partitions})
        write_everything(cluster.address, kafka_broker, partitions, f"turn-{turn}")
        cluster.await_in_sync("equal")
        assert expect_equal_replicas(cluster, ["equal"]) > 50
    consumers = JavaClients(kafka_broker, cluster.address)
    before = [consumers.read(*each) for each in partitions]
    for turn in range(4):
        mover.elect(dict.fromkeys(partitions, 2 + turn % 2))
        assert [consumers.read(*each) for each in partitions] == before
    expect_equal_replicas(cluster, ["equal"])


@pytest.mark.soak(30)
def test_partitions_move_to_other_brokers_and_back(cluster: Cluster, kafka_broker: Judge, tmp_path: Path) -> None:
    cluster.create("moved", 2, [1, 2])
    partitions = [("moved", 0), ("moved", 1)]
    mover = Mover(cluster, kafka_broker, tmp_path)
    for replicas in ([2, 3], [3, 1], [1, 2, 3]):
        write_everything(cluster.address, kafka_broker, partitions, f"on-{replicas[0]}")
        mover.reassign(dict.fromkeys(partitions, replicas))
        cluster.await_in_sync("moved")
        assert cluster.leader("moved") in replicas
    assert expect_equal_replicas(cluster, ["moved"]) > 50


def latest(broker: Node, partition: Partition) -> dict[bytes, tuple[int, bytes | None]]:
    """Offset and value of the last record of each key that a broker has on its disk."""
    with DataDirectory.open(broker.data, read_only=True) as data:
        records = data.log(*partition).reader(isolation=Isolation.LOG_END).records()
        return {record.key or b"": (record.offset, record.value) for record in records}


def cleaned_to(broker: Node, partition: Partition) -> int:
    """The offset up to which a broker has compacted a partition."""
    path = broker.data / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    found = [line.split() for line in lines]
    return next((int(offset) for topic, number, offset in found if (topic, int(number)) == partition), 0)


def test_the_latest_record_of_each_key_is_the_same_after_compaction(
    cluster: Cluster, kafka_broker: Judge, tmp_path: Path
) -> None:
    """Every broker compacts by itself, and has the last values that it led and followed."""
    config = {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}
    cluster.create("compacted", 2, config=config)
    partitions = [("compacted", number) for number in range(2)]
    mover = Mover(cluster, kafka_broker, tmp_path)
    random = Random(18)
    with JavaClients(kafka_broker, cluster.address).producer(**{"compression.type": "lz4"}) as producer:

        def write() -> None:
            for topic, number in partitions:
                pairs = [(b"%d" % random.randrange(50), random.randbytes(30)) for _ in range(200)]
                producer.send_pairs(topic, number, [*pairs, (b"deleted", None)])

        for leader in (1, 2, 3):
            mover.elect(dict.fromkeys(partitions, leader))
            least = {each: cluster_end(cluster, each) for each in partitions}

            def have_cleaned(least: dict[Partition, int] = least) -> bool:
                write()
                return all(
                    cleaned_to(broker, each) > end for broker in cluster.brokers.values() for each, end in least.items()
                )

            wait_until(have_cleaned, "not all replicas are compacted")
    cluster.await_in_sync("compacted")
    for each in partitions:
        end = cluster_end(cluster, each)
        wait_until(
            lambda: all(last(broker, each) == end - 1 for broker in cluster.brokers.values()),  # noqa: B023 (called at once)
            "the replicas do not have the same end",
        )
        first, *others = [latest(broker, each) for broker in cluster.brokers.values()]
        assert len(first) >= 50
        assert all(other == first for other in others)


def cluster_end(cluster: Cluster, partition: Partition) -> int:
    """The end offset that the leader tells."""
    return last(cluster.brokers[cluster.leader(*partition)], partition) + 1


def last(broker: Node, partition: Partition) -> int:
    """The offset of the last record that a broker has on its disk."""
    return max((offset for offset, _ in latest(broker, partition).values()), default=-1)


def octavo(*arguments: str) -> str:
    """Run a command of Octavo, which has to succeed. Returns what it prints."""
    command = [sys.executable, "-m", "octavo.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.exhaustive
def test_every_replica_opens_with_the_tools_and_with_spark(cluster: Cluster, kafka_broker: Judge) -> None:
    """Also while the brokers run. What they find is the same for all replicas, and what consumers are given."""
    cluster.create("shown", 2)
    partitions = [("shown", 0), ("shown", 1)]
    write_everything(cluster.address, kafka_broker, partitions, "shown")
    expect_equal_replicas(cluster, ["shown"])
    dumps = set()
    for broker in cluster.brokers.values():
        octavo("verify", str(broker.data))
        dumps.add(octavo("dump", str(broker.data / "shown-0" / f"{0:020}.log")).replace(str(broker.data), ""))
    assert len(dumps) == 1
    assert dumps.pop().count("baseOffset") > 20
    consumers = JavaClients(kafka_broker, cluster.address)
    seen = [(each[1], record) for each in partitions for record in consumers.read(*each).records]
    expected = [[number, record.offset, (record.value or b"").decode()] for number, record in seen]
    assert read_with_spark("shown", [broker.data for broker in cluster.brokers.values()]) == [expected] * 3


def read_with_spark(topic: str, folders: Sequence[Path]) -> list[list[list[object]]]:
    """Read a topic in each directory, in a process of its own."""
    command = [sys.executable, "-m", "tests.cluster.reading_with_spark", topic, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=sessions.environment())
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
