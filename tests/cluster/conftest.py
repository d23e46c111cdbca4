"""The cluster that all tests here share, and the Java processes that are its clients."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from tests.cluster.network import Namespaces, Network, is_possible
from tests.cluster.nodes import Cluster, Kind
from tests.cluster.proxy import ProxyNetwork
from tests.kafka.judge import Judge
from tests.kafka.releases import KafkaUnavailable, do_without

OTHERS = cast("Kind", os.environ.get("OCTAVO_TEST_BROKERS", "octavo"))  # `kafka`: whether the tests are right


@pytest.fixture(scope="session")
def network() -> Iterator[Network]:
    """The network of the run's clusters."""
    made = _new_network()
    yield made
    made.close()


@pytest.fixture(scope="module")
def other_network() -> Iterator[Network]:
    """A network for a cluster besides the shared one, whose nodes have the same ids."""
    made = _new_network()
    yield made
    made.close()


def _new_network() -> Network:
    return Namespaces() if is_possible() and "OCTAVO_TEST_PROXY" not in os.environ else ProxyNetwork()


@pytest.fixture(scope="session")
def shared_cluster(java: str, network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller, one broker of Apache Kafka and two of Octavo; use `cluster`."""
    folder = tmp_path_factory.mktemp("cluster")
    try:
        made = Cluster(folder, network, {1: "kafka", 2: OTHERS, 3: OTHERS})
    except KafkaUnavailable as reason:
        do_without(reason)
    with small_disk(made.brokers[2].data), made as cluster:
        yield cluster


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Have the folder be a file system of its own that can be filled, if this process may mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        yield
    finally:
        if is_mounted:
            subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def cluster(shared_cluster: Cluster, record_property: Callable[[str, object], None]) -> Iterator[Cluster]:
    """The shared cluster, all of whose nodes serve; what a test leaves broken is mended."""
    record_property("network", shared_cluster.network.description)  # the report of the run says it
    shared_cluster.mend()
    yield shared_cluster
    shared_cluster.network.heal()


@pytest.fixture(scope="session")
def clients_of_java(java: str) -> Iterator[Judge]:
    """A Java process for clients under load, besides that of the tools (`kafka_broker`)."""
    with Judge("broker") as judge:
        yield judge
