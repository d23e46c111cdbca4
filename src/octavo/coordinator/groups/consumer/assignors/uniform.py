"""The assignor "uniform": members get equally many partitions, and keep what they have where they can.

Topics have numbers here, in the order of their ids: those can be compared and looked up much faster than the ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import Final
from uuid import UUID

from octavo.coordinator.groups.consumer.assignors.assignor import Assignment, Subscriber, Wanted

Partition = tuple[int, int]  # the number of a topic, and of its partition

_MOST_ROUNDS: Final = 16  # of levelling, as many as Kafka has


def assign(wanted: Wanted) -> dict[str, Assignment]:
    """Assign partitions."""
    subscribers = sorted(wanted.subscribers)
    topics = sorted(wanted.partition_counts)
    numbers = {topic: number for number, topic in enumerate(topics)}
    counts = [wanted.partition_counts[topic] for topic in topics]
    kept = {each.member_id: _still_valid(each, numbers, counts) for each in subscribers}
    _drop_doubles(kept)
    if wanted.is_homogeneous:
        _share_equally(kept, counts)
    else:
        takers = [[each.member_id for each in subscribers if topic in each.topics] for topic in topics]
        _level(kept, takers, counts)
    return {member_id: _by_topic(partitions, topics) for member_id, partitions in kept.items()}


def _still_valid(subscriber: Subscriber, numbers: Mapping[UUID, int], counts: Sequence[int]) -> list[Partition]:
    """What a member may keep: partitions that exist, of topics that it subscribes to."""
    valid = []
    for topic, partitions in subscriber.assigned.items():
        if topic in subscriber.topics:
            number = numbers[topic]
            valid += [(number, partition) for partition in partitions if partition < counts[number]]
    valid.sort()
    return valid


def _drop_doubles(kept: dict[str, list[Partition]]) -> None:
    """Let each partition have one owner, whatever the records say."""
    everything = list(chain.from_iterable(kept.values()))
    seen: set[Partition] = set(everything)
    if len(seen) == len(everything):
        return
    seen.clear()
    for partitions in kept.values():
        partitions[:] = [each for each in partitions if each not in seen]
        seen.update(partitions)


def _unassigned(kept: Mapping[str, list[Partition]], counts: Sequence[int]) -> list[Partition]:
    assigned = set(chain.from_iterable(kept.values()))
    everything = ((topic, partition) for topic, count in enumerate(counts) for partition in range(count))
    return [each for each in everything if each not in assigned]


def _by_topic(partitions: Iterable[Partition], topics: Sequence[UUID]) -> Assignment:
    found: dict[int, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return {topics[topic]: frozenset(numbers) for topic, numbers in found.items()}


# --------------------------------------------------------------------------------- all subscribe to the same topics


def _share_equally(kept: dict[str, list[Partition]], counts: Sequence[int]) -> None:
    """Give every member its quota; some get one more, if possible those that have it already."""
    if not kept:
        return
    quota, extra = divmod(sum(counts), len(kept))
    rooms: dict[str, int] = {}
    for number, (member_id, partitions) in enumerate(kept.items()):
        must_take = len(kept) - number <= extra  # only as many members are left as have to get one more
        takes_extra = extra > 0 and (len(partitions) > quota or must_take)
        extra -= takes_extra
        size = quota + takes_extra
        del partitions[size:]
        if size > len(partitions):
            rooms[member_id] = size - len(partitions)
    free = iter(_unassigned(kept, counts))
    for member_id, room in rooms.items():
        kept[member_id] += islice(free, room)


# ------------------------------------------------------------------------------------------- subscriptions differ


def _level(kept: dict[str, list[Partition]], takers: Sequence[list[str]], counts: Sequence[int]) -> None:
    """Balance members as far as their subscriptions allow. `takers`: the members that subscribe to each topic."""
    owned = {member_id: set(partitions) for member_id, partitions in kept.items()}
    topics = sorted(
        range(len(counts)), key=lambda topic: (-counts[topic] / len(takers[topic]), len(takers[topic]), topic)
    )
    free: dict[int, list[Partition]] = {}
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


def _level_topic(owned: dict[str, set[Partition]], topic: int, takers: list[str]) -> int:
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
