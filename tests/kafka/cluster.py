"""Nodes of Apache Kafka that are a cluster: controllers of their own, and brokers, each a process on loopback.

    with StockCluster(tmp_path) as cluster:
        cluster.start()                              # the controllers; returns when one of them is active
        broker = cluster.new_broker(2)               # a folder that was formatted, and does not run yet
        broker.start()                               # see `Broker` for what it can do
        cluster.bootstrap                            # controller.quorum.bootstrap.servers of any other member
        cluster.active.kill()                        # fail-over, where there are three controllers
        cluster.await_active()

A node can be killed, stopped, paused by its `process_id`, and started again: it keeps its port and its folder. Sessions
are short (`SESSION_MS`), so that nobody waits long for a killed broker to be fenced. One controller is a dynamic quorum
with a voter, three are a static one.
"""

from __future__ import annotations

import base64
import shutil
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kio.schema.broker_heartbeat.v1 import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kio.schema.describe_cluster.v1 import DescribeClusterRequest, DescribeClusterResponse
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i64

from octavo.errors import ErrorCode
from tests.kafka.broker import START_TIMEOUT_S, Broker, BrokerFailed
from tests.kafka.client import ask

SESSION_MS: Final = 3000
CLUSTER_ID: Final = "b2N0YXZvIGluIGEgdGVzdA"
FIRST_CONTROLLER: Final = 101
_CONTROLLERS: Final = i8(2)  # the kind of endpoints that DescribeCluster is asked for
_NOBODY: Final = BrokerId(1_000_000)
_ASK_AGAIN_S: Final = 0.05


class Controller(Broker):
    """A node that is a controller alone."""

    def __init__(self, folder: Path, *, node_id: int, settings: Mapping[str, str], **options: Any) -> None:
        """Like a broker; it has a node id before it is formatted."""
        super().__init__(folder, **options)
        self._node_id: Final = node_id
        self._settings |= {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://{self.controller_address}",
            "advertised.listeners": f"CONTROLLER://{self.controller_address}",
            "broker.session.timeout.ms": str(SESSION_MS),
            **settings,
        }

    @property
    def node_id(self) -> int:
        """Its id, also before it is formatted."""
        return self._node_id

    @property
    def controller_port(self) -> int:
        """Where it listens, on loopback."""
        return self._controller_port

    def is_ready(self) -> bool:
        """Whether it answers, and knows which controller is active."""
        return self.active_node() >= 0

    def active_node(self) -> int:
        """The node id of the active controller as this one knows it, -1 for none, or if this one does not answer."""
        question = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=_CONTROLLERS)
        try:
            return ask(self.controller_port, question, DescribeClusterResponse).controller_id
        except OSError:
            return -1

    def is_active(self) -> bool:
        """Whether it is the active controller and does its work already, which begins after the others hear of it."""
        if self.active_node() != self.node_id:
            return False
        nobody = BrokerHeartbeatRequest(
            broker_id=_NOBODY, current_metadata_offset=i64(0), want_fence=False, want_shut_down=False
        )
        try:
            told = ask(self.controller_port, nobody, BrokerHeartbeatResponse)
        except OSError:
            return False
        return int(told.error_code) != ErrorCode.NOT_CONTROLLER

    def vote_with(self, voters: str) -> None:
        """Be one of several voters whom the configuration names; before it is formatted."""
        self._settings["controller.quorum.voters"] = voters


class StockCluster:
    """Controllers and brokers of Apache Kafka. A context manager, which leaves no process behind."""

    def __init__(
        self,
        folder: Path,
        *,
        controllers: int = 1,
        settings: Mapping[str, str] | None = None,
        logs_requests: bool = False,
    ) -> None:
        """Prepare the controllers. `settings` are added to theirs; `KafkaUnavailable` is raised as by `Broker`."""
        self.folder: Final = folder
        self.brokers: Final[dict[int, Broker]] = {}
        self._logs_requests: Final = logs_requests
        self.controllers: Final = tuple(
            Controller(
                folder / f"controller-{number}",
                node_id=number,
                settings=settings or {},
                quorum="dynamic" if controllers == 1 else "static",
                logs_requests=logs_requests,
            )
            for number in range(FIRST_CONTROLLER, FIRST_CONTROLLER + controllers)
        )
        if controllers > 1:
            for each in self.controllers:
                each.vote_with(self.voters)

    @property
    def bootstrap(self) -> str:
        """What controller.quorum.bootstrap.servers of a member takes."""
        return ",".join(each.controller_address for each in self.controllers)

    @property
    def voters(self) -> str:
        """What controller.quorum.voters of a member takes, if there are several controllers."""
        return ",".join(f"{each.node_id}@{each.controller_address}" for each in self.controllers)

    @property
    def active(self) -> Controller:
        """The active controller, which is one that runs."""
        return self.await_active()

    def start(self, *, metadata_version: str | None = None) -> None:
        """Format the controllers and start them; return when one of them is active."""
        first, *others = self.controllers
        first.format(cluster_id=CLUSTER_ID, metadata_version=metadata_version)
        for each in others:  # they differ by their ids alone, and the tool takes a second for each
            shutil.copytree(first.folders[0], each.folders[0])
            write_meta_properties(each.folders[0], each.node_id)
        for each in self.controllers:
            each.launch()
        for each in self.controllers:
            each.await_ready()
        self.await_active()

    def await_active(self) -> Controller:
        """Return the active controller as soon as it says itself that it is; raises `BrokerFailed`."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            for each in self.controllers:
                if each.runs and each.is_active():
                    return each
            time.sleep(_ASK_AGAIN_S)
        raise BrokerFailed(f"no controller is active after {START_TIMEOUT_S} s")

    def new_broker(self, node_id: int, *, settings: Mapping[str, str] | None = None, **options: Any) -> Broker:
        """Return a broker of the cluster, formatted, that does not run yet."""
        folder = self.folder / f"broker-{node_id}"
        broker = Broker(folder, quorum="dynamic", logs_requests=self._logs_requests, **options)
        broker.take_part_by(self.bootstrap, node_id=node_id, settings=settings or {})
        folder.mkdir(parents=True, exist_ok=True)
        write_meta_properties(folder, node_id)
        self.brokers[node_id] = broker
        return broker

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (*self.brokers.values(), *self.controllers):
            each.kill()


def write_meta_properties(folder: Path, node_id: int, *, cluster_id: str = CLUSTER_ID) -> None:
    """Make a folder that of a node, with a directory id of its own, as Kafka's tool does for a broker."""
    directory_id = "-"
    while directory_id.startswith("-"):
        directory_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    lines = ("version=1", f"cluster.id={cluster_id}", f"node.id={node_id}", f"directory.id={directory_id}")
    (folder / "meta.properties").write_text("".join(f"{line}\n" for line in lines), "utf-8")
