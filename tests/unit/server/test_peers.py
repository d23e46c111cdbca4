"""Connections to other nodes, with nodes that tests play: they answer late, in pieces, wrongly, or not at all."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from octavo.broker.notices import Notices
from octavo.cluster.messages import Endpoint
from octavo.errors import MalformedRequest
from octavo.server.peers import PeerConnections
from octavo.server.poller import make_poller

LARGEST = 1 << 20
HEARTBEAT = 63  # its header is flexible
PATIENCE_S = 60


class Asker:
    """A reactor's loop around `PeerConnections`, with a clock that the test moves."""

    def __init__(self) -> None:
        self.poller = make_poller()
        self.now_ms = 1000.0
        self.notices: list[str] = []
        self.calls: list[Callable[[], None]] = []
        self.called = threading.Event()
        self.elsewhere = ThreadPoolExecutor(1)
        self.peers = PeerConnections(
            self.poller,
            Notices(self.notices.append),
            largest_answer=LARGEST,
            do_elsewhere=self.elsewhere.submit,
            call=self.call,
            clock_ms=lambda: self.now_ms,
        )
        self.heard: list[str | bytes] = []  # answers, and reasons of failures

    def call(self, function: Callable[[], None]) -> None:
        self.calls.append(function)
        self.called.set()

    def ask(self, endpoint: Endpoint, body: bytes = b"?", channel: str = "life", timeout_ms: int = 500) -> None:
        self.peers.ask(
            endpoint,
            channel,
            HEARTBEAT,
            2,
            [body],
            timeout_ms=timeout_ms,
            client_id="7",
            answered=lambda body: self.heard.append(bytes(body)),
            failed=self.heard.append,
        )

    def turn(self) -> None:
        for descriptor, event in self.poller.poll(PATIENCE_S):
            assert self.peers.handle(descriptor, event)
        self.peers.tick()

    def until_heard(self, number: int) -> list[str | bytes]:
        while len(self.heard) < number:
            if self.peers.next_ms <= self.now_ms:
                self.peers.tick()
            else:
                self.turn()
        return self.heard

    def close(self) -> None:
        self.peers.close()
        self.poller.close()
        self.elsewhere.shutdown()


@pytest.fixture
def asker() -> Iterator[Asker]:
    asker = Asker()
    yield asker
    asker.close()


class Node:
    """The other side."""

    def __init__(self, family: socket.AddressFamily = socket.AF_INET) -> None:
        self.listening = socket.create_server(("", 0) if family == socket.AF_INET6 else ("127.0.0.1", 0), family=family)
        self.listening.settimeout(PATIENCE_S)
        self.endpoint = Endpoint("127.0.0.1", self.listening.getsockname()[1])

    def accept(self) -> socket.socket:
        client, _ = self.listening.accept()
        client.settimeout(PATIENCE_S)
        return client


@pytest.fixture
def node() -> Iterator[Node]:
    node = Node()
    yield node
    node.listening.close()


def receive(client: socket.socket) -> tuple[int, bytes]:
    """The number of a request, and its body."""
    (size,) = struct.unpack(">i", exactly(client, 4))
    frame = exactly(client, size)
    api_key, version, number, length = struct.unpack_from(">hhih", frame)
    assert (api_key, version, frame[10 : 10 + length], frame[10 + length]) == (HEARTBEAT, 2, b"7", 0)
    return number, frame[11 + length :]


def exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        assert more, "the connection was closed"
        data += more
    return data


def answer(number: int, body: bytes) -> bytes:
    return struct.pack(">ii", len(body) + 5, number) + b"\0" + body


def is_closed(client: socket.socket) -> bool:
    """Whether the other side has closed its connection; waits for that."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_requests_are_answered_in_their_order(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint, b"one")
    asker.ask(node.endpoint, b"two")
    asker.turn()
    with node.accept() as client:
        first, second = receive(client), receive(client)
        assert (first[1], second[1]) == (b"one", b"two")
        client.sendall(answer(first[0], b"1") + answer(second[0], b"2"))
        assert asker.until_heard(2) == [b"1", b"2"]
        asker.ask(node.endpoint, b"three")  # on the same connection
        number, body = receive(client)
        assert body == b"three"
        client.sendall(answer(number, b"3"))
        assert asker.until_heard(3) == [b"1", b"2", b"3"]


def test_channels_do_not_wait_for_each_other(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint, b"slow", channel="changes")
    asker.turn()
    with node.accept() as slow:
        assert receive(slow)[1] == b"slow"
        asker.ask(node.endpoint, b"quick", channel="life")
        asker.turn()
        with node.accept() as quick:
            number, _ = receive(quick)
            quick.sendall(answer(number, b"done"))
            assert asker.until_heard(1) == [b"done"]


def test_an_answer_comes_in_pieces(asker: Asker, node: Node) -> None:
    body = bytes(range(256)) * 3000
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        number, _ = receive(client)
        whole = answer(number, body) + b"\0\0"  # and the begin of something that does not come
        for begin in range(0, len(whole), 50_000):
            assert not asker.heard
            client.sendall(whole[begin : begin + 50_000])
            asker.turn()
        assert asker.until_heard(1) == [body]


def test_a_request_larger_than_the_buffers_of_the_socket(asker: Asker, node: Node) -> None:
    body = bytes(20 << 20)
    asker.ask(node.endpoint, body)
    asker.turn()
    with node.accept() as client, ThreadPoolExecutor(1) as other:
        received = other.submit(receive, client)
        while not received.done():
            for descriptor, event in asker.poller.poll(0.01):
                asker.peers.handle(descriptor, event)
        number, told = received.result()
        assert told == body
        client.sendall(answer(number, b"thanks"))
        assert asker.until_heard(1) == [b"thanks"]


def test_nobody_listens(asker: Asker, node: Node) -> None:
    node.listening.close()
    asker.ask(node.endpoint)
    assert not asker.heard  # never inside of `ask`
    [reason] = asker.until_heard(1)
    assert "refused" in str(reason)
    assert f":{node.endpoint.port}" in str(reason)


def test_the_next_request_makes_a_new_connection(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint)
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        receive(client)
    assert len(asker.until_heard(2)) == 2
    assert all("closed" in str(each) or "reset" in str(each) for each in asker.heard)
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        number, _ = receive(client)
        client.sendall(answer(number, b"back"))
        assert asker.until_heard(3)[-1] == b"back"


def test_no_answer_in_time(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint, timeout_ms=500)
    asker.ask(node.endpoint, timeout_ms=9000)
    asker.turn()
    with node.accept() as client:
        receive(client)
        asker.now_ms += 499
        asker.peers.tick()
        assert not asker.heard
        asker.now_ms += 1
        assert [str(each).partition(": ")[2] for each in asker.until_heard(2)] == ["there was no answer in time"] * 2
        receive(client)
        assert is_closed(client)
    assert asker.peers.next_ms == float("inf")


def test_a_node_that_does_not_even_accept(asker: Asker) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        endpoint = Endpoint(*full.getsockname())
        fillers = [socket.socket() for _ in range(4)]
        for each in fillers:
            each.setblocking(False)
            each.connect_ex(tuple(endpoint))
        asker.ask(endpoint)
        asker.now_ms += 500
        assert "in time" in str(asker.until_heard(1)[0])
        for each in fillers:
            each.close()


@pytest.mark.parametrize(
    "garbled",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 3),
        struct.pack(">i", LARGEST + 1),
        answer(4711, b"?"),
        struct.pack(">iiB", 5, 1, 0xFF),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
    ids=["negative", "too small", "too large", "to another request", "tagged fields that end early", "HTTP"],
)
def test_what_is_no_answer(asker: Asker, node: Node, garbled: bytes) -> None:
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        receive(client)
        client.sendall(garbled)
        [reason] = asker.until_heard(1)
        assert isinstance(reason, str)
        assert is_closed(client)


def test_an_answer_that_nobody_asked_for(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        number, _ = receive(client)
        client.sendall(answer(number, b"1") + answer(number + 1, b"2"))
        assert asker.until_heard(1) == [b"1"]
        assert is_closed(client)


@pytest.mark.parametrize("error", [MalformedRequest("it ends early"), RuntimeError("a mistake")], ids=repr)
def test_who_takes_an_answer_may_refuse_it(asker: Asker, node: Node, error: Exception) -> None:
    def refuse(body: memoryview) -> None:
        raise error

    asker.peers.ask(
        node.endpoint,
        "life",
        HEARTBEAT,
        2,
        [],
        timeout_ms=500,
        client_id="7",
        answered=refuse,
        failed=asker.heard.append,
    )
    asker.turn()
    with node.accept() as client:
        number, _ = receive(client)
        client.sendall(answer(number, b"1"))
        [reason] = asker.until_heard(1)
        assert is_closed(client)
    if isinstance(error, MalformedRequest):
        assert str(reason).endswith("it ends early")
        assert not asker.notices
    else:
        assert "a mistake" in asker.notices[0]


def test_disconnect(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        receive(client)
        asker.peers.disconnect(node.endpoint, "life", "it is not the controller")
        assert str(asker.until_heard(1)[0]).endswith("it is not the controller")
        assert is_closed(client)
    asker.peers.disconnect(node.endpoint, "life", "there is none any more")


def test_close_tells_nobody(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        receive(client)
        asker.peers.close()
        assert is_closed(client)
    asker.ask(node.endpoint)
    asker.peers.tick()
    assert not asker.heard
    assert asker.peers.next_ms == float("inf")


def test_names_are_looked_up_elsewhere(asker: Asker, node: Node) -> None:
    asker.ask(Endpoint("localhost", node.endpoint.port))  # ::1 comes first where it is known, and nobody listens there
    assert asker.called.wait(PATIENCE_S)
    asker.calls.pop()()
    with ThreadPoolExecutor(1) as other:
        accepted = other.submit(node.accept)
        while not accepted.done():
            for descriptor, event in asker.poller.poll(0.01):
                asker.peers.handle(descriptor, event)
        with accepted.result() as client:
            for descriptor, event in asker.poller.poll(0):
                asker.peers.handle(descriptor, event)
            number, _ = receive(client)
            client.sendall(answer(number, b"found"))
            assert asker.until_heard(1) == [b"found"]


def answer_next(asker: Asker, node: Node) -> None:
    """Answer the request that comes next to a node."""
    with node.accept() as client:
        asker.turn()  # it is connected
        number, _ = receive(client)
        client.sendall(answer(number, b"found"))
        heard = len(asker.heard)
        assert asker.until_heard(heard + 1)[-1] == b"found"


def test_what_is_found_too_late_is_there_for_the_next_request(
    asker: Asker, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that is down makes every search last longer than a heartbeat waits."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", node.endpoint)]
    searches: list[str] = []

    def search(host: str, port: int, *, flags: int, **_: object) -> object:
        if flags:
            raise socket.gaierror
        searches.append(host)
        return found

    monkeypatch.setattr(socket, "getaddrinfo", search)
    endpoint = Endpoint("controller.example", node.endpoint.port)
    asker.ask(endpoint)
    assert asker.called.wait(PATIENCE_S)
    for number in (1, 2):
        asker.now_ms += 1000
        asker.until_heard(number)
        asker.ask(endpoint)  # does not search a second time
    asker.calls.pop()()  # somebody waits
    answer_next(asker, node)
    asker.peers.disconnect(endpoint, "life", "")
    asker.called.clear()
    asker.ask(endpoint)
    assert asker.called.wait(PATIENCE_S)
    asker.now_ms += 1000
    asker.until_heard(4)
    asker.calls.pop()()  # nobody waits any more
    asker.ask(endpoint)
    answer_next(asker, node)
    assert searches == ["controller.example"] * 2


def test_an_address_that_leads_nowhere_is_left_out_the_next_time(
    asker: Asker, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, socket.socket() as first, socket.socket() as second:
        for each in (first, second):  # nobody accepts: the third one waits for ever
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        places = [full.getsockname(), node.endpoint]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", place) for place in places]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        asker.ask(Endpoint("controller.example", 1))
        asker.now_ms += 1000
        asker.until_heard(1)
        asker.ask(Endpoint("controller.example", 1))
        answer_next(asker, node)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70, "\udc80"], ids=ascii)
def test_a_host_that_is_not_known(asker: Asker, host: str) -> None:
    asker.ask(Endpoint(host, 9092), timeout_ms=1_000_000)
    assert asker.called.wait(PATIENCE_S)
    asker.calls.pop()()
    assert "is not known" in str(asker.until_heard(1)[0])


@pytest.mark.parametrize("port", [-1, 0, 70_000])
def test_a_port_that_cannot_be(asker: Asker, port: int) -> None:
    asker.ask(Endpoint("127.0.0.1", port))
    while not asker.heard:
        if asker.calls:
            asker.calls.pop()()
        asker.peers.tick()
        for descriptor, event in asker.poller.poll(0.01):
            asker.peers.handle(descriptor, event)
    assert isinstance(asker.heard[0], str)


def test_a_fork_leaves_the_connections_to_its_parent(asker: Asker, node: Node) -> None:
    asker.ask(node.endpoint)
    asker.turn()
    with node.accept() as client:
        number, _ = receive(client)
        child = os.fork()
        if not child:
            asker.peers.abandon()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        client.sendall(answer(number, b"to the parent"))
        assert asker.until_heard(1) == [b"to the parent"]
        asker.peers.close()
        assert is_closed(client)  # the child does not hold it open
