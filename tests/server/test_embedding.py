"""A broker in programs and tests of others."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final

import pytest

import octavo
from octavo.cli import main
from octavo.client.cluster import Cluster
from octavo.errors import BrokerUnreachable, InvalidConfig
from octavo.server.reactor import Reactor

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
        async with octavo.serve_async(config={"num.partitions": "0"}):
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


def test_closing_that_is_interrupted_is_finished_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = octavo.serve(tmp_path / "data")
    close = server.directory.close
    monkeypatch.setattr(server.directory, "close", _interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.close()
    monkeypatch.setattr(server.directory, "close", close)
    server.close()
    with octavo.serve(tmp_path / "data"):  # nobody else has it open
        pass


def _interrupted() -> None:
    raise KeyboardInterrupt


def test_several_threads_close(tmp_path: Path) -> None:
    server = octavo.serve(tmp_path / "data")
    seen: list[bool] = []

    def close() -> None:
        server.close()
        seen.append(server.is_serving or (tmp_path / "data" / ".kafka_cleanshutdown").exists() is False)

    threads = [threading.Thread(target=close) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [False] * 3


def test_the_servers_own_thread_may_close_it(tmp_path: Path) -> None:
    server = octavo.serve(tmp_path / "data")
    server._reactor.call(server.close)
    server._thread.join(60)
    server.close()  # waits for the other
    with octavo.serve(tmp_path / "data"):
        pass


def test_a_command_whose_broker_fails_ends(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(reactor: Reactor) -> None:
        raise MemoryError

    monkeypatch.setattr(Reactor, "_turn", fail)
    monkeypatch.setattr("octavo.server.reactor._PAUSE_AFTER_FAILURE_S", 0)
    assert main(["serve"]) == 2
    assert "fails again and again" in capfd.readouterr().err
