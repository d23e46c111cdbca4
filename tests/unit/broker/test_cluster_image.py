"""The image of a cluster of several brokers: what changes is replaced, and clients see their listener's brokers."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from octavo.broker.cluster_image import LOST, MIGRATING, UNASSIGNED, ClusterImage, PartitionImage, member_image
from octavo.log.metadata.image import Image
from octavo.schemas.metadata.nodes import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
)
from octavo.schemas.metadata.topics import PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord

PLAIN = "PLAINTEXT"


def directory(number: int) -> UUID:
    return UUID(int=1000 + number)


def registered(number: int, *, listeners: tuple[str, ...] = (PLAIN,), fenced: bool = False) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=UUID(int=number),
        broker_epoch=number,
        end_points=tuple(
            BrokerEndpoint(name=name, host=f"{name.lower()}-{number}", port=9000 + number, security_protocol=0)
            for name in listeners
        ),
        features=(),
        rack=f"rack-{number}",
        fenced=fenced,
        log_dirs=(directory(number),),
    )


def partition(topic: int, number: int, replicas: tuple[int, ...]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=UUID(int=topic),
        replicas=replicas,
        isr=replicas,
        removing_replicas=(),
        adding_replicas=(),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(directory(each) for each in replicas),
    )


def cluster() -> Image:
    image = Image()
    for record in (
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        registered(2),
        registered(1, listeners=(PLAIN, "INSIDE")),
        TopicRecord(name="b", topic_id=UUID(int=50)),
        partition(50, 0, (1, 2)),
        TopicRecord(name="d", topic_id=UUID(int=51)),
        partition(51, 0, (2, 1)),
    ):
        image.replay(record)
    return image


def first(image: Image) -> ClusterImage:
    return member_image(image, "cluster", None)


def test_the_brokers_of_a_listener_have_its_addresses_and_their_racks() -> None:
    image = first(cluster())
    assert [(node.id, node.host, node.rack) for node in image.listeners[PLAIN].alive] == [
        (1, "plaintext-1", "rack-1"),
        (2, "plaintext-2", "rack-2"),
    ]
    assert list(image.listeners["INSIDE"].nodes) == [1]
    assert list(image.nodes) == [1, 2]


def test_topics_that_did_not_change_are_taken_over() -> None:
    source = cluster()
    before = first(source)
    source.replay(PartitionChangeRecord(partition_id=0, topic_id=UUID(int=51), leader=1))
    after = member_image(source, "cluster", before, only_topics=True)
    assert after.topics["b"] is before.topics["b"]
    assert after.topics["d"].partitions[0].leader == 1
    assert after.topics["d"].partitions[0].leader_epoch == 1
    assert before.topics["d"].partitions[0].leader == 2
    assert after.by_id[UUID(int=51).bytes] is after.topics["d"]
    assert after.listeners is before.listeners


def test_topics_come_go_and_come_back_with_another_id() -> None:
    source = cluster()
    before = first(source)
    for record in (
        RemoveTopicRecord(topic_id=UUID(int=50)),
        TopicRecord(name="b", topic_id=UUID(int=60)),
        partition(60, 0, (1,)),
        RemoveTopicRecord(topic_id=UUID(int=51)),
        TopicRecord(name="a", topic_id=UUID(int=61)),
        partition(61, 0, (1,)),
    ):
        source.replay(record)
    after = member_image(source, "cluster", before, only_topics=True)
    assert list(after.topics) == ["a", "b"]
    assert after.topics["b"].id == UUID(int=60).bytes
    assert set(after.by_id) == {UUID(int=60).bytes, UUID(int=61).bytes}
    assert after == first(source)


def test_names_that_collide_are_known_until_their_topics_are_gone() -> None:
    source = cluster()
    before = first(source)
    for number, name in enumerate(("a_b", "a.b", "c_d"), 60):
        source.replay(TopicRecord(name=name, topic_id=UUID(int=number)))
    after = member_image(source, "cluster", before, only_topics=True)
    assert after.alike == first(source).alike == {"a_b": ("a.b", "a_b"), "c_d": ("c_d",)}
    for number in (61, 62):
        source.replay(RemoveTopicRecord(topic_id=UUID(int=number)))
    assert member_image(source, "cluster", after, only_topics=True).alike == {"a_b": ("a_b",)}


def test_replicas_on_fenced_or_unknown_brokers_are_offline() -> None:
    source = cluster()
    source.replay(BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1))
    image = first(source)
    plain = image.listeners[PLAIN]
    assert [node.id for node in plain.alive] == [1]
    assert plain.nodes[2].is_fenced
    assert plain.offline_replicas(image.topics["b"].partitions[0]) == (2,)
    assert plain.offline_replicas(PartitionImage(0, 1, 0, (9, 1), (1,))) == (9,)
    assert image.listeners["INSIDE"].offline_replicas(image.topics["b"].partitions[0]) == (2,)


def test_replicas_in_directories_that_are_gone_are_offline() -> None:
    plain = first(cluster()).listeners[PLAIN]

    def offline(*directories: int) -> tuple[int, ...]:
        return plain.offline_replicas(PartitionImage(0, 1, 0, (1, 2), (1,), directories))

    assert offline(directory(1).int, directory(2).int) == ()
    assert offline(directory(7).int, directory(2).int) == (1,)
    assert offline(LOST, UNASSIGNED) == (1,)
    assert offline(MIGRATING, LOST) == (2,)
    assert offline() == ()


def test_directories_of_brokers_that_did_not_name_any_are_thought_to_be_there() -> None:
    source = cluster()
    source.replay(replace(registered(2), log_dirs=()))
    plain = first(source).listeners[PLAIN]
    assert plain.offline_replicas(PartitionImage(0, 1, 0, (1, 2), (1,), (directory(1).int, 77))) == ()
    assert plain.offline_replicas(PartitionImage(0, 1, 0, (1, 2), (1,), (directory(1).int, LOST))) == (2,)
