"""What is known of all topics together: `TopicSurvey`. After a change only topics that have changed are looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from octavo.log.metadata.image import PartitionState, Topic
from octavo.log.metadata.sorted_map import SortedMap
from octavo.log.names import TopicPartition


class TopicSurvey(NamedTuple):
    """What a node has to know of its topics before it may change them."""

    topics: SortedMap[str, Topic] = SortedMap()  # those that were looked at
    shared: Mapping[str, str] = {}  # topics with replicas on other nodes, each with a sentence about that
    load: Mapping[Path, int] = {}  # the number of partitions in each folder

    def after(
        self,
        topics: SortedMap[str, Topic],
        node_id: int | None,
        folder_of: Callable[[PartitionState], Path | None],
    ) -> TopicSurvey:
        """Return the survey of these topics, of node `node_id`."""
        if topics is self.topics:
            return self
        shared, load = dict(self.shared), Counter(self.load)
        for name in topics.changed_since(self.topics):
            before, now = self.topics.get(name), topics.get(name)
            shared.pop(name, None)
            if before is not None:
                load.subtract(_folders(before, folder_of))
            if now is not None:
                load.update(_folders(now, folder_of))
                reason = _other_replicas(now, node_id)
                if reason is not None:
                    shared[name] = reason
        return TopicSurvey(topics, shared, load)


def _folders(topic: Topic, folder_of: Callable[[PartitionState], Path | None]) -> list[Path]:
    return [folder for folder in map(folder_of, topic.partitions.values()) if folder is not None]


def _other_replicas(topic: Topic, node_id: int | None) -> str | None:
    """Return a sentence about the first partition that has replicas on other nodes; None if there is none."""
    for number, state in topic.partitions.items():
        replicas = {*state.replicas, *state.adding_replicas}
        if replicas != {node_id}:
            nodes = ", ".join(map(str, sorted(replicas)))
            return f"{TopicPartition(topic.name, number)} has replicas on the nodes {nodes}"
    return None
