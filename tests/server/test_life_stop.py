"""How a broker begins and ends: connections that come early, requests that are under way, and forks."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from octavo.broker.cluster_image import TopicImage
from octavo.broker.wire.api_keys import API_VERSIONS, CREATE_TOPICS
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import BadDirectory
from octavo.log import DataDirectory
from octavo.log.names import CLEAN_SHUTDOWN
from octavo.server.serving import serve
from tests.server.raw import PATIENCE_S, RawClient, header
from tests.server.test_life_wakeups import Waiting

_VERSIONS = header(API_VERSIONS, 2, flexible=False)


def until_refused(address: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    with contextlib.suppress(ConnectionRefusedError):
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionResetError):  # the listener was closed while this came
                RawClient(address).socket.close()
        raise AssertionError("the broker does not stop")


def test_clients_that_come_while_the_directory_is_opened_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early: list[RawClient] = []
    really_open = DataDirectory.open

    def slowly(*arguments: Any, **options: Any) -> Any:
        early.append(RawClient(f"127.0.0.1:{port}"))
        early[0].send(_VERSIONS)
        return really_open(*arguments, **options)

    with serve() as other:
        port = int(other.bootstrap_servers.rpartition(":")[2])
    monkeypatch.setattr(DataDirectory, "open", slowly)
    with serve(tmp_path / "data", listen=f"127.0.0.1:{port}"), early[0] as client:
        assert client.receive() is not None


def test_nobody_listens_when_the_directory_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"")
    with serve() as other:
        port = int(other.bootstrap_servers.rpartition(":")[2])
    with pytest.raises(BadDirectory):
        serve(tmp_path / "data", listen=f"127.0.0.1:{port}")
    with pytest.raises(ConnectionRefusedError):
        RawClient(f"127.0.0.1:{port}")


def test_a_request_that_is_worked_on_is_answered_before_the_broker_ends(tmp_path: Path) -> None:
    server = serve(tmp_path / "data")
    really_create = server.broker.create_topic
    begun, released = threading.Event(), threading.Event()

    def create(name: str, partitions: int, config: Mapping[str, str]) -> TopicImage:
        begun.set()
        assert released.wait(PATIENCE_S)
        return really_create(name, partitions, config)

    server.broker.create_topic = create  # type: ignore[method-assign] # to know when it is under way
    topic = {"name": "events", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    content = {"topics": [topic], "timeout_ms": 1000, "validate_only": False}
    with RawClient(server.bootstrap_servers) as client:
        client.send(header(CREATE_TOPICS, 4, flexible=False) + write_request(CREATE_TOPICS, 4, content))
        assert begun.wait(PATIENCE_S)
        closing = threading.Thread(target=server.close)
        closing.start()
        until_refused(server.bootstrap_servers)
        released.set()
        answer = client.receive()
        assert answer is not None
        (created,) = read_response(CREATE_TOPICS, 4, memoryview(answer)[4:]).topics
        assert created.error_code == 0
        assert client.receive() is None
    closing.join()
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


def test_a_fetch_that_waits_ends_with_the_broker() -> None:
    with serve() as server:
        server.directory.create_topic("events")
        waiting = Waiting(server)
    assert waiting.is_over()


def test_a_fork_does_not_disturb_the_broker() -> None:
    with serve() as server, RawClient(server.bootstrap_servers) as client:
        server.directory.create_topic("events")
        assert client.ask(_VERSIONS) is not None
        child = os.fork()
        if child == 0:
            try:
                server.close()
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert client.ask(_VERSIONS) is not None
        assert RawClient(server.bootstrap_servers).ask(_VERSIONS) is not None
        assert (server.directory.folders[0] / "events-0").exists()
