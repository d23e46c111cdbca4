"""What handlers know of the cluster: `ClusterImage`, which is never changed but replaced.

Topics, partitions with their leaders, brokers, settings, quotas. A node that is alone makes it from its own metadata
log, a member of a cluster from that of the controllers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata import Topic
from octavo.log.metadata.image import Image, QuotaEntity
from octavo.log.metadata.sorted_map import SortedMap
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
    topics: SortedMap[str, TopicImage]  # by name
    by_id: SortedMap[bytes, TopicImage]
    alike: SortedMap[str, tuple[str, ...]]  # the names with "." or "_", by what they are if these are the same
    features: Mapping[str, int]
    configs: SortedMap[tuple[int, str], Mapping[str, str]]  # of resources, by type and name
    quotas: Mapping[QuotaEntity, Mapping[str, float]]
    credentials: Mapping[tuple[str, int], UserScramCredentialRecord]  # by user and mechanism
    source: SortedMap[str, Topic]  # the topics in the metadata

    def topic(self, key: str | bytes) -> TopicImage | None:
        """Return a topic by its name or by its id."""
        return self.topics.get(key) if isinstance(key, str) else self.by_id.get(key)


NO_LISTENER: Final = ListenerImage({}, {}, _UNKNOWN)


def topic_image(topic: Topic, before: TopicImage | None = None) -> TopicImage:
    """Return the image of a topic in the metadata. Partitions that are as they were in `before` are taken from it."""
    known = {} if before is None else before.source.partitions
    partitions = {
        number: before.partitions[number]
        if before is not None and known.get(number) is state
        else PartitionImage(
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
    """Return the image of a cluster of one. What is as it was in the image `before` is taken from it."""
    topics = directory.topics
    assert isinstance(topics, SortedMap)
    return ClusterImage(
        directory.cluster_id,
        {directory.node_id: Node(directory.node_id, "", 0)},
        {},
        *_topics(topics, before),
        directory.features,
        *_rest(directory.cluster),
        topics,
    )


def member_image(
    cluster: Image, cluster_id: str, before: ClusterImage | None, *, only_topics: bool = False
) -> ClusterImage:
    """Return the image of a cluster of several nodes.

    before: the image to take over what did not change from
    only_topics: nothing else has changed, neither brokers nor features nor settings of anything but topics
    """
    source = cluster.topics()
    topics, by_id, alike = _topics(source, before)
    is_same_quorum = before is not None and before.features.get(KRAFT_VERSION, 0) == cluster.kraft_version
    if before is not None and only_topics and is_same_quorum:
        return before._replace(topics=topics, by_id=by_id, alike=alike, configs=cluster.configs, source=source)
    features = dict(cluster.features)
    if cluster.kraft_version:
        features[KRAFT_VERSION] = cluster.kraft_version
    nodes = {each.broker_id: Node(each.broker_id, "", 0, each.rack, each.fenced) for each in _sorted(cluster.brokers)}
    listeners = _listeners(cluster.brokers)
    return ClusterImage(cluster_id, nodes, listeners, topics, by_id, alike, features, *_rest(cluster), source)


def _topics(
    source: SortedMap[str, Topic], before: ClusterImage | None
) -> tuple[SortedMap[str, TopicImage], SortedMap[bytes, TopicImage], SortedMap[str, tuple[str, ...]]]:
    """Return topics by name and by id, and names that are alike. Only topics that have changed are looked at."""
    if before is None:
        images = {name: topic_image(topic) for name, topic in source.items()}
        names: dict[str, list[str]] = {}
        for name in filter(can_collide, images):
            names.setdefault(collision_key(name), []).append(name)
        alike = SortedMap((key, tuple(several)) for key, several in names.items())
        return SortedMap(images.items()), SortedMap((each.id, each) for each in images.values()), alike
    topics, by_id, alike = before.topics, before.by_id, before.alike
    for name in source.changed_since(before.source):
        old, now = topics.get(name), source.get(name)
        if old is not None:
            by_id = by_id.without(old.id)
        if now is None:
            topics = topics.without(name)
        else:
            image = topic_image(now, old)
            topics, by_id = topics.with_item(name, image), by_id.with_item(image.id, image)
        if can_collide(name) and (old is None) is not (now is None):
            alike = _with_name(alike, name) if old is None else _without_name(alike, name)
    return topics, by_id, alike


def can_collide(name: str) -> bool:
    """Return whether there may be another name that differs only by "." and "_", which metrics do not tell apart."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return what is the same for all names that collide."""
    return name.replace(".", "_")


def _with_name(alike: SortedMap[str, tuple[str, ...]], name: str) -> SortedMap[str, tuple[str, ...]]:
    key = collision_key(name)
    return alike.with_item(key, tuple(sorted((*alike.get(key, ()), name))))


def _without_name(alike: SortedMap[str, tuple[str, ...]], name: str) -> SortedMap[str, tuple[str, ...]]:
    key = collision_key(name)
    left = tuple(each for each in alike.get(key, ()) if each != name)
    return alike.with_item(key, left) if left else alike.without(key)


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
    SortedMap[tuple[int, str], Mapping[str, str]],
    Mapping[QuotaEntity, Mapping[str, float]],
    Mapping[tuple[str, int], UserScramCredentialRecord],
]:
    """Return the settings, and copies of quotas and of credentials."""
    return (
        cluster.configs,
        {entity: dict(quotas) for entity, quotas in cluster.quotas.items()},
        dict(cluster.credentials),
    )
