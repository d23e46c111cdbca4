"""All brokers of a cluster answer alike, whatever they are, and Kafka's tools work with each of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Producer

from octavo.broker.wire import api_keys as keys
from tests.cluster.network import Network
from tests.cluster.nodes import PATIENCE_S, Cluster, Kind, wait_until
from tests.cluster.questions import (
    Asking,
    Question,
    about_the_cluster,
    about_topics,
    differences,
    for_coordinators,
    that_change_nothing,
)

_ASK_AGAIN_S = 0.1
KAFKA, OTHER, THIRD = 1, 2, 3
OWN_SETTINGS = {
    "node.id",
    "broker.rack",
    "listeners",
    "advertised.listeners",
    "log.dirs",
    "replica.high.watermark.checkpoint.interval.ms",
    "socket.receive.buffer.bytes",
}
MYSELF = {"client_software_name": "me", "client_software_version": "1"}
ALL_TOPICS = Question(keys.METADATA, 12, {"topics": None})


def compare(cluster: Cluster, questions: Iterable[Question], kafka: int = KAFKA) -> list[str]:
    """How the answers of the other broker differ from those of Apache Kafka; both are asked again if metadata move."""
    ours, theirs = Asking(cluster.brokers[OTHER].address), Asking(cluster.brokers[kafka].address)
    found: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    for question in questions:
        while several := list(differences(ours.plain(question), theirs.plain(question))):
            if time.monotonic() > deadline:
                break
            time.sleep(_ASK_AGAIN_S)
        found += [f"{each}: {question}" for each in several]
    ours.close()
    theirs.close()
    return found


def expect_same(cluster: Cluster, questions: Iterable[Question]) -> None:
    found = compare(cluster, questions)
    assert not found, "\n".join([f"{len(found)} differences:", *found[:60]])


def ids(cluster: Cluster) -> dict[str, bytes]:
    """The topics of these tests, with their ids."""
    client = Asking(cluster.brokers[KAFKA].address)
    found = {each.name: each.topic_id for each in client.answer(ALL_TOPICS).topics if each.name.startswith("asked")}
    client.close()
    return found


def test_brokers_answer_alike(cluster: Cluster) -> None:
    cluster.create("asked", 3, config={"retention.ms": "86400000"})
    cluster.create("asked-elsewhere", 1, [KAFKA])
    cluster.await_in_sync("asked")
    expect_same(cluster, about_the_cluster())
    expect_same(cluster, about_topics(ids(cluster)))
    expect_same(cluster, that_change_nothing("asked"))


def test_changed_settings_of_all_brokers_are_shown_alike(cluster: Cluster) -> None:
    changed = {
        "leader.replication.throttled.rate": "1000000",
        "follower.replication.throttled.rate": "2000000",
        "log.cleaner.threads": "2",
        "log.cleaner.io.buffer.load.factor": "0.8",
        "log.retention.ms": "86400000",
        "of.nobody": "secret",
    }
    client = Asking(cluster.brokers[OTHER].address)

    def change(values: Mapping[str, str | None]) -> None:
        configs = [
            {"name": name, "config_operation": int(value is None), "value": value} for name, value in values.items()
        ]
        wanted = {"resources": [{"resource_type": 4, "resource_name": "", "configs": configs}], "validate_only": False}
        assert not client.answer(Question(keys.INCREMENTAL_ALTER_CONFIGS, 1, wanted)).responses[0].error_code

    everyone = {"resource_type": 4, "resource_name": "", "configuration_keys": None}
    shown = Question(keys.DESCRIBE_CONFIGS, 4, {"resources": [everyone], "include_synonyms": True})
    change(changed)
    try:
        wait_until(
            lambda: set(changed) <= {each.name for each in client.answer(shown).results[0].configs},
            "the settings are not known",
        )
        expect_same(cluster, [shown])
    finally:
        change(dict.fromkeys(changed))
        client.close()


def test_replicas_know_the_same_producers_and_sizes(cluster: Cluster) -> None:
    cluster.create("asked-producers", 3)
    producer = Producer({"bootstrap.servers": cluster.address, "enable.idempotence": True})
    for number in range(30):
        producer.produce("asked-producers", b"value", partition=number % 3)
    assert not producer.flush(30)
    numbers = [0, 1, 2, 99]
    named = [{"name": name, "partition_indexes": numbers} for name in ("asked-producers", "missing", "bad/name")]
    expect_same(cluster, [Question(keys.DESCRIBE_PRODUCERS, 0, {"topics": named})])
    wanted = Question(keys.DESCRIBE_LOG_DIRS, 4, {"topics": [{"topic": "asked-producers", "partitions": numbers}]})
    clients = [Asking(cluster.brokers[number].address) for number in (KAFKA, OTHER)]

    def has_same_sizes() -> bool:
        one, other = ([each["topics"] for each in client.plain(wanted)["results"]] for client in clients)
        return bool(one) and one == other

    wait_until(has_same_sizes, f"the sizes differ: {[client.plain(wanted) for client in clients]}")
    for each in clients:
        each.close()


def test_brokers_tell_the_same_of_the_settings_that_both_have(cluster: Cluster) -> None:
    told = []
    for number in (OTHER, KAFKA):
        client = Asking(cluster.brokers[number].address)
        resource = {"resource_type": 4, "resource_name": str(number), "configuration_keys": None}
        question = Question(keys.DESCRIBE_CONFIGS, 4, {"resources": [resource], "include_synonyms": True})
        [found] = client.plain(question)["results"]
        told.append({each["name"]: each for each in found["configs"]})
        client.close()
    ours, theirs = told
    assert {"replica.lag.time.max.ms", "process.roles", "default.replication.factor"} <= ours.keys()
    differing = {name for name in ours if ours[name] != theirs.get(name)}
    assert differing <= OWN_SETTINGS


def test_brokers_list_the_same_features_and_nothing_that_kafka_does_not_serve(cluster: Cluster) -> None:
    ours, theirs = Asking(cluster.brokers[OTHER].address), Asking(cluster.brokers[KAFKA].address)
    for version in (3, 4):
        question = Question(keys.API_VERSIONS, version, MYSELF)
        one, other = ours.plain(question), theirs.plain(question)
        served, known = ({each["api_key"]: each for each in told.pop("api_keys")} for told in (one, other))
        assert not list(differences(one, other))
        assert served == {key: known[key] for key in served}
    ours.close()
    theirs.close()


def test_brokers_answer_alike_while_one_is_gone(cluster: Cluster) -> None:
    cluster.create("asked-again", 3)
    cluster.create("asked-small", 1, [THIRD, OTHER])  # the broker that is gone can still be elected
    cluster.create("asked-gone", 1, [THIRD])
    cluster.brokers[THIRD].kill()
    clients = [Asking(cluster.brokers[number].address) for number in (KAFKA, OTHER)]

    def is_fenced() -> bool:
        return all(len(each.answer(ALL_TOPICS).brokers) == len(cluster.brokers) - 1 for each in clients)

    wait_until(is_fenced, "the broker that was killed is not fenced")
    wanted = {"topics": [{"name": "asked-small"}, {"name": "asked-gone"}], "response_partition_limit": 9}
    found = clients[1].answer(Question(keys.DESCRIBE_TOPIC_PARTITIONS, 0, {**wanted, "cursor": None})).topics
    assert [each.partitions[0].leader_id for each in found] == [-1, OTHER]
    assert found[1].partitions[0].eligible_leader_replicas == (THIRD,)
    expect_same(cluster, about_topics(ids(cluster)))
    expect_same(cluster, about_the_cluster())
    for each in clients:
        each.close()


@pytest.mark.soak(60)
def test_brokers_that_do_not_coordinate_say_the_same(java: str, other_network: Network, tmp_path: Path) -> None:
    kinds: dict[int, Kind] = {KAFKA: "kafka", OTHER: "octavo", THIRD: "kafka"}
    with Cluster(tmp_path / "cluster", other_network, kinds) as cluster:
        cluster.create("asked", 2)
        found = compare(cluster, for_coordinators("asked"), THIRD)
        assert not found, "\n".join([f"{len(found)} differences:", *found[:60]])
