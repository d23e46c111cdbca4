"""The partitions that the members of a group shall have: `compute_target`."""

from __future__ import annotations

from uuid import UUID

from octavo.coordinator.groups.consumer.assignors import ASSIGNORS
from octavo.coordinator.groups.consumer.assignors.assignor import Assignment, Subscriber, Wanted
from octavo.coordinator.groups.consumer.group import ConsumerGroup


def compute_target(group: ConsumerGroup, default_assignor: str) -> dict[str, Assignment]:
    """Assign partitions to all members, by the assignor that most of them want."""
    subscribers = [
        Subscriber(
            member_id, member.instance_id, group.topic_ids_of(member), group.targets.get(member_id, {})
        )
        for member_id, member in sorted(group.members.items())
    ]  # fmt: skip
    counts: dict[UUID, int] = {}
    for topic_id in {topic_id for each in subscribers for topic_id in each.topics}:
        topic = group.topics.by_id(topic_id)
        counts[topic_id] = 0 if topic is None else topic.partition_count
    assignor = ASSIGNORS.get(group.preferred_assignor() or default_assignor, ASSIGNORS["uniform"])
    return assignor(Wanted(subscribers, dict(sorted(counts.items())), group.is_homogeneous))
