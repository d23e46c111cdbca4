"""What handlers know of the cluster: `ClusterImage`, which is never changed but replaced.

Topics, partitions with their leaders, brokers, settings, quotas. A node that is alone makes it from its own metadata
log; a member of a cluster will make it from the log of the controllers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from octavo.broker.config_resources import ResourceType
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata import Topic
from octavo.log.metadata.image import QuotaEntity
from octavo.log.names import CONSUMER_OFFSETS, TRANSACTION_STATE
from octavo.schemas.metadata.access import UserScramCredentialRecord

INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, "__share_group_state"})


class Node(NamedTuple):
    """A broker, and where clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None


class PartitionImage(NamedTuple):
    """The state of one partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicImage(NamedTuple):
    """A topic with its partitions, in the order of their numbers."""

    name: str
    id: bytes
    partitions: Mapping[int, PartitionImage]
    config: Mapping[str, str]
    source: Topic  # in the metadata

    @property
    def is_internal(self) -> bool:
        """Whether Kafka itself writes to the topic."""
        return self.name in INTERNAL_TOPICS


class ClusterImage(NamedTuple):
    """The cluster at one moment."""

    cluster_id: str
    controller_id: int
    nodes: Mapping[int, Node]
    topics: Mapping[str, TopicImage]  # by name, in the order of the names
    by_id: Mapping[bytes, TopicImage]
    features: Mapping[str, int]
    configs: Mapping[tuple[int, str], Mapping[str, str]]  # of resources other than topics, by type and name
    quotas: Mapping[QuotaEntity, Mapping[str, float]]
    credentials: Mapping[tuple[str, int], UserScramCredentialRecord]  # by user and mechanism

    def topic(self, key: str | bytes) -> TopicImage | None:
        """Return a topic by its name or by its id."""
        return self.topics.get(key) if isinstance(key, str) else self.by_id.get(key)


def topic_image(topic: Topic) -> TopicImage:
    """Return the image of a topic in the metadata."""
    partitions = {
        number: PartitionImage(number, state.leader, state.leader_epoch, tuple(state.replicas), tuple(state.isr))
        for number, state in topic.partitions.items()
    }
    return TopicImage(topic.name, topic.id.bytes, partitions, topic.config, topic)


def cluster_image(directory: DataDirectory, before: ClusterImage | None) -> ClusterImage:
    """Return the image of a cluster of one. Topics that are as they were in the image `before` are taken from it."""
    topics: dict[str, TopicImage] = {}
    for name, topic in directory.topics.items():
        known = None if before is None else before.topics.get(name)
        is_same = known is not None and known.source is topic
        topics[name] = known if known is not None and is_same else topic_image(topic)
    cluster = directory.cluster
    return ClusterImage(
        directory.cluster_id,
        directory.node_id,
        {directory.node_id: Node(directory.node_id, "", 0)},
        topics,
        {topic.id: topic for topic in topics.values()},
        directory.features,
        {key: dict(config) for key, config in cluster.configs.items() if key[0] != ResourceType.TOPIC},
        {entity: dict(quotas) for entity, quotas in cluster.quotas.items()},
        dict(cluster.credentials),
    )
