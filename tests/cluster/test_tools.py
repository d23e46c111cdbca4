"""Kafka's tools and clients, in a cluster whose brokers are all of Octavo: whatever they ask, Octavo answers."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from octavo.broker.wire import api_keys as keys
from octavo.errors import ErrorCode
from tests.cluster.network import Network
from tests.cluster.nodes import Cluster, wait_until
from tests.cluster.questions import Asking, Question
from tests.kafka.judge import Judge
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.kafka.tools import Tools

FIRST, SECOND = 1, 2
_PATIENCE_S: Final = 60
_PLAN: Final = {
    "version": 1,
    "partitions": [
        {"topic": "orders", "partition": 0, "replicas": [SECOND]},
        {"topic": "orders", "partition": 1, "replicas": [FIRST, SECOND]},
    ],
}
_FILES: Final = {"plan": json.dumps(_PLAN), "moved": json.dumps({"topics": [{"topic": "orders"}], "version": 1})}
# What is typed, its input, how it ends, and what it prints, as regular expressions. They build on one another.
_CALLS: Final = (
    ("topics --create --topic orders --partitions 3 --replication-factor 2", "", 0, "Created topic orders"),
    ("topics --create --topic orders", "", 1, "Topic 'orders' already exists"),
    ("topics --describe --topic orders", "", 0, r"Partition: 2\tLeader: [12]\tReplicas: [12],[12]\tIsr: [12],[12]\t"),
    ("topics --alter --topic orders --partitions 4", "", 0, ""),
    ("topics --describe --topic orders", "", 0, "PartitionCount: 4\tReplicationFactor: 2"),
    ("metadata-quorum describe --status", "", 0, r"LeaderId: +101\n(?s:.*)CurrentObservers: +(.*\"id\": [12]){2}"),
    ("metadata-quorum describe --replication", "", 0, r"^101 .*Leader\s+([12] .*Observer\s+){2}\Z"),
    ("features describe", "", 0, r"metadata.version .*SupportedMaxVersion: 4\.3-IV0\s+FinalizedVersionLevel: 4\.3-IV0"),
    ("features upgrade --feature metadata.version=29", "", 1, "Can't downgrade the version of this feature"),
    ("broker-api-versions", "", 0, r"id: 1 (?s:.*)Fetch\(1\): 4 to 18 (?s:.*)UnregisterBroker\(64\): 0 \[usable: 0\]"),
    ("console-producer --topic orders", "a\nb\nc\n", 0, ""),
    ("console-producer --topic auto", "a\n", 0, ""),
    ("topics --describe --topic auto", "", 0, "PartitionCount: 2\tReplicationFactor: 2"),
    ("get-offsets --topic orders", "", 0, "orders:[0-3]:3"),
    ("log-dirs --describe --topic-list orders", "", 0, r'"partition":"orders-0","size":\d+,"offsetLag":0,"isFuture"'),
    ("configs --alter --entity-type topics --entity-name orders --add-config retention.ms=3600000", "", 0, "Completed"),
    ("configs --describe --entity-type topics --entity-name orders", "", 0, "retention.ms=3600000 sensitive=false"),
    (
        "configs --alter --entity-type brokers --entity-default --add-config log.retention.ms=7200000",
        "",
        0,
        "Completed",
    ),
    ("configs --describe --entity-type brokers --entity-default", "", 0, "log.retention.ms=7200000 sensitive=false"),
    ("configs --alter --entity-type brokers --entity-name 2 --add-config node.id=3", "", 1, ""),
    ("configs --alter --entity-type users --entity-name u --add-config producer_byte_rate=1024", "", 0, "Completed"),
    ("configs --describe --entity-type users --entity-name u", "", 0, "'u' are producer_byte_rate=1024.0"),
    (
        "reassign-partitions --execute --reassignment-json-file {plan} --throttle 100000000",
        "",
        0,
        "Successfully started",
    ),
    (
        "reassign-partitions --verify --reassignment-json-file {plan}",
        "",
        0,
        "orders-0 is completed(?s:.*)orders-1 is",
    ),
    ("leader-election --election-type preferred --topic orders --partition 1", "", 0, "orders-1"),
    (
        "topics --describe --topic orders",
        "",
        0,
        r"0\tLeader: 2\tReplicas: 2\t(?s:.*)Partition: 1\tLeader: 1\t",
    ),
    ("cluster list-endpoints", "", 0, r"1 .*unfenced +broker.*\n2 .*unfenced +broker"),
    ("cluster unregister --id 99", "", 1, "Broker ID 99 is not currently registered"),
    ("transactions describe-producers --topic orders --partition 0", "", 0, "ProducerId"),
    ("topics --delete --topic orders", "", 0, ""),
    ("topics --list", "", 0, r"\A(?!.*^orders$)(?s:.*)auto"),
)


@pytest.fixture(scope="module")
def octavo_cluster(java: str, other_network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"default.replication.factor": "2", "num.partitions": "2"}
    try:
        made = Cluster(
            tmp_path_factory.mktemp("tools"), other_network, {FIRST: "octavo", SECOND: "octavo"}, settings=settings
        )
    except KafkaUnavailable as reason:
        do_without(reason)
    with made as cluster:
        yield cluster


def test_tools_work_with_octavo(octavo_cluster: Cluster, kafka_broker: Judge, tmp_path: Path) -> None:
    tools = Tools(kafka_broker, octavo_cluster.brokers[SECOND].address, tmp_path)
    tools.write(_FILES)
    for call, given, code, expected in _CALLS:
        deadline = time.monotonic() + (_PATIENCE_S if re.search("describe|list|verify|offsets|election", call) else 0)
        while True:  # what was changed may not have come to all brokers yet
            printed = tools.run(call, given)
            is_so = printed.exit_code == code and re.search(expected, printed.out + printed.err, re.MULTILINE)
            if is_so or time.monotonic() > deadline:
                break
        assert is_so, f"{call}: {printed}"


def test_internal_topics_are_created_as_kafka_does_it(octavo_cluster: Cluster) -> None:
    """The broker of this cluster that is asked has Kafka's settings for them, but for what the tests set."""
    octavo_cluster.admin.delete_topics(["__transaction_state"])["__transaction_state"].result(_PATIENCE_S)
    client = Asking(octavo_cluster.brokers[SECOND].address)
    all_topics = Question(keys.METADATA, 12, {"topics": None})
    wait_until(
        lambda: "__transaction_state" not in [each.name for each in client.answer(all_topics).topics],
        "the topic is not deleted",
    )
    question = Question(keys.FIND_COORDINATOR, 4, {"key_type": 1, "coordinator_keys": ["some"]})
    assert client.answer(question).coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    wait_until(lambda: not client.answer(question).coordinators[0].error_code, "the coordinator was not found")
    resource = {"resource_type": 2, "resource_name": "__transaction_state", "configuration_keys": None}
    [found] = client.answer(Question(keys.DESCRIBE_CONFIGS, 4, {"resources": [resource]})).results
    assert {each.name: each.value for each in found.configs if each.config_source == 1} == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
    client.close()


def test_producer_ids_are_handed_out_once(octavo_cluster: Cluster) -> None:
    given = [each for broker in octavo_cluster.brokers.values() for each in producer_ids(broker.address, 1500)]
    assert len(set(given)) == len(given)


def producer_ids(address: str, count: int) -> list[int]:
    """Have a broker give so many producer ids, of more than one block."""
    content = {"transactional_id": None, "transaction_timeout_ms": 1, "producer_id": -1, "producer_epoch": -1}
    question = Question(keys.INIT_PRODUCER_ID, 4, content)
    client, given = Asking(address), list[int]()

    def take() -> bool:
        while len(given) < count:
            answer = client.answer(question)
            if answer.error_code:
                assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                return False
            given.append(answer.producer_id)
        return True

    wait_until(take, "there are no more producer ids")
    client.close()
    return given
