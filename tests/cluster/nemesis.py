"""Faults that overlap, in an order that follows from a seed: `Nemesis`.

There is room for three faults at a time: a broker that dies and may lose its disk, another node that hangs or is cut
off, and a controller that dies. A broker dies only when every other one has what it lost before, as
`min.insync.replicas=2` asks for. Everything else may come at any time, also when two of three controllers are away.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final, Literal, NamedTuple

from tests.cluster.nodes import COORDINATOR, Cluster, Node
from tests.faults.test_full_disk import fill
from tests.kafka.cluster import write_meta_properties

Room = Literal["death", "trouble", "controller"]
End = Callable[[], None]

_PAUSE_S: Final = (0.2, 4.0)  # between the steps
_DELAY_MS: Final = 150


class Step(NamedTuple):
    """What happens next, if it can: a fault begins, or the one that has its room ends."""

    room: Room
    fault: str
    node: int
    pause_s: float


class Nemesis:
    """Hurts the nodes of a cluster under load, and heals them."""

    def __init__(self, cluster: Cluster, topics: Sequence[str], random: Random) -> None:
        """`topics`: whose replicas have to be in sync before a broker may die."""
        self._cluster: Final = cluster
        self._topics: Final = topics
        self._random: Final = random
        self._hurt: Final[dict[Room, tuple[Node, End]]] = {}
        self._damaged: int | None = None  # a broker that may have lost something which others have to give it
        self.story: Final[list[str]] = []

    def run(self, count: int) -> None:
        """Do so many steps, and then heal everything. Raises `AssertionError` if a node ends by itself."""
        for step in list(self._plan(count)):
            if step.room in self._hurt:
                self._heal(step.room)
            else:
                self._begin(step)
            self._expect_alive()
            time.sleep(step.pause_s)
        for room in list(self._hurt):
            self._heal(room)

    def _plan(self, count: int) -> Iterator[Step]:
        """Everything that is drawn, so that it follows from the seed alone."""
        random, brokers, controllers = self._random, list(self._cluster.brokers), list(self._cluster.controllers)
        for _ in range(count):
            room: Room = random.choice(("death", "death", "trouble", "trouble", "controller"))
            if room == "death":
                fault, nodes = random.choice(list(_DEATHS)), brokers
            elif room == "trouble":
                fault, nodes = random.choice(list(_TROUBLES)), [*brokers, *random.sample(controllers, 1)]
            else:
                fault, nodes = "kill", controllers
            yield Step(room, fault, random.choice(nodes), random.uniform(*_PAUSE_S))

    def _begin(self, step: Step) -> None:
        cluster = self._cluster
        node = {**cluster.brokers, **cluster.controllers}[step.node]
        if any(node is each for each, _ in self._hurt.values()):
            return
        if step.room == "death":
            if self._damaged not in (None, node.node_id) and not self._is_whole():
                return
            self._damaged = node.node_id
        faults = _TROUBLES if step.room == "trouble" else _DEATHS
        self.story.append(f"{step.fault} {node.node_id}")
        self._hurt[step.room] = node, faults[step.fault](cluster, node)

    def _heal(self, room: Room) -> None:
        node, end = self._hurt.pop(room)
        self.story.append(f"heal {node.node_id}")
        end()

    def _is_whole(self) -> bool:
        """Return whether all replicas are in sync. Nobody is asked who may be cut off and not know it."""
        if self._hurt.keys() & {"death", "trouble"}:
            return False
        return all(self._cluster.is_in_sync(topic, each) for topic in self._topics for each in self._brokers())

    def _brokers(self) -> list[Node]:
        return list(self._cluster.brokers.values())

    def _expect_alive(self) -> None:
        hurt = [node for node, _ in self._hurt.values()]
        for node in (*self._brokers(), *self._cluster.controllers.values()):
            if node not in hurt:
                assert not node.has_ended, f"node {node.node_id} has ended by itself: {node.lines[-20:]}"


# ----------------------------------------------------------------------------------------------------------- the faults


def _start_again(node: Node) -> None:
    """Start a node, whether it has ended by now or not."""
    node.kill()
    node.launch()


def _kill(cluster: Cluster, node: Node) -> End:
    node.kill()
    return node.launch


def _stop(cluster: Cluster, node: Node) -> End:
    """Ask a broker to stop in order, for which it has until it is started again."""
    os.kill(node.process_id, signal.SIGTERM)
    return lambda: _start_again(node)


def _fail_disk(cluster: Cluster, node: Node) -> End:
    """Let no file of a broker grow."""
    _, most = resource.prlimit(node.process_id, resource.RLIMIT_FSIZE)
    resource.prlimit(node.process_id, resource.RLIMIT_FSIZE, (0, most))
    return lambda: _start_again(node)


def _fill_disk(cluster: Cluster, node: Node) -> End:
    """Leave a broker no room, if its disk is one that can be filled."""
    if not node.data.is_mount():
        return _fail_disk(cluster, node)
    filler = fill(node.data)

    def end() -> None:
        node.kill()
        filler.unlink()
        node.launch()

    return end


def _replace_disk(cluster: Cluster, node: Node) -> End:
    """Kill a broker, and take everything from it, unless nobody else has what the coordinators need."""
    node.kill()
    if node.node_id != COORDINATOR:
        for each in node.data.iterdir():
            shutil.rmtree(each) if each.is_dir() else each.unlink()
        write_meta_properties(node.data, node.node_id)
    return node.launch


def _hang(cluster: Cluster, node: Node) -> End:
    node.pause()
    return node.resume


def _cut_off(cluster: Cluster, node: Node) -> End:
    for other in _others(cluster, node):
        cluster.network.cut(other, node.node_id)
        cluster.network.cut(node.node_id, other)
    return cluster.network.heal


def _silence(cluster: Cluster, node: Node) -> End:
    """Have the others not hear a node, which hears them."""
    for other in _others(cluster, node):
        cluster.network.cut(node.node_id, other)
    return cluster.network.heal


def _cut_from_controllers(cluster: Cluster, node: Node) -> End:
    for other in cluster.controllers.keys() - {node.node_id}:
        cluster.network.cut(other, node.node_id)
        cluster.network.cut(node.node_id, other)
    return cluster.network.heal


def _delay(cluster: Cluster, node: Node) -> End:
    for other in _others(cluster, node):
        cluster.network.delay(other, node.node_id, _DELAY_MS)
        cluster.network.delay(node.node_id, other, _DELAY_MS)
    return cluster.network.heal


def _others(cluster: Cluster, node: Node) -> list[int]:
    return [number for number in (*cluster.brokers, *cluster.controllers) if number != node.node_id]


Fault = Callable[[Cluster, Node], End]
_DEATHS: Final[dict[str, Fault]] = {
    "kill": _kill,
    "stop": _stop,
    "fail the disk of": _fail_disk,
    "fill the disk of": _fill_disk,
    "replace the disk of": _replace_disk,
}
_TROUBLES: Final[dict[str, Fault]] = {
    "hang": _hang,
    "cut off": _cut_off,
    "silence": _silence,
    "cut from the controllers": _cut_from_controllers,
    "delay": _delay,
}
