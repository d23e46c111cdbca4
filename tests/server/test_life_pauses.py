"""Work that waits for the disk is not done by the thread that serves."""

from __future__ import annotations

import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from octavo.broker.answers import Later, Work
from octavo.broker.cluster_image import TopicImage
from octavo.broker.topic_settings import topic_settings
from octavo.broker.wire.api_keys import (
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DESCRIBE_CONFIGS,
    DESCRIBE_PRODUCERS,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    PRODUCE,
)
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.files.leader_epochs import LeaderEpochs
from octavo.log.log import Log
from octavo.log.writing.flushing import Flushing
from octavo.records import BatchBuilder, Codec
from octavo.records.compression import compress
from octavo.records.kernels import validate
from octavo.records.kernels.compilation.loading import as_machine_code
from octavo.server import reactor
from octavo.server.serving import Server, serve
from tests.server import requests
from tests.server.conversation import Conversation
from tests.server.question import Question
from tests.server.questions import batch
from tests.server.raw import PATIENCE_S, RawClient

_REACTOR = "octavo-reactor"


@pytest.fixture
def client(served: Server) -> Iterator[Conversation]:
    served.directory.create_topic("events", config={"flush.messages": "1"})
    served.directory.create_topic("others")
    yield Conversation(served.bootstrap_servers)
    served.directory.delete_topic("events")
    served.directory.delete_topic("others")


def produce(client: Conversation, topic: str, value: bytes = b"one", *, records: bytes | None = None) -> None:
    content = {
        "transactional_id": None,
        "acks": 1,
        "timeout_ms": 1000,
        "topic_data": [{"name": topic, "partition_data": [{"index": 0, "records": records or batch(value)}]}],
    }
    (answer,) = client.raw_answer(PRODUCE, 9, content).responses
    assert answer.partition_responses[0].error_code == 0


def noting_threads(monkeypatch: pytest.MonkeyPatch, kind: type | ModuleType, method: str) -> list[str]:
    """Return the names of the threads that call the method from now on."""
    threads: list[str] = []
    really = getattr(kind, method)

    def noting(self: object, *arguments: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return really(self, *arguments, **options)

    monkeypatch.setattr(kind, method, noting)
    return threads


def test_flushes_of_appends(client: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    produce(client, "others")  # from now on everything is loaded
    appending = noting_threads(monkeypatch, Log, "append")
    flushing = noting_threads(monkeypatch, Flushing, "flush")
    produce(client, "others")
    assert (appending, flushing) == ([_REACTOR], [])
    produce(client, "events")
    assert flushing == appending[1:] != [_REACTOR]


def test_deletion_of_records(client: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    produce(client, "events")
    deleting = noting_threads(monkeypatch, Log, "delete_records_before")
    topics = [{"name": "events", "partitions": [{"partition_index": 0, "offset": 1}]}]
    (topic,) = client.raw_answer(DELETE_RECORDS, 1, {"topics": topics, "timeout_ms": 1000}).topics
    assert topic.partitions[0].low_watermark == 1
    assert deleting not in ([], [_REACTOR])


def test_appends_to_a_log_that_another_thread_changes(
    served: Server, client: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(client, "others")
    log = served.directory.log("others", 0)
    begun, released = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        begun.set()
        assert released.wait(PATIENCE_S)

    monkeypatch.setattr("octavo.log.log.roll_at_end", hold)  # is called with the lock
    holding = threading.Thread(target=log.roll)
    holding.start()
    assert begun.wait(PATIENCE_S)
    appending = noting_threads(monkeypatch, Log, "append")
    producing = threading.Thread(target=produce, args=(client, "others"))
    producing.start()
    deadline = time.monotonic() + PATIENCE_S
    while not appending:
        assert time.monotonic() < deadline
    Conversation(served.bootstrap_servers).raw_answer(API_VERSIONS, 0, {})  # others are served
    released.set()
    producing.join()
    holding.join()
    assert appending not in ([], [_REACTOR])


def test_appends_to_a_log_that_another_thread_begins_to_change(
    served: Server, client: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(client)
    log = served.directory.log("others", 0)
    really = Log.would_wait
    held, released = threading.Event(), threading.Event()

    def hold() -> None:
        with log.lock:
            held.set()
            assert released.wait(2 * PATIENCE_S)

    holding = threading.Thread(target=hold)

    def then_hold(self: Log) -> bool:
        answer = really(self)
        if not held.is_set():
            holding.start()
            assert held.wait(PATIENCE_S)
        return answer

    monkeypatch.setattr(Log, "would_wait", then_hold)
    producing = threading.Thread(target=produce, args=(client, "others"))
    producing.start()
    assert held.wait(PATIENCE_S)
    try:
        for _ in range(20):
            Conversation(served.bootstrap_servers).raw_answer(API_VERSIONS, 0, {})  # others are served
    finally:
        released.set()
        producing.join()
        holding.join()
    assert log.end_offset == 3


def test_rolls_that_wait_for_the_disk(served: Server, client: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    served.directory.set_config("others", {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)})
    served.directory.set_config("others", {"cleanup.policy": "delete"})  # it may have been compacted
    rolling = noting_threads(monkeypatch, Flushing, "before_roll")
    while not rolling:
        produce(client, "others", b"x" * 300_000)
    assert _REACTOR not in rolling


@pytest.mark.parametrize(
    "config",
    [
        {"cleanup.policy": "compact", "segment.ms": "1"},
        {"cleanup.policy": "compact", "segment.index.bytes": "24", "index.interval.bytes": "0"},
        {"cleanup.policy": "compact", "internal.segment.bytes": "4000", "compression.type": "uncompressed"},
        {"internal.segment.bytes": "4000", "compression.type": "uncompressed"},
    ],
    ids=["by time", "by index", "records become larger", "the first roll of a log"],
)
def test_rolls_for_any_reason(
    served: Server, client: Conversation, monkeypatch: pytest.MonkeyPatch, config: dict[str, str]
) -> None:
    load(client)
    # Once the background has written that the log is there, its first roll waits for nothing.
    monkeypatch.setattr(DataDirectory, "write_checkpoints", lambda directory: None)
    served.directory.create_topic("rolling", config=config)
    rolling = noting_threads(monkeypatch, Flushing, "before_roll")
    count = 0
    while not rolling:
        builder = BatchBuilder(codec=Codec.GZIP)
        builder.append(b"key", b"x" * 1500, timestamp_ms=int(time.time() * 1000) + 10 * count)
        produce(client, "rolling", records=builder.build())
        count += 1
    log = served.directory.log("rolling", 0)
    assert log.end_offset == count
    assert len(log.segments) == 2
    served.directory.delete_topic("rolling")
    assert _REACTOR not in rolling


@pytest.mark.parametrize(
    ("first", "second"), [(b"one", bytes(5 << 20)), (bytes(3 << 20), bytes(3 << 20))], ids=["one long", "long together"]
)
def test_records_that_decompress_to_much(
    served: Server, client: Conversation, monkeypatch: pytest.MonkeyPatch, first: bytes, second: bytes
) -> None:
    served.directory.create_topic("compressed", partitions=2)
    load(client)
    for log in (served.directory.log("compressed", each) for each in (0, 1)):
        log.append(batch(b"an epoch has begun"))
    appending = noting_threads(monkeypatch, Log, "append")
    partitions = [{"index": 0, "records": compressed(first)}, {"index": 1, "records": compressed(second)}]
    topics = [{"name": "compressed", "partition_data": partitions}]
    content = {"transactional_id": None, "acks": 1, "timeout_ms": 1000, "topic_data": topics}
    (answer,) = client.raw_answer(PRODUCE, 9, content).responses
    assert [(each.error_code, each.base_offset) for each in answer.partition_responses] == [(0, 1), (0, 1)]
    assert [served.directory.log("compressed", each).end_offset for each in (0, 1)] == [2, 2]  # not twice
    assert appending[:2] == [_REACTOR, _REACTOR]
    assert len(appending) == 3
    assert appending[2] != _REACTOR
    served.directory.delete_topic("compressed")


def test_records_that_have_to_be_compressed(
    served: Server, client: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.directory.set_config("others", {"compression.type": "zstd", "compression.zstd.level": "22"})
    produce(client, "others")
    threads: list[str] = []

    def noting(*arguments: Any, **options: Any) -> Any:
        threads.append(threading.current_thread().name)
        return compress(*arguments, **options)

    monkeypatch.setattr("octavo.log.append.rewriting.compress", noting)
    produce(client, "others")
    assert len(threads) == 1
    assert _REACTOR not in threads
    produce(client, "others", records=compressed(b"one"))
    assert len(threads) == 1
    assert served.directory.log("others", 0).end_offset == 3


def test_records_that_decompress_to_little(client: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    load(client)
    appending = noting_threads(monkeypatch, Log, "append")
    for _ in range(3):  # each request has its own allowance
        produce(client, "others", records=compressed(bytes(3 << 20)))
    assert appending == [_REACTOR] * 3


def compressed(value: bytes) -> bytes:
    """Return a batch of a few hundred bytes, whatever the size of the value."""
    builder = BatchBuilder(codec=Codec.ZSTD)
    builder.append(None, value, timestamp_ms=1000)
    return bytes(builder.build())


@pytest.mark.parametrize(
    ("timestamp_ms", "offset"), [(1000, 0), (-3, 0), (-1, 1), (-2, 0), (-4, 0), (-5, -1), (-6, -1)]
)
def test_offsets_that_are_looked_up_in_records(
    client: Conversation, monkeypatch: pytest.MonkeyPatch, timestamp_ms: int, offset: int
) -> None:
    produce(client, "others", records=compressed(b"one"))
    looking = noting_threads(monkeypatch, Log, "offset_for_timestamp")
    largest = noting_threads(monkeypatch, Log, "max_timestamp_offset")
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp_ms}
    asked = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": "others", "partitions": [partition]}]}
    (topic,) = client.raw_answer(LIST_OFFSETS, 11, asked | {"timeout_ms": 1000}).topics
    assert (topic.partitions[0].error_code, topic.partitions[0].offset) == (0, offset)
    assert len(looking + largest) == (timestamp_ms >= 0 or timestamp_ms == -3)
    assert _REACTOR not in looking + largest


def test_descriptions_of_producers_while_another_thread_changes_the_log(served: Server, client: Conversation) -> None:
    with served.directory.log("others", 0).lock:
        asked = {"topics": [{"name": "others", "partition_indexes": [0]}]}
        asking = threading.Thread(target=client.raw_answer, args=(DESCRIBE_PRODUCERS, 0, asked))
        asking.start()
        for _ in range(20):  # others are served
            Conversation(served.bootstrap_servers).raw_answer(API_VERSIONS, 0, {})
        assert asking.is_alive()
    asking.join()


@pytest.mark.parametrize("count", [1, 50])
def test_descriptions_of_many_settings(client: Conversation, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    threads: list[str] = []
    really = topic_settings

    def noting(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return really(*arguments)

    monkeypatch.setattr("octavo.broker.apis.describe_configs.topic_settings", noting)
    resources = [{"resource_type": 2, "resource_name": "others", "configuration_keys": None}] * count
    asked = {"resources": resources, "include_synonyms": False, "include_documentation": False}
    assert len(client.raw_answer(DESCRIBE_CONFIGS, 4, asked).results) == count
    assert len(threads) == count
    assert set(threads) == {_REACTOR} if count == 1 else _REACTOR not in threads


def load(client: Conversation) -> None:
    """Load all that appends need: what is interpreted takes longer."""
    produce(client, "others")
    as_machine_code(validate.validate)
    produce(client, "others")


def test_the_first_append_of_an_epoch(client: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    appending = noting_threads(monkeypatch, Log, "append")
    writing = noting_threads(monkeypatch, LeaderEpochs, "_write")
    produce(client, "others")
    produce(client, "others")
    assert writing == appending[:1] != [_REACTOR]
    assert appending[1:] == [_REACTOR]


def test_a_large_request_that_another_thread_answers_is_copied_once(served: Server, client: Conversation) -> None:
    frame = memoryview(requests.frame(requests.produce("events", batch(b"x" * 900_000))))
    produce(client, "events")  # from now on everything is loaded

    class Here:
        listener = ("localhost", 9092)
        listener_name = "PLAINTEXT"
        peer = "here"

    tracemalloc.start()
    try:
        answer = served.broker.handle(frame, Here())
        assert isinstance(answer, Later)
        assert len(frame) <= tracemalloc.get_traced_memory()[0] < 1.5 * len(frame)
    finally:
        tracemalloc.stop()


def creation(name: str) -> Question:
    """Return a request for a topic."""
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    return Question(CREATE_TOPICS, 4, {"topics": [topic], "timeout_ms": 1000, "validate_only": False})


@contextmanager
def creating(server: Server, names: list[str]) -> Iterator[Callable[[], None]]:
    """Have topics created, each by another client, and wait until as many as possible are under way.

    Yields what has them go on.
    """
    really_create = server.broker.create_topic
    begun, released = threading.Semaphore(0), threading.Event()

    def create(name: str, partitions: int, config: Mapping[str, str]) -> TopicImage:
        begun.release()
        assert released.wait(2 * PATIENCE_S)  # clients give up before
        return really_create(name, partitions, config)

    server.broker.create_topic = create  # type: ignore[method-assign] # to know when it is under way
    clients = [RawClient(server.bootstrap_servers) for _ in names]
    for each, name in zip(clients, names, strict=True):
        each.send(requests.frame(creation(name)))
    for _ in range(2):
        assert begun.acquire(timeout=PATIENCE_S)
    yield released.set
    released.set()
    for each in clients:
        each.socket.close()


def test_nobody_waits_for_topics_that_others_create() -> None:
    with serve() as server, Conversation(server.bootstrap_servers) as client:
        server.directory.create_topic("events", config={"flush.messages": "1"})
        with creating(server, ["a", "b", "c"]):
            produce(client, "events")
            asked = {"transactional_id": None, "transaction_timeout_ms": 1000, "producer_id": -1, "producer_epoch": -1}
            assert client.raw_answer(INIT_PRODUCER_ID, 4, asked).error_code == 0


def test_what_waits_for_a_thread_is_dropped_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reactor, "_LAST_WORK_S", 0)
    server = serve(tmp_path / "data")
    with creating(server, ["a", "b", "c", "d"]) as go_on:
        Conversation(server.bootstrap_servers).raw_answer(API_VERSIONS, 0, {})
        closing = threading.Thread(target=server.close)
        closing.start()
        changing = server._workers[Work.CHANGE]
        deadline = time.monotonic() + PATIENCE_S
        with suppress(RuntimeError):  # it takes no more work
            while time.monotonic() < deadline:
                changing.submit(time.monotonic)
        go_on()
        closing.join()
    assert len(list((tmp_path / "data").glob("[abcd]-0"))) == 2
