"""Moving leadership with Kafka's own tools, many calls in one JVM: `Mover`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.cluster.nodes import Cluster, wait_until
from tests.history import Partition
from tests.kafka.judge import Judge
from tests.kafka.tools import Tools


class Mover:
    """`kafka-reassign-partitions` and `kafka-leader-election`, asked through one broker after the other."""

    def __init__(self, cluster: Cluster, judge: Judge, folder: Path) -> None:
        self._cluster: Final = cluster
        self._judge: Final = judge
        self._folder: Final = folder
        self._calls = 0

    def _run(self, call: str) -> str:
        """Run a tool, and return what it prints."""
        self._calls += 1
        brokers = list(self._cluster.brokers.values())
        address = brokers[self._calls % len(brokers)].address
        printed = Tools(self._judge, address, self._folder).run(call)
        assert printed.exit_code == 0, printed
        return printed.out

    def reassign(self, places: dict[Partition, Sequence[int]]) -> None:
        """Have partitions on these brokers, the first of which is to lead when it is elected."""
        partitions = [
            {"topic": topic, "partition": number, "replicas": list(replicas)}
            for (topic, number), replicas in places.items()
        ]
        (self._folder / "places").write_text(json.dumps({"version": 1, "partitions": partitions}))
        self._run("reassign-partitions --execute --reassignment-json-file {places}")
        wait_until(
            lambda: (
                "is still in progress"
                not in self._run("reassign-partitions --verify --reassignment-json-file {places}")
            ),
            "the reassignment does not end",
        )

    def elect(self, leaders: dict[Partition, int]) -> None:
        """Have brokers lead partitions, each of which they have a replica of."""
        brokers = list(self._cluster.brokers)
        self.reassign({each: [leader, *(b for b in brokers if b != leader)] for each, leader in leaders.items()})
        elected = [{"topic": topic, "partition": number} for topic, number in leaders]
        (self._folder / "elected").write_text(json.dumps({"partitions": elected}))
        self._run("leader-election --election-type preferred --path-to-json-file {elected}")
        for (topic, number), leader in leaders.items():
            wait_until(
                lambda: self._cluster.leader(topic, number) == leader,  # noqa: B023 (called at once)
                f"{leader} is not made the leader of {topic}-{number}",
            )
