"""What handlers know of the cluster: `ClusterImage`, which is never changed but replaced.

Topics, partitions with their leaders, brokers, settings, quotas. A node that is alone makes it from its own metadata
log, a member of a cluster from that of the controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from uuid import UUID

from octavo.broker.config_resources import ResourceType
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata import Topic
from octavo.log.metadata.image import Image, QuotaEntity
from octavo.log.names import is_internal_topic
from octavo.schemas.metadata.access import UserScramCredentialRecord
from octavo.schemas.metadata.nodes import RegisterBrokerRecord

NO_LEADER: Final = -1
KRAFT_VERSION: Final = "kraft.version"
# Numbers that are no ids of directories: one that was never named, before there were ids; one that nobody has named
# yet; one that is gone, or has failed.
MIGRATING, UNASSIGNED, LOST = range(3)
_UNKNOWN: Final = frozenset({MIGRATING, UNASSIGNED})


class Node(NamedTuple):
    """A broker, and where clients reach it."""

    id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


class PartitionImage(NamedTuple):
    """The state of one partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[int, ...] = ()  # of the replicas, in their order: the ids as numbers, which are faster
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


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
        return is_internal_topic(self.name)


class ListenerImage(NamedTuple):
    """The brokers that have a certain listener, with its addresses. Clients know of no others."""

    nodes: Mapping[int, Node]
    online: Mapping[int, frozenset[int]]  # the directories of those that are not fenced; empty if they are not known
    known: frozenset[int] = frozenset()  # all these, and the numbers that say nothing; none if the node is alone

    @property
    def alive(self) -> list[Node]:
        """The brokers that are not fenced."""
        return [node for node in self.nodes.values() if not node.is_fenced]

    def offline_replicas(self, partition: PartitionImage) -> tuple[int, ...]:
        """Return the replicas of a partition whose broker is gone or fenced, or whose directory is."""
        directories = partition.directories or (UNASSIGNED,) * len(partition.replicas)
        if not self.known or (
            self.known.issuperset(directories) and self.online.keys() >= set(partition.replicas)  # nearly always
        ):
            return ()
        return tuple(
            replica
            for replica, directory in zip(partition.replicas, directories, strict=False)
            if self._is_offline(replica, directory)
        )

    def _is_offline(self, replica: int, directory: int) -> bool:
        online = self.online.get(replica)
        if online is None or directory == LOST:
            return True
        return bool(online) and directory not in _UNKNOWN and directory not in online


class ClusterImage(NamedTuple):
    """The cluster at one moment."""

    cluster_id: str
    nodes: Mapping[int, Node]  # all that are registered, without addresses
    listeners: Mapping[str, ListenerImage]  # by name; none in the image of a node that is alone
    topics: Mapping[str, TopicImage]  # by name, in the order of the names
    by_id: Mapping[bytes, TopicImage]
    features: Mapping[str, int]
    configs: Mapping[tuple[int, str], Mapping[str, str]]  # of resources other than topics, by type and name
    quotas: Mapping[QuotaEntity, Mapping[str, float]]
    credentials: Mapping[tuple[str, int], UserScramCredentialRecord]  # by user and mechanism

    def topic(self, key: str | bytes) -> TopicImage | None:
        """Return a topic by its name or by its id."""
        return self.topics.get(key) if isinstance(key, str) else self.by_id.get(key)


NO_LISTENER: Final = ListenerImage({}, {}, _UNKNOWN)


def topic_image(topic: Topic) -> TopicImage:
    """Return the image of a topic in the metadata."""
    partitions = {
        number: PartitionImage(
            number,
            state.leader,
            state.leader_epoch,
            tuple(state.replicas),
            tuple(state.isr),
            tuple([directory.int for directory in state.directories]),
            tuple(state.eligible_leader_replicas or ()),
            tuple(state.last_known_elr or ()),
        )
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
    return ClusterImage(
        directory.cluster_id,
        {directory.node_id: Node(directory.node_id, "", 0)},
        {},
        topics,
        {topic.id: topic for topic in topics.values()},
        directory.features,
        *_rest(directory.cluster),
    )


def member_image(
    cluster: Image,
    cluster_id: str,
    before: ClusterImage | None,
    changed: Iterable[UUID] | None = None,
    *,
    only_topics: bool = False,
) -> ClusterImage:
    """Return the image of a cluster of several nodes.

    before: the image to take over what did not change from
    changed: the topics that are not as they were in it, removed ones among them; None for all
    only_topics: nothing else has changed, neither brokers nor features nor settings of anything but topics
    """
    if before is None or changed is None:
        topics = {name: topic_image(topic) for name, topic in cluster.topics().items()}
        by_id = {topic.id: topic for topic in topics.values()}
    else:
        topics, by_id = _changed_topics(cluster, before, changed)
    is_same_quorum = before is not None and before.features.get(KRAFT_VERSION, 0) == cluster.kraft_version
    if before is not None and only_topics and is_same_quorum:
        return before._replace(topics=topics, by_id=by_id)
    features = dict(cluster.features)
    if cluster.kraft_version:
        features[KRAFT_VERSION] = cluster.kraft_version
    nodes = {each.broker_id: Node(each.broker_id, "", 0, each.rack, each.fenced) for each in _sorted(cluster.brokers)}
    return ClusterImage(cluster_id, nodes, _listeners(cluster.brokers), topics, by_id, features, *_rest(cluster))


def _changed_topics(
    cluster: Image, before: ClusterImage, changed: Iterable[UUID]
) -> tuple[dict[str, TopicImage], dict[bytes, TopicImage]]:
    topics, by_id = dict(before.topics), dict(before.by_id)
    is_sorted = True
    for topic_id in changed:
        old = by_id.pop(topic_id.bytes, None)
        found = cluster.topic(topic_id)
        if old is not None and topics.get(old.name) is old and (found is None or found.name != old.name):
            del topics[old.name]  # unless another topic has the name by now
        if found is not None:
            is_sorted = is_sorted and found.name in topics
            topics[found.name] = by_id[topic_id.bytes] = topic_image(found)
    return topics if is_sorted else dict(sorted(topics.items())), by_id


def _sorted(brokers: Mapping[int, RegisterBrokerRecord]) -> list[RegisterBrokerRecord]:
    return [brokers[number] for number in sorted(brokers)]


def _listeners(brokers: Mapping[int, RegisterBrokerRecord]) -> dict[str, ListenerImage]:
    nodes: dict[str, dict[int, Node]] = {}
    for each in _sorted(brokers):
        for place in each.end_points:
            node = Node(each.broker_id, place.host, place.port, each.rack, each.fenced)
            nodes.setdefault(place.name, {})[node.id] = node
    return {name: _listener(several, brokers) for name, several in nodes.items()}


def _listener(nodes: Mapping[int, Node], brokers: Mapping[int, RegisterBrokerRecord]) -> ListenerImage:
    online = {
        number: frozenset(directory.int for directory in brokers[number].log_dirs)
        for number, node in nodes.items()
        if not node.is_fenced
    }
    return ListenerImage(nodes, online, _UNKNOWN.union(*online.values()))


def _rest(
    cluster: Image,
) -> tuple[
    Mapping[tuple[int, str], Mapping[str, str]],
    Mapping[QuotaEntity, Mapping[str, float]],
    Mapping[tuple[str, int], UserScramCredentialRecord],
]:
    """Return copies of the settings of everything but topics, of quotas and of credentials."""
    return (
        {key: dict(config) for key, config in cluster.configs.items() if key[0] != ResourceType.TOPIC},
        {entity: dict(quotas) for entity, quotas in cluster.quotas.items()},
        dict(cluster.credentials),
    )
