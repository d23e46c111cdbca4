"""What an assignor is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

Assignment = Mapping[UUID, frozenset[int]]  # partitions by the id of their topic; no topic is there without partitions


class Subscriber(NamedTuple):
    """A member, what it subscribes to, and what it was assigned before."""

    member_id: str
    instance_id: str | None
    topics: frozenset[UUID]
    assigned: Assignment


class Wanted(NamedTuple):
    """Partitions are to be assigned to members.

    partition_counts: has all topics that members subscribe to
    is_homogeneous: whether all members subscribe to the same topics
    """

    subscribers: Collection[Subscriber]
    partition_counts: Mapping[UUID, int]
    is_homogeneous: bool


Assignor = Callable[[Wanted], dict[str, Assignment]]  # returns assignments by member ids
