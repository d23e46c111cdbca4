"""A broker in programs and tests of others."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import octavo
from octavo.client.cluster import Cluster
from octavo.errors import BrokerUnreachable, InvalidConfig

_A_PROJECT: Final = """
import pytest
from octavo.client.cluster import Cluster

@pytest.fixture(scope="session")
def octavo_broker_config():
    return {"num.partitions": "3"}

def names(broker):
    with Cluster(broker.bootstrap_servers) as cluster:
        return [each.name for each in cluster.metadata().topics]

@pytest.mark.parametrize("turn", range(2))
def test_a_broker_of_its_own(octavo_broker, turn):
    assert names(octavo_broker) == []
    with Cluster(octavo_broker.bootstrap_servers) as cluster:
        cluster.persist(lambda: cluster.topic("new", creating=True))
        assert len(cluster.topic("new").leaders) == 3

@pytest.mark.parametrize("turn", range(2))
def test_a_broker_for_all(octavo_broker_session, turn):
    assert names(octavo_broker_session) == ["shared"][:turn]
    with Cluster(octavo_broker_session.bootstrap_servers) as cluster:
        cluster.persist(lambda: cluster.topic("shared", creating=True))
"""


def test_fixtures_for_other_projects(tmp_path: Path) -> None:
    (tmp_path / "test_project.py").write_text(_A_PROJECT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]  # which finds the plug-in by itself
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_the_plug_in_imports_nothing_of_octavo() -> None:
    code = "import sys, octavo.pytest_plugin; print(sorted(each for each in sys.modules if each.startswith('octavo')))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "['octavo', 'octavo.on_demand', 'octavo.pytest_plugin']"


def test_asyncio() -> None:
    async def program() -> str:
        async with octavo.serve_async(config={"num.partitions": "2"}) as broker:
            reached = await asyncio.to_thread(_topic_count, broker.bootstrap_servers)
            assert reached == 0
            return broker.bootstrap_servers

    address = asyncio.run(program())
    with pytest.raises(BrokerUnreachable):
        _topic_count(address)


def test_asyncio_passes_errors_on() -> None:
    async def program() -> None:
        async with octavo.serve_async(config={"num.partition": "2"}):
            raise AssertionError("it must not start")

    with pytest.raises(InvalidConfig):
        asyncio.run(program())


def test_asyncio_that_is_cancelled_leaves_no_broker(tmp_path: Path) -> None:
    async def program() -> None:
        async def start() -> None:
            async with octavo.serve_async(tmp_path / "data"):
                await asyncio.sleep(60)

        task = asyncio.create_task(start())
        await asyncio.sleep(0)  # it has begun
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(program())
    with octavo.serve(tmp_path / "data"):  # nobody else has it open
        pass


def _topic_count(address: str) -> int:
    with Cluster(address) as cluster:
        return len(cluster.metadata().topics)
