"""What classic members say and are told, in the messages of the classic protocol."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from octavo.coordinator.groups.consumer.assignors.assignor import Assignment
from octavo.coordinator.groups.topics import Topics
from octavo.errors import FormatError, Unsupported
from octavo.schemas.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from octavo.schemas.entity import read_entity
from octavo.schemas.versioned import read_number, write_value

_VERSION_SIZE: Final = 2
_NEWEST: Final = 3


def version_of(message: bytes) -> int:
    """Return the version of a message, or the newest one that is known. Raises a `FormatError`."""
    version = read_number(message)
    if version < 0:
        raise Unsupported(0, f"a message cannot have version {version}")
    return min(version, _NEWEST)


def read_subscription(message: bytes) -> ConsumerProtocolSubscription:
    """Read what a member subscribes to. Raises a `FormatError`."""
    version = version_of(message)
    read, _ = read_entity(ConsumerProtocolSubscription, message, _VERSION_SIZE, version, flexible=False)
    return read


def read_assignment(message: bytes) -> ConsumerProtocolAssignment:
    """Read what a member was assigned. Raises a `FormatError`."""
    version = version_of(message)
    read, _ = read_entity(ConsumerProtocolAssignment, message, _VERSION_SIZE, version, flexible=False)
    return read


def write_assignment(partitions: Mapping[UUID, Collection[int]], topics: Topics, metadata: bytes) -> bytes:
    """Write what a member is assigned, in the version in which it tells its subscription."""
    by_name = [
        TopicPartition(topic=topic.name, partitions=tuple(sorted(numbers)))
        for topic_id, numbers in partitions.items()
        if (topic := topics.by_id(topic_id)) is not None
    ]
    by_name.sort(key=lambda each: each.topic)
    return write_value(ConsumerProtocolAssignment(assigned_partitions=tuple(by_name)), _safe_version(metadata))


def to_assignment(partitions: Collection[TopicPartition], topics: Topics) -> Assignment:
    """Return partitions by the ids of their topics, as far as these exist."""
    found: dict[UUID, frozenset[int]] = {}
    for each in partitions:
        topic = topics.by_name(each.topic)
        if topic is not None and each.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(each.partitions)
    return found


def _safe_version(metadata: bytes) -> int:
    try:
        return version_of(metadata)
    except FormatError:
        return 0
