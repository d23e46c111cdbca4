"""Limits on connections and on the memory of requests, and mistakes of ours, which must not end the service."""

from __future__ import annotations

import errno
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from octavo.broker.wire.api_keys import API_VERSIONS, INCREMENTAL_ALTER_CONFIGS, METADATA, PRODUCE
from octavo.errors import InvalidConfig
from octavo.server import acceptor, reactor
from octavo.server.poller import make_poller
from octavo.server.serving import serve
from tests.server.conversation import Conversation
from tests.server.questions import batch
from tests.server.raw import PATIENCE_S, RawClient, header
from tests.server.requests import frame, produce

VERSIONS = header(API_VERSIONS, 2, flexible=False)


def is_quiet(client: RawClient, other: RawClient) -> bool:
    """Whether a client gets nothing, while another gets its answers."""
    for _ in range(20):
        assert other.ask(VERSIONS) is not None
    return not select.select([client.socket], [], [], 0)[0]


def test_above_the_maximum_a_connection_waits_until_another_is_closed(tmp_path: Path) -> None:
    said: list[str] = []
    with serve(tmp_path / "data", config={"max.connections": "2"}, say=said.append) as server:
        first, second, third = (RawClient(server.bootstrap_servers) for _ in range(3))
        assert first.ask(VERSIONS) is not None
        third.send(VERSIONS)
        assert is_quiet(third, second)
        first.socket.close()
        assert third.receive() is not None
        second.socket.close()
        third.socket.close()
    assert set(said) == {"max.connections=2 are open, and further ones have to wait"}


def test_an_address_has_as_many_connections_as_it_may(tmp_path: Path) -> None:
    said: list[str] = []
    limits = {"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "localhost:2, 127.0.0.3:0"}
    with serve(tmp_path / "data", config=limits, say=said.append) as server:
        first, second = (RawClient(server.bootstrap_servers) for _ in range(2))
        assert first.ask(VERSIONS) is not None
        assert second.ask(VERSIONS) is not None
        with RawClient(server.bootstrap_servers) as third:
            assert third.receive() is None
        host, _, port = server.bootstrap_servers.rpartition(":")
        for source, answers in (("127.0.0.2", 1), ("127.0.0.3", 0)):
            place = (host, int(port))
            several = [socket.create_connection(place, PATIENCE_S, (source, 0)) for _ in range(2)]
            assert [_answers(each) for each in several].count(True) == answers
            for each in several:
                each.close()
        second.socket.close()
        with RawClient(server.bootstrap_servers) as third:
            while third.ask(VERSIONS) is None:  # the broker has not seen yet that there is room
                third.socket.close()
                third.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        first.socket.close()
    assert said[0] == "a connection from 127.0.0.1 was refused: it has 2, which is the maximum"


def _answers(client: socket.socket) -> bool:
    try:
        client.sendall(struct.pack(">i", len(VERSIONS)) + VERSIONS)
        return bool(client.recv(1))
    except ConnectionError:
        return False


def test_connections_that_come_too_fast_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    begin = time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() if said else begin)  # they come at once, however slowly
    monkeypatch.setattr(acceptor, "time", clock)
    with serve(tmp_path / "data", config={"max.connection.creation.rate": "1"}, say=said.append) as server:
        clients = [RawClient(server.bootstrap_servers) for _ in range(11)]  # ten seconds' worth are let in at once
        assert all(each.ask(VERSIONS) is not None for each in clients[:10])
        assert clients[10].ask(VERSIONS) is not None
        for each in clients:
            each.socket.close()
    assert set(said) == {"more than max.connection.creation.rate=1 connections a second are coming"}


def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    with serve(tmp_path / "data", config={"connections.max.idle.ms": "10"}) as server:
        silent, slow = (RawClient(server.bootstrap_servers) for _ in range(2))
        slow.socket.sendall(b"\0\0\0")  # less than a size
        for each in (silent, slow):
            assert each.receive() is None
            each.socket.close()


def test_requests_wait_for_the_memory_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reactor, "_SLOW_CHECKS", 1 << 30)  # however slow this machine is
    limits = {"socket.request.max.bytes": "1000000", "queued.max.request.bytes": "1000000"}
    request = header(METADATA, 1, flexible=False) + struct.pack(">i", 0) + bytes(900_000)
    data = struct.pack(">i", len(request)) + request
    with serve(tmp_path / "data", config=limits) as server:
        first, second, third, other = (RawClient(server.bootstrap_servers) for _ in range(4))
        for each in (first, second):  # the second passes the limit
            each.socket.sendall(data[:300_000])
            assert other.ask(VERSIONS) is not None
        third.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2_000_000)
        third.socket.sendall(data[:300_000])
        assert is_quiet(third, other)
        third.socket.settimeout(0)
        sent = 0
        try:
            while 300_000 + sent < len(data):
                sent += third.socket.send(data[300_000 + sent :])
        except BlockingIOError:
            pass
        third.socket.settimeout(PATIENCE_S)
        assert is_quiet(third, other)
        rests = {first: 300_000, second: 300_000, third: 300_000 + sent}
        senders = [threading.Thread(target=each.socket.sendall, args=(data[at:],)) for each, at in rests.items()]
        for sender in senders:
            sender.start()
        assert all(each.receive() is not None for each in rests)
        for sender in senders:
            sender.join()
        for each in (first, second, third, other):
            each.socket.close()


def test_requests_wait_for_the_memory_of_others_that_another_thread_works_on(tmp_path: Path) -> None:
    limits = {"socket.request.max.bytes": "1000000", "queued.max.request.bytes": "1000000"}
    with serve(tmp_path / "data", config=limits) as server:
        server.directory.create_topic("events", config={"flush.messages": "1"})
        log = server.directory.log("events", 0)
        first, second, third, other = (RawClient(server.bootstrap_servers) for _ in range(4))
        with log.lock:
            for each in (first, second):
                each.send(frame(produce("events", batch(b"x" * 900_000))))
                assert other.ask(VERSIONS) is not None
            first.socket.close()  # its request is still there
            assert other.ask(VERSIONS) is not None
            large = header(METADATA, 1, flexible=False) + struct.pack(">i", 0) + bytes(900_000)
            sending = threading.Thread(target=third.send, args=(large,))
            sending.start()
            assert is_quiet(third, other)
        assert second.receive() is not None
        assert third.receive() is not None
        sending.join()
        for each in (second, third, other):
            each.socket.close()


def test_a_request_that_does_not_arrive_gives_way_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reactor, "_CHECK_S", 0.01)
    said: list[str] = []
    limits = {"socket.request.max.bytes": "1000000", "queued.max.request.bytes": "1000000"}
    with serve(tmp_path / "data", config=limits, say=said.append) as server:
        first, second, third, other = (RawClient(server.bootstrap_servers) for _ in range(4))
        for each in (first, second):
            each.socket.sendall(struct.pack(">ihh", 999_999, PRODUCE, 8) + bytes(600_000))
            assert other.ask(VERSIONS) is not None
        assert third.ask(header(METADATA, 1, flexible=False) + struct.pack(">i", 0) + bytes(900_000)) is not None
        assert first.receive() is None or second.receive() is None
        for each in (first, second, third, other):
            each.socket.close()
    assert "its request of 1000003 bytes would not arrive within 30 s, and others wait for the memory" in said[0]


def test_requests_that_are_only_announced_take_no_memory_from_others(tmp_path: Path) -> None:
    """Mend 2.2: memory is taken for what has come."""
    said: list[str] = []
    limits = {"socket.request.max.bytes": "1000000", "queued.max.request.bytes": "1000000"}
    with serve(tmp_path / "data", config=limits, say=said.append) as server:
        slow = [RawClient(server.bootstrap_servers) for _ in range(70)]
        other = RawClient(server.bootstrap_servers)
        for each in slow:
            each.socket.sendall(struct.pack(">ihh", 999_999, PRODUCE, 8))
        assert other.ask(VERSIONS) is not None
        for each in slow:
            each.socket.sendall(b"x")
        for _ in range(3):
            assert other.ask(header(METADATA, 1, flexible=False) + struct.pack(">i", 0) + bytes(900_000)) is not None
        for each in (*slow, other):
            each.socket.close()
    assert not said  # nor was any of them cut off


def test_requests_that_have_arrived_in_part_do_not_wait_for_one_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mend 2.2: where all memory is taken by parts of requests, these still arrive, one after the other."""
    monkeypatch.setattr(reactor, "_SLOW_CHECKS", 1 << 30)
    limits = {"socket.request.max.bytes": "1000000", "queued.max.request.bytes": "1000000"}
    request = header(METADATA, 1, flexible=False) + struct.pack(">i", 0) + bytes(900_000)
    data = struct.pack(">i", len(request)) + request
    with serve(tmp_path / "data", config=limits) as server:
        clients = [RawClient(server.bootstrap_servers) for _ in range(8)]
        other = RawClient(server.bootstrap_servers)
        for each in clients:
            each.socket.sendall(data[:200_000])
            assert other.ask(VERSIONS) is not None
        senders = [threading.Thread(target=each.socket.sendall, args=(data[200_000:],)) for each in clients]
        for sender in senders:
            sender.start()
        assert all(each.receive() is not None for each in clients)
        for sender in senders:
            sender.join()
        for each in (*clients, other):
            each.socket.close()


def test_a_request_that_was_let_on_is_so_again_when_it_waits_for_memory_once_more(tmp_path: Path) -> None:
    """Mend 2.2: who was let on without room may wait the next time, and the others not for it."""
    limits = {"socket.request.max.bytes": "400000", "queued.max.request.bytes": "400000"}
    request = header(METADATA, 1, flexible=False) + struct.pack(">i", 0) + bytes(390_000)
    data = struct.pack(">i", len(request)) + request
    with serve(tmp_path / "data", config=limits) as server:
        clients = [RawClient(server.bootstrap_servers) for _ in range(2)]
        other = RawClient(server.bootstrap_servers)
        for _ in range(3):
            for begin, end in ((0, 100_000), (100_000, len(data))):
                for each in clients:
                    each.socket.sendall(data[begin:end])
                    assert other.ask(VERSIONS) is not None  # it has arrived
            assert all(each.receive() is not None for each in clients)
        for each in (*clients, other):
            each.socket.close()


def test_many_requests_at_once_are_answered_in_order_although_others_have_their_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reactor, "_TURN_S", -1)  # one request in a turn
    frames = [header(API_VERSIONS, 2, number, flexible=False) for number in range(500)]
    data = b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)
    with serve(tmp_path / "data") as server:
        clients = [RawClient(server.bootstrap_servers) for _ in range(3)]
        for each in clients:
            each.socket.sendall(data)
            each.socket.shutdown(socket.SHUT_WR)
        for each in clients:
            answers = [each.receive() for _ in frames]
            assert [answer[:4] for answer in answers if answer] == [frame[4:8] for frame in frames]
            assert each.receive() is None
            each.socket.close()


def test_a_mistake_in_a_turn_does_not_end_the_service(tmp_path: Path) -> None:
    said: list[str] = []

    def fail() -> None:
        raise KeyError("a mistake")

    with serve(tmp_path / "data", say=said.append) as server, RawClient(server.bootstrap_servers) as client:
        for _ in range(3):
            server._reactor.call(fail)
        assert client.ask(VERSIONS) is not None
    assert said[0] == "a turn of the reactor failed: KeyError('a mistake')"


def test_a_message_that_cannot_be_said_does_not_end_the_service(tmp_path: Path) -> None:
    def fail(_: str) -> None:
        raise BrokenPipeError

    with serve(tmp_path / "data", say=fail) as server:
        with RawClient(server.bootstrap_servers) as client:
            assert client.ask(b"x") is None
        with RawClient(server.bootstrap_servers) as client:
            assert client.ask(VERSIONS) is not None


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"max.connections.per.ip": "0"}, "only with max.connections.per.ip.overrides"),
        ({"max.connections.per.ip.overrides": "localhost"}, "it must be HOST:NUMBER"),
        ({"max.connections.per.ip.overrides": "no such host:1"}, "no known host"),
        ({"max.connections.per.ip.overrides": "a..b:1"}, "no known host"),
        ({"max.connections.per.ip.overrides": f"{'x' * 64}:1"}, "no known host"),
        ({"queued.max.request.bytes": "1000"}, "not be less than socket.request.max.bytes"),
        ({"max.connection.creation.rate": "-1"}, "max.connection.creation.rate cannot be"),
    ],
)
def test_limits_that_make_no_sense_are_refused(config: dict[str, str], sentence: str, tmp_path: Path) -> None:
    before = set(Path("/dev/fd").iterdir())
    with pytest.raises(InvalidConfig, match=sentence):
        serve(tmp_path / "data", config=config)
    assert not (tmp_path / "data").exists()
    assert set(Path("/dev/fd").iterdir()) <= before


def test_a_limit_for_a_host_that_is_not_known_any_more_does_not_keep_a_broker_from_starting(tmp_path: Path) -> None:
    name, said = "max.connections.per.ip.overrides", list[str]()
    with serve(tmp_path / "data") as server, Conversation(server.bootstrap_servers) as client:
        setting = {"name": name, "config_operation": 0, "value": "no such host:1"}
        resource = {"resource_type": 4, "resource_name": "", "configs": [setting]}
        content = {"resources": [resource], "validate_only": False}
        assert client.ask(INCREMENTAL_ALTER_CONFIGS, 1, content)["responses"][0]["error_code"] == 0
    with serve(tmp_path / "data", say=said.append) as server, RawClient(server.bootstrap_servers) as raw:
        assert raw.ask(VERSIONS) is not None
    assert "no known host" in said[0]


def test_others_are_served_while_the_name_of_a_host_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()
    really = socket.getaddrinfo

    def slowly(host: str, *arguments: Any, **options: Any) -> Any:
        if host != "slow.example":
            return really(host, *arguments, **options)
        if options.get("flags", 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror
        begun.set()
        assert released.wait(2 * PATIENCE_S)
        return really("127.0.0.1", *arguments, **options)

    with serve(tmp_path / "data") as server, Conversation(server.bootstrap_servers) as client:
        monkeypatch.setattr(socket, "getaddrinfo", slowly)
        try:
            setting = {"name": "max.connections.per.ip.overrides", "config_operation": 0, "value": "slow.example:1"}
            resource = {"resource_type": 4, "resource_name": "", "configs": [setting]}
            content = {"resources": [resource], "validate_only": False}
            assert client.ask(INCREMENTAL_ALTER_CONFIGS, 1, content)["responses"][0]["error_code"] == 0
            assert begun.wait(PATIENCE_S)
            with RawClient(server.bootstrap_servers) as other:
                assert other.ask(VERSIONS) is not None
        finally:
            released.set()
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with RawClient(server.bootstrap_servers) as other:
                if not _answers(other.socket):
                    break
        else:
            raise AssertionError("the limit does not hold")


def test_a_connection_that_cannot_be_watched_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing: list[int] = []

    class Watching:
        def __init__(self) -> None:
            self._poller = make_poller()

        def register(self, descriptor: int, events: int) -> None:
            if failing:
                raise OSError(failing.pop(), "no space")
            self._poller.register(descriptor, events)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._poller, name)

    monkeypatch.setattr("octavo.server.reactor.make_poller", Watching)
    with serve(tmp_path / "data", config={"max.connections.per.ip": "1"}) as server:
        failing.append(errno.ENOSPC)
        with RawClient(server.bootstrap_servers) as client:
            assert client.receive() is None
        assert server.statistics().connections == 0
        with RawClient(server.bootstrap_servers) as client:
            assert client.ask(VERSIONS) is not None


_EMBEDDING = """
import os, signal, socket, struct
from octavo.server.serving import serve
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
request = struct.pack(">ihhih", 10, 18, 0, 7, -1)
with serve() as server:
    host, _, port = server.bootstrap_servers.rpartition(":")
    for _ in range(10):  # none of them reads its answers
        client = socket.create_connection((host, int(port)))
        client.sendall(request * 300)
        client.close()
    client = socket.create_connection((host, int(port)))
    client.sendall(request)
    assert client.recv(1000)
    forked = os.fork()
    if not forked:
        signal.pause()
assert not client.recv(1000)  # although the fork is alive
os.kill(forked, signal.SIGKILL)
print("served")
"""


def test_a_program_that_dies_of_sigpipe_and_forks_can_serve() -> None:
    done = subprocess.run([sys.executable, "-c", _EMBEDDING], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("served\n", 0), done.stderr


def test_a_message_that_nobody_reads_stops_nobody() -> None:
    command = [sys.executable, "-c", "import octavo.server.stderr as s; [s.to_stderr('x' * 900) for _ in range(1000)]"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.wait(60) == 0  # a pipe takes 64 KiB
        assert process.stderr is not None
        assert process.stderr.read().startswith(b"octavo: xxx")
