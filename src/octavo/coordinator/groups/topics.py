"""What a coordinator of groups knows of topics: `Topics`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol
from uuid import UUID


class Topic(NamedTuple):
    """A topic, and for each partition the racks of its replicas (none, where nobody has told them)."""

    name: str
    topic_id: UUID
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()


class Topics(Protocol):
    """The topics that there are."""

    @property
    def version(self) -> int:
        """A number that grows whenever topics or partitions come or go."""

    def names(self) -> Iterable[str]:
        """All topics."""

    def by_name(self, name: str) -> Topic | None:
        """Return the topic of a name; None if there is none."""

    def by_id(self, topic_id: UUID) -> Topic | None:
        """Return the topic of an id; None if there is none."""


class NoTopics:
    """No topics, for coordinators that only keep offsets."""

    version: Final = 0

    def names(self) -> Iterable[str]:
        """All topics."""
        return ()

    def by_name(self, name: str) -> Topic | None:
        """Return None."""

    def by_id(self, topic_id: UUID) -> Topic | None:
        """Return None."""
