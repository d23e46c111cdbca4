"""The assignor "range": each topic's partitions in consecutive ranges.

Members get ranges in the same order for each topic, so that topics with equally many partitions are assigned alike.
"""

from __future__ import annotations

from uuid import UUID

from octavo.coordinator.groups.consumer.assignors.assignor import Assignment, Subscriber, Wanted


def assign(wanted: Wanted) -> dict[str, Assignment]:
    """Assign partitions, whatever members had before."""
    subscribers = sorted(wanted.subscribers, key=_order)
    assigned: dict[str, dict[UUID, frozenset[int]]] = {each.member_id: {} for each in subscribers}
    for topic, count in wanted.partition_counts.items():
        takers = [each.member_id for each in subscribers if topic in each.topics]
        start = 0
        for number, member_id in enumerate(takers):
            size = count // len(takers) + (number < count % len(takers))
            if size:
                assigned[member_id][topic] = frozenset(range(start, start + size))
            start += size
    return dict(assigned)


def _order(subscriber: Subscriber) -> tuple[bool, str]:
    """Static members come first."""
    is_dynamic = subscriber.instance_id is None
    return is_dynamic, subscriber.member_id if subscriber.instance_id is None else subscriber.instance_id
