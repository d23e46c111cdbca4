"""What can happen to a node of a cluster, under a load that goes on meanwhile. Afterwards the node is well again."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from typing import Final, Literal

from tests.cluster.load import ClusterLoad
from tests.cluster.nodes import COORDINATORS, Cluster, Node, wait_until
from tests.faults.test_full_disk import fill
from tests.kafka.cluster import write_meta_properties

Direction = Literal["from the others", "to the others", "from the controllers"]
Fault = Callable[[Cluster, ClusterLoad, Node], None]


def await_other_leaders(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Return when a broker leads none of the load's partitions."""
    for topic, number in load.partitions:
        wait_until(
            lambda: cluster.leader(topic, number, besides=broker.node_id) != broker.node_id,  # noqa: B023 (called at once)
            f"{broker.node_id} still leads {topic}-{number}",
        )


def kill(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Kill a broker with SIGKILL, and start it again when the others go on."""
    broker.kill()
    load.wait_for_all()
    broker.start()


def kill_shortly(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Kill a broker with SIGKILL, and start it again at once."""
    broker.kill()
    broker.start()


def hang(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Stop a broker with SIGSTOP for longer than its session.

    When it goes on it is not the leader any more, and does not know it yet.
    """
    broker.pause()
    await_other_leaders(cluster, load, broker)
    load.wait_for_all()
    broker.resume()


def lose_controller(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Kill the active controller with SIGKILL, and stop it with SIGSTOP when it is back."""
    controller = cluster.active
    controller.kill()
    load.wait_for_all()
    controller.start()
    controller = cluster.active
    controller.pause()
    load.wait_for_all()
    controller.resume()


def cut(direction: Direction) -> Fault:
    """Return the fault that a broker is cut off until others have taken over."""

    def cut_off(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
        others = [number for number in (*cluster.brokers, *cluster.controllers) if number != broker.node_id]
        for other in cluster.controllers if direction == "from the controllers" else others:
            if direction != "to the others":
                cluster.network.cut(other, broker.node_id)
            cluster.network.cut(broker.node_id, other)
        await_other_leaders(cluster, load, broker)
        load.wait_for_all()
        cluster.network.heal()

    return cut_off


def delay(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Have everything between a broker and the other nodes take a while."""
    for node in (*cluster.brokers, *cluster.controllers):
        if node != broker.node_id:
            cluster.network.delay(broker.node_id, node, 150)
            cluster.network.delay(node, broker.node_id, 80)
    load.wait_for_all(60)
    cluster.network.heal()


def fail_disk(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Let no file of a broker grow. It stops because of that, and is started again."""
    _, most = resource.prlimit(broker.process_id, resource.RLIMIT_FSIZE)
    resource.prlimit(broker.process_id, resource.RLIMIT_FSIZE, (0, most))
    load.wait_for_all()
    broker.await_end()
    broker.start()


def fill_disk(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Leave a broker no room on its disk. As a leader it stops because of that, and is started again."""
    if not broker.data.is_mount():  # it is not root who runs the tests
        return fail_disk(cluster, load, broker)
    filler = fill(broker.data)
    broker.await_end()
    filler.unlink()
    broker.start()
    return None


def replace_disk(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Kill a broker, and start it again on an empty directory; but for what nobody else has, of the coordinators."""
    broker.kill()
    for each in broker.data.iterdir():
        if not each.name.startswith(COORDINATORS):
            shutil.rmtree(each) if each.is_dir() else each.unlink()
    write_meta_properties(broker.data, broker.node_id)
    load.wait_for_all()
    broker.start()


def restart(cluster: Cluster, load: ClusterLoad, broker: Node) -> None:
    """Stop a broker in order, and start it again."""
    broker.stop()
    load.wait_for_all()
    broker.start()


ALL: Final[dict[str, Fault]] = {
    "kill": kill,
    "kill shortly": kill_shortly,
    "hang": hang,
    "lose the controller": lose_controller,
    "cut from the others": cut("from the others"),
    "cut in one direction": cut("to the others"),
    "cut from the controllers": cut("from the controllers"),
    "delay": delay,
    "fail the disk": fail_disk,
    "fill the disk": fill_disk,
    "replace the disk": replace_disk,
    "restart": restart,
}
