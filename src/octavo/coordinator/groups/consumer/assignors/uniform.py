"""The assignor "uniform": members get equally many partitions, and keep what they have where they can."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final
from uuid import UUID

from octavo.coordinator.groups.consumer.assignors.assignor import Assignment, Subscriber, Wanted

Partition = tuple[UUID, int]

_MOST_ROUNDS: Final = 16  # of levelling, as many as Kafka has


def assign(wanted: Wanted) -> dict[str, Assignment]:
    """Assign partitions."""
    subscribers = sorted(wanted.subscribers)
    kept = {each.member_id: _still_valid(each, wanted.partition_counts) for each in subscribers}
    _drop_doubles(kept)
    if wanted.is_homogeneous:
        _share_equally(kept, wanted.partition_counts)
    else:
        _level(kept, subscribers, wanted.partition_counts)
    return {member_id: _by_topic(partitions) for member_id, partitions in kept.items()}


def _still_valid(subscriber: Subscriber, counts: Mapping[UUID, int]) -> list[Partition]:
    """What a member may keep: partitions that exist, of topics that it subscribes to."""
    return [
        (topic, partition)
        for topic in sorted(subscriber.assigned)
        if topic in subscriber.topics
        for partition in sorted(subscriber.assigned[topic])
        if partition < counts[topic]
    ]


def _drop_doubles(kept: dict[str, list[Partition]]) -> None:
    """Let each partition have one owner, whatever the records say."""
    seen: set[Partition] = set()
    for partitions in kept.values():
        partitions[:] = [each for each in partitions if each not in seen]
        seen.update(partitions)


def _unassigned(kept: Mapping[str, list[Partition]], counts: Mapping[UUID, int]) -> list[Partition]:
    assigned = {each for partitions in kept.values() for each in partitions}
    everything = ((topic, partition) for topic in sorted(counts) for partition in range(counts[topic]))
    return [each for each in everything if each not in assigned]


def _by_topic(partitions: Iterable[Partition]) -> Assignment:
    topics: dict[UUID, set[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, set()).add(partition)
    return {topic: frozenset(numbers) for topic, numbers in topics.items()}


# --------------------------------------------------------------------------------- all subscribe to the same topics


def _share_equally(kept: dict[str, list[Partition]], counts: Mapping[UUID, int]) -> None:
    """Give every member its quota; some get one more, if possible those that have it already."""
    if not kept:
        return
    quota, extra = divmod(sum(counts.values()), len(kept))
    rooms: dict[str, int] = {}
    for number, (member_id, partitions) in enumerate(kept.items()):
        must_take = len(kept) - number <= extra  # only as many members are left as have to get one more
        takes_extra = extra > 0 and (len(partitions) > quota or must_take)
        extra -= takes_extra
        size = quota + takes_extra
        del partitions[size:]
        rooms[member_id] = size - len(partitions)
    free = iter(_unassigned(kept, counts))
    for member_id, room in rooms.items():
        kept[member_id] += islice(free, room)


# ------------------------------------------------------------------------------------------- subscriptions differ


def _level(kept: dict[str, list[Partition]], subscribers: list[Subscriber], counts: Mapping[UUID, int]) -> None:
    """Balance members as far as their subscriptions allow."""
    owned = {member_id: set(partitions) for member_id, partitions in kept.items()}
    takers = {topic: [each.member_id for each in subscribers if topic in each.topics] for topic in counts}
    topics = sorted(counts, key=lambda topic: (-counts[topic] / len(takers[topic]), len(takers[topic]), topic))
    free: dict[UUID, list[Partition]] = {}
    for each in _unassigned(kept, counts):
        free.setdefault(each[0], []).append(each)
    for topic in topics:
        lowest = _ByLoad(owned, takers[topic])
        for partition in free.get(topic, ()):
            taker = lowest.first()
            owned[taker].add(partition)
            lowest.note(taker)
    for _ in range(_MOST_ROUNDS):
        if not sum(_level_topic(owned, topic, takers[topic]) for topic in topics):
            break
    for member_id, partitions in owned.items():
        kept[member_id] = sorted(partitions)


def _level_topic(owned: dict[str, set[Partition]], topic: UUID, takers: list[str]) -> int:
    """Move partitions of a topic from members with many partitions to members with few. Returns how many."""
    movable = {member_id: sorted(each for each in owned[member_id] if each[0] == topic) for member_id in takers}
    givers = [member_id for member_id in takers if movable[member_id]]
    lowest, highest = _ByLoad(owned, takers), _ByLoad(owned, givers, most_first=True)
    moved = 0
    while givers:
        giver, taker = highest.first(), lowest.first()
        if len(owned[giver]) - len(owned[taker]) <= 1:
            break
        partition = movable[giver].pop()
        owned[giver].remove(partition)
        owned[taker].add(partition)
        moved += 1
        if not movable[giver]:
            givers.remove(giver)
            highest.drop(giver)
        for member_id in (giver, taker):
            lowest.note(member_id)
            highest.note(member_id)
    return moved


class _ByLoad:
    """Members in the order of how many partitions they have."""

    def __init__(self, owned: Mapping[str, set[Partition]], members: list[str], *, most_first: bool = False) -> None:
        self._owned = owned
        self._members = set(members)
        self._sign = -1 if most_first else 1
        self._heap = [self._entry(member_id) for member_id in members]
        heapify(self._heap)

    def first(self) -> str:
        """Return the member that has the fewest partitions, or the most."""
        while True:
            member_id = self._heap[0][1]
            if member_id in self._members and self._heap[0] == self._entry(member_id):
                return member_id
            heappop(self._heap)

    def note(self, member_id: str) -> None:
        """Note that a member has got or lost a partition."""
        if member_id in self._members:
            heappush(self._heap, self._entry(member_id))

    def drop(self, member_id: str) -> None:
        """Leave a member out from now on."""
        self._members.discard(member_id)

    def _entry(self, member_id: str) -> tuple[int, str]:
        return self._sign * len(self._owned[member_id]), member_id
