"""The topics of a directory, as coordinators of groups know them: `KnownTopics`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from octavo.coordinator.groups.topics import Topic
from octavo.log.append.readiness import ALLOWANCE, MustWait

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory


class KnownTopics:
    """The topics of a directory. Any thread may use it."""

    def __init__(self, data: DataDirectory) -> None:
        self._data: Final = data

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return self._data.topics_version

    def names(self) -> Iterable[str]:
        """All topics.

        A thread with an `ALLOWANCE` is not given them: `MustWait` is raised, as matching them all may take long.
        """
        if ALLOWANCE.left is not None:
            raise MustWait
        return list(self._data.topics)

    def by_name(self, name: str) -> Topic | None:
        """Return the topic of a name; None if there is none."""
        topic = self._data.topics.get(name)
        return None if topic is None else Topic(name, topic.id, len(topic.partitions))

    def by_id(self, topic_id: UUID) -> Topic | None:
        """Return the topic of an id; None if there is none."""
        name = self._data.cluster.name_of(topic_id)
        topic = None if name is None else self.by_name(name)
        return None if topic is None or topic.topic_id != topic_id else topic
