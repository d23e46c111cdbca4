"""Clients that misbehave, one way each: the broker serves the others, says what happened, and gives everything back."""

from __future__ import annotations

import contextlib
import resource
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crc32c import crc32c

from octavo.broker.wire import api_keys
from octavo.broker.wire.api_keys import API_VERSIONS
from octavo.broker.wire.primitives import MAX_ITEMS, uvarint
from octavo.records import BatchBuilder, Codec
from octavo.records.compression import compress
from octavo.records.layout import HEADER_SIZE
from octavo.server.serving import Server
from tests.server.child import ChildBroker
from tests.server.conversation import Conversation
from tests.server.questions import batch
from tests.server.raw import RawClient, header
from tests.server.requests import MAX_INT32, create, delete, fetch, frame, produce

VERSIONS = header(API_VERSIONS, 2, flexible=False)
MANY = 2000
TRIES = 20_000


@pytest.fixture(scope="module", autouse=True)
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildBroker]:
    with ChildBroker(tmp_path_factory.mktemp("hostile"), {"log.segment.delete.delay.ms": "0"}) as broker:
        with Conversation(broker.address) as talk:
            talk.ask(*create("events"))
            talk.ask(*produce("events", batch(b"one")))
            talk.ask(*fetch("events", 0))
        yield broker
        assert broker.stop() == 0
        assert "Traceback" not in broker.said
        assert " failed: " not in broker.said


def connect(address: str, number: int) -> list[RawClient]:
    """Connect one after the other, because more than a few at once would have to wait."""
    clients = []
    for _ in range(number):
        clients.append(RawClient(address))
        assert clients[-1].ask(VERSIONS) is not None
    return clients


def close(clients: list[RawClient], *, reset: bool = False) -> None:
    for each in clients:
        if reset:
            each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        each.socket.close()


def bomb(codec: Codec, size: int) -> bytes:
    """A batch of a few hundred kilobytes that decompresses to zeros, which are no record."""
    builder = BatchBuilder(codec=codec)
    builder.append(None, b"x" * 100, timestamp_ms=1)
    stream = compress(codec, bytes(size))
    checked = builder.build()[21:HEADER_SIZE] + stream
    head = struct.pack(">qiib", 0, HEADER_SIZE - 12 + len(stream), 0, 2)
    return head + struct.pack(">I", crc32c(checked)) + checked


def ask_until(address: str, is_so: Callable[[], bool]) -> None:
    """Ask the broker something until it has got so far."""
    with Conversation(address) as talk:
        ask_through(talk, is_so)


def is_served(address: str) -> bool:
    with RawClient(address) as client:
        return client.ask(VERSIONS) is not None


def test_two_thousand_idle_connections_take_little(child: ChildBroker) -> None:
    memory, descriptors = child.memory, child.descriptors
    clients = connect(child.address, MANY)
    more = child.memory - memory
    close(clients)
    ask_until(child.address, lambda: child.descriptors <= descriptors + 1)
    assert more < 10 << 20, f"{more >> 10} KiB more"


def test_a_request_takes_memory_as_it_arrives_and_not_as_it_is_announced(child: ChildBroker) -> None:
    memory = child.memory
    clients = connect(child.address, MANY)
    for each in clients:
        each.socket.sendall(struct.pack(">ihh", 100_000_000, 0, 8))
    assert is_served(child.address)
    more = child.memory - memory
    close(clients)
    assert more < 40 << 20, f"{more >> 10} KiB more"


@pytest.mark.parametrize(
    ("codec", "size"),
    [(Codec.GZIP, 300 << 20), (Codec.GZIP, 200 << 20), (Codec.ZSTD, 200 << 20), (Codec.LZ4, 200 << 20)],
)
def test_what_a_bomb_took_is_given_back(child: ChildBroker, codec: Codec, size: int) -> None:
    """Mend 2.3: neither what was refused for its size nor what was decompressed stays in memory."""
    batches = bomb(codec, size)
    with Conversation(child.address) as talk:
        for _ in range(4):  # what the codec and its threads need for good
            talk.ask(*produce("events", bomb(codec, 5 << 20)))
        memory = child.memory
        for _ in range(4):
            [topic] = talk.ask(*produce("events", batches))["responses"]
            assert topic["partition_responses"][0]["error_code"] != 0
        more = child.memory - memory
    assert more < 40 << 20, f"{more >> 10} KiB more"


@pytest.mark.parametrize(
    "body",
    [
        header(api_keys.METADATA, 1, flexible=False) + struct.pack(">i", MAX_INT32),
        header(api_keys.METADATA, 9, flexible=True) + uvarint(MAX_INT32),
        header(api_keys.METADATA, 9, flexible=False) + uvarint(MAX_INT32) + b"\0\0" * 1000,
        header(api_keys.METADATA, 9, flexible=True) + uvarint(MAX_ITEMS + 2) + b"\2a\0" * (MAX_ITEMS + 1) + bytes(4),
        header(api_keys.PRODUCE, 3, flexible=False) + struct.pack(">hhii", -1, 1, 1, MAX_INT32),
        header(api_keys.PRODUCE, 3, flexible=False)
        + struct.pack(">hhiih1sii", -1, 1, 1, 1, 1, b"t", 1, 0)
        + b"\x7f" * 4,
        header(api_keys.FETCH, 4, flexible=False) + struct.pack(">iiiibi", -1, 1, 1, MAX_INT32, 0, MAX_INT32),
        header(api_keys.LIST_OFFSETS, 1, flexible=False) + struct.pack(">ii", -1, MAX_INT32),
        header(api_keys.CREATE_TOPICS, 2, flexible=False) + struct.pack(">i", MAX_INT32),
        header(api_keys.METADATA, 1, flexible=False) + bytes(3 << 20),
    ],
)
def test_more_items_than_can_be_are_refused_at_once(child: ChildBroker, body: bytes) -> None:
    with RawClient(child.address) as client:
        assert client.ask(body) is None
    assert is_served(child.address)


def test_clients_that_do_not_read_what_they_fetch_take_little_and_give_it_back(child: ChildBroker) -> None:
    with Conversation(child.address) as talk:
        talk.ask(*create("large"))
        for _ in range(8):
            talk.ask(*produce("large", batch(b"x" * 1_000_000)))
        memory, descriptors = child.memory, child.descriptors
        clients = connect(child.address, 50)
        wanted = frame(fetch("large", 0, max_bytes=8 << 20))
        for each in clients:
            each.socket.sendall((struct.pack(">i", len(wanted)) + wanted) * 50)
        assert is_served(child.address)
        assert child.memory - memory < 20 << 20
        talk.ask(*delete("large"))  # the files are held only by answers that nobody reads
        assert is_served(child.address)
        close(clients)
        ask_until(child.address, lambda: child.descriptors <= descriptors + 1)


@pytest.mark.parametrize("number", [1, 300])
def test_a_client_that_shuts_down_its_side_gets_its_answers(served: Server, number: int) -> None:
    with RawClient(served.bootstrap_servers) as client:
        client.socket.sendall((struct.pack(">i", len(VERSIONS)) + VERSIONS) * number)
        client.socket.shutdown(socket.SHUT_WR)
        for _ in range(number):
            assert client.receive() is not None
        assert client.receive() is None


def test_clients_that_shut_down_their_side_while_they_wait_do_not_keep_the_broker_busy(child: ChildBroker) -> None:
    clients = connect(child.address, 20)
    before = child.cpu_s
    for each in clients:
        each.send(frame(fetch("events", 1, max_wait_ms=1000)))
        each.socket.shutdown(socket.SHUT_WR)
    assert all(each.receive() is not None for each in clients)
    assert all(each.receive() is None for each in clients)
    assert child.cpu_s - before < 0.5  # a loop without a pause would have taken a second
    close(clients)


@pytest.mark.parametrize("max_wait_ms", [60_000, MAX_INT32])
def test_a_wait_ends_with_its_connection(served: Server, max_wait_ms: int) -> None:
    address = served.bootstrap_servers
    with Conversation(address) as talk:
        talk.ask(*create("awaited"))
        clients = connect(address, 20)
        for each in clients:
            each.send(frame(fetch("awaited", 0, max_wait_ms=max_wait_ms)))
        ask_until(address, lambda: served.statistics().waiting == 20)
        close(clients, reset=True)
        ask_until(address, lambda: served.statistics().waiting == 0)
        talk.ask(*delete("awaited"))


def test_a_wait_ends_with_its_connection_although_more_was_sent_on_it(served: Server) -> None:
    """What has arrived of the next request is not read while one waits, so nothing else tells of the end either."""
    address = served.bootstrap_servers
    with Conversation(address) as talk:
        talk.ask(*create("awaited"))
        clients = connect(address, 5)
        for each in clients:
            each.send(frame(fetch("awaited", 0, max_wait_ms=MAX_INT32)))
        ask_until(address, lambda: served.statistics().waiting == 5)
        for each in clients:
            each.send(VERSIONS)
        assert is_served(address)  # some turns later
        close(clients, reset=True)
        ask_until(address, lambda: served.statistics().waiting == 0)
        talk.ask(*delete("awaited"))


def test_waits_that_were_answered_long_before_their_time_leave_nothing(served: Server) -> None:
    with Conversation(served.bootstrap_servers) as talk, RawClient(served.bootstrap_servers) as waiting:
        talk.ask(*create("soon"))
        for number in range(300):
            waiting.send(frame(fetch("soon", number, max_wait_ms=MAX_INT32)))
            talk.ask(*produce("soon", batch(b"now")))
            assert waiting.receive() is not None
    assert len(served._reactor._deadlines) <= 65


def test_a_request_is_carried_out_although_its_client_is_gone(served: Server) -> None:
    (client,) = connect(served.bootstrap_servers, 1)
    client.send(frame(create("of-the-gone")))
    close([client], reset=True)
    with contextlib.suppress(AssertionError):  # the kernel may have dropped the request
        ask_until(served.bootstrap_servers, lambda: "of-the-gone" in served.directory.topics)
    assert is_served(served.bootstrap_servers)


def test_when_descriptors_run_out_the_others_are_served_and_the_log_has_files(tmp_path: Path) -> None:
    with ChildBroker(tmp_path) as broker, Conversation(broker.address) as talk:
        talk.ask(*create("before"))
        limit = broker.descriptors + 80
        resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        clients = [RawClient(broker.address) for _ in range(70)]
        ask_through(talk, lambda: "descriptors are in use" in broker.said)
        before = broker.cpu_s
        talk.ask(*create("afterwards"))
        for _ in range(100):
            told = talk.raw_answer(*produce("afterwards", batch(b"one")))
            assert told.responses[0].partition_responses[0].error_code == 0
        assert broker.cpu_s - before < 1
        assert broker.said.count("\n") <= 5
        close(clients)
        assert is_served(broker.address)
        assert broker.stop() == 0


def ask_through(talk: Conversation, is_so: Callable[[], bool]) -> None:
    """Ask the broker something, on a connection that there is already, until it has got so far."""
    for _ in range(TRIES):
        if is_so():
            return
        talk.raw_answer(API_VERSIONS, 2, {})
    raise AssertionError("it does not come to that")


def test_a_topic_without_a_name_and_an_id_is_no_mistake_of_ours(child: ChildBroker) -> None:
    """The fuzzer found this: the answer cannot have the null that was asked for."""
    nothing = uvarint(2) + bytes(16) + b"\0\0" + b"\1\0\0"
    with RawClient(child.address) as client:
        client.ask(header(api_keys.METADATA, 11, flexible=True) + nothing)
    assert is_served(child.address)
