"""Calls as kafka-python and confluent-kafka have them: they work, or say in one sentence what to write instead."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from octavo.errors import InvalidConfig, InvalidInput, OctavoError, UnknownPartition, WrongCall
from octavo.log import Consumer, DataDirectory, OffsetAndMetadata, Producer, TopicPartition


class KafkaPython:
    """Types of kafka-python, as it declares them. Importing it takes long, and warns."""

    TopicPartition = namedtuple("TopicPartition", ["topic", "partition"])
    OffsetAndMetadata = namedtuple("OffsetAndMetadata", ["offset", "metadata", "leader_epoch"])

    class DefaultPartitioner:
        @classmethod
        def __call__(cls, key: object, all_partitions: object, available: object) -> int:
            return 0


# Types of what is called wrongly here would be complained about: that is half of the help.
Wrong = Any
T0 = TopicPartition("orders", 0)
T1 = TopicPartition("orders", 1)


@pytest.fixture(name="data")
def data_(tmp_path: Path) -> Iterator[DataDirectory]:
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("orders", 2)
        yield data


@pytest.fixture(name="producer")
def producer_(data: DataDirectory) -> Iterator[Wrong]:
    with Producer(data, {"transactional.id": "billing"}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        yield producer


@pytest.fixture(name="consumer")
def consumer_(data: DataDirectory) -> Iterator[Wrong]:
    with Producer(data) as producer:
        for number in range(10):
            producer.send("orders", b"%d" % number, partition=number % 2)
    with Consumer(data, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        yield consumer


# -------------------------------------------------------------------------------------------------------- kafka-python


def test_what_a_program_for_kafka_python_calls_works(data: DataDirectory) -> None:
    producer = Producer(
        data,
        acks="all",
        value_serializer=lambda text: text.encode(),
        linger_ms=5,
        compression_type="gzip",
        retries=3,
        client_id="me",
    )
    future = producer.send("orders", "one", b"k", partition=1, headers=[("h", b"1")], timestamp_ms=1_700_000_000_000)
    assert future.result(timeout=10).partition == 1
    producer.send("orders", value="two", key=None, partition=1)
    producer.flush(timeout=10)
    producer.close(timeout=10)

    consumer = Consumer(
        data,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        value_deserializer=lambda value: value.decode(),
    )
    partition: Wrong = KafkaPython.TopicPartition("orders", 1)
    consumer.assign([partition])
    consumer.seek_to_beginning()
    assert [record.value for record in consumer.poll(max_records=5)] == ["one", "two"]
    assert consumer.position(partition) == 2
    consumer.commit()
    consumer.seek_to_end(partition)
    consumer.seek_to_beginning(partition)
    consumer.seek(partition, 1)
    consumer.pause(partition)
    assert consumer.paused() == [partition]
    consumer.resume(partition)
    assert [record.value for record in consumer.records(timeout=0)] == ["two"]
    assert consumer.end_offsets([partition]) == {partition: 2}
    half: Wrong = KafkaPython.OffsetAndMetadata(1, "half", 0)
    consumer.commit({partition: half})
    assert consumer.committed([partition]) == {T1: OffsetAndMetadata(1, "half", 0)}
    consumer.unsubscribe()
    consumer.subscribe(topics=["orders"])
    consumer.subscribe(pattern="^ord.*")
    assert consumer.assignment() == [T0, T1]
    consumer.close()


@pytest.mark.parametrize("acks", ["all", -1, 0, 1])
def test_acks_can_be_a_number_as_in_kafka_python(data: DataDirectory, acks: Wrong) -> None:
    with Producer(data, acks=acks) as producer:
        assert producer.config.enable_idempotence == (acks in ("all", -1))


def without_directory() -> list[tuple[Callable[..., Wrong], tuple[Wrong, ...], dict[str, Wrong], str]]:
    servers = {"bootstrap_servers": "localhost:9092"}
    dotted = {"bootstrap.servers": "localhost:9092"}
    return [
        (Producer, (), servers, r"a Producer takes a DataDirectory first.*Producer\(DataDirectory.open\('data'\)"),
        (Producer, (dotted,), {}, r"DataDirectory first, not dict.*without brokers"),
        (Producer, ("data",), {}, r"DataDirectory first, not str"),
        (Consumer, (), servers, r"a Consumer takes a DataDirectory first"),
        (Consumer, ("orders",), servers, r"not str.*subscribe\(\['orders'\]\)"),
        (Consumer, ("orders", "invoices", "more"), servers, r"not str.*subscribe\(\['orders'\]\)"),
        (Consumer, (dotted,), {}, r"DataDirectory first, not dict"),
    ]


@pytest.mark.parametrize(("client", "given", "named", "told"), without_directory())
def test_a_client_without_a_directory_says_how_it_is_made(
    client: Callable[..., Wrong], given: tuple[Wrong, ...], named: dict[str, Wrong], told: str
) -> None:
    with pytest.raises(WrongCall, match=told):
        client(*given, **named)


def test_a_producer_on_a_directory_that_is_read_only_says_so(data: DataDirectory, tmp_path: Path) -> None:
    wrong: Wrong = DataDirectory.open(tmp_path / "data", read_only=True)
    with pytest.raises(WrongCall, match="opened read-only"):
        Producer(wrong)
    assert data.is_open


def test_topics_are_not_given_to_the_constructor(data: DataDirectory) -> None:
    wrong: Wrong = "orders"
    with pytest.raises(WrongCall, match=r"write subscribe\(\['orders'\]\)"):
        Consumer(data, wrong)
    with pytest.raises(WrongCall, match=r"write subscribe\(\['orders', 'invoices'\]\)"):
        Consumer(data, {}, wrong, *["invoices"])  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    ("client", "name", "told"),
    [
        (Producer, "bootstrap_servers", "about brokers and connections"),
        (Producer, "api_version", "about brokers and connections"),
        (Producer, "sasl_mechanism", "about brokers and connections"),
        (Producer, "queue.buffering.max.ms", "write linger.ms"),
        (Producer, "message.timeout.ms", "write delivery.timeout.ms"),
        (Producer, "error_cb", "methods raise their errors"),
        (Producer, "lingerms", "is linger.ms meant"),
        (Consumer, "bootstrap.servers", "about brokers and connections"),
        (Consumer, "consumer_timeout_ms", r"consumer.records\(timeout=...\), in seconds"),
        (Consumer, "session.timeout.ms", "the broker has it, as group.consumer.session.timeout.ms"),
        (Consumer, "enable.partition.eof", "an empty list at the end"),
        (Consumer, "enable.auto.offset.store", "write enable.auto.commit"),
    ],
)
def test_an_option_of_another_client_says_what_to_write(
    data: DataDirectory, client: Wrong, name: str, told: str
) -> None:
    with pytest.raises(InvalidConfig, match=told):
        client(data, {name: "1"} if "." in name else {}, **({} if "." in name else {name: 1}))


def test_a_serializer_is_a_function_of_one_argument(data: DataDirectory) -> None:
    class Serializer:
        def serialize(self, topic: str, value: object) -> bytes:
            return repr((topic, value)).encode()

    wrong: Wrong = Serializer()
    three: Wrong = KafkaPython.DefaultPartitioner()
    with pytest.raises(WrongCall, match="value_serializer must be a function of value, not Serializer"):
        Producer(data, value_serializer=wrong)
    with pytest.raises(WrongCall, match=r"key_deserializer must be a function of key; it takes \(topic: .*value: "):
        Consumer(data, key_deserializer=wrong.serialize.__func__.__get__(wrong))
    with pytest.raises(WrongCall, match="partitioner must be a function of topic, key, value, partition_count"):
        Producer(data, partitioner=three)
    with Producer(data, value_serializer=bytes, key_serializer=str.encode):
        pass  # builtins, too


# ---------------------------------------------------------------------------------------------------------------- calls


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda it: it.send("orders", b"v", b"k", 0), "0 by name only: what follows topic, value and key is named"),
        (lambda it: it.send("orders", b"v", b"k", [("h", b"")], 0), "by name only"),
        (
            lambda it: it.send("orders", "text"),
            "must be bytes or None, not str: encode it, or give .* value_serializer",
        ),
        (lambda it: it.send("orders", b"v", {"id": 1}), "key must be bytes or None, not dict"),
        (lambda it: it.send("orders", b"v", partition=-1), "has no partition -1: it has 2"),
        (lambda it: it.send("orders", b"v", partition="0"), "partition must be a whole number, not '0'"),
        (lambda it: it.send("orders", b"v", timestamp_ms=1.5), "timestamp_ms must be a whole number, not 1.5"),
        (lambda it: it.send(b"orders", b"v"), "name is a text, not bytes"),
        (
            lambda it: it.flush(timeout_ms=500),
            "Producer.flush has no argument timeout_ms: write timeout=0.5, in seconds",
        ),
        (lambda it: it.flush(timeout_s=5), "write timeout=5, in seconds"),
        (lambda it: it.close(5, null_logger=True), "no argument null_logger: it takes timeout=None"),
        (lambda it: it.init_transactions(10.0), "Producer.init_transactions takes no arguments"),
        (lambda it: it.commit_transaction(timeout=10.0), "nothing is waited for here, leave it out"),
        (
            lambda it: it.send_offsets_to_transaction({}, object()),
            r"consumer_group_metadata\(\), not by object",
        ),
        (lambda it: it.send_offsets_to_transaction([T0], "g"), r"write \{TopicPartition\('orders', 0\): 17\}"),
    ],
)
def test_a_call_of_another_producer_says_what_to_write(
    producer: Wrong, call: Callable[[Wrong], object], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        call(producer)
    assert producer.send("orders", b"it goes on").result().offset == 0


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda it: it.poll(timeout_ms=500), "no argument timeout_ms: write timeout=0.5, in seconds"),
        (lambda it: it.poll(timeout_s=5), "no argument timeout_s: write timeout=5, in seconds"),
        (lambda it: it.poll(1.0), r"takes 1.0 by name only: write poll\(timeout=1.0\), in seconds. It returns a list"),
        (lambda it: it.poll(500, 10), "takes 500, 10 by name only"),
        (lambda it: it.poll(update_offsets=True), "no argument update_offsets: leave it out"),
        (lambda it: it.poll(whatever=1), "no argument whatever: it takes timeout, in seconds, and max_records"),
        (lambda it: it.poll(timeout=-1), "or None to wait for ever; not -1"),
        (lambda it: it.poll_arrow(1.0), r"Consumer.poll_arrow takes \*?,? ?timeout=0.0, max_records=None"),
        (lambda it: it.poll_arrow(timeout_ms=50), "write timeout=0.05, in seconds"),
        (lambda it: list(it.records(timeout_ms=50)), "write timeout=0.05, in seconds"),
        (lambda it: it.subscribe("orders"), "topics are named in a list"),
        (lambda it: it.subscribe(["^ord.*"]), r"write subscribe\(pattern='\^ord.\*'\)"),
        (
            lambda it: it.subscribe(["orders"], listener=object()),
            "has no argument listener: write on_assign=, on_revoke= and on_lost=",
        ),
        (
            lambda it: it.subscribe(["orders"], on_assign=lambda: 0),
            "on_assign must be a function of consumer, partitions",
        ),
        (lambda it: it.subscribe(["orders"], pattern="o"), "topics or a pattern, not both"),
        (lambda it: it.committed(T0), r"partitions are given in a list: write \[TopicPartition"),
        (lambda it: it.committed([T0], timeout_ms=5), "nothing is waited for here"),
        (lambda it: it.committed(T0, metadata=True), "each offset comes with its metadata"),
        (lambda it: it.position([T0]), "a partition is a TopicPartition of octavo.log"),
        (lambda it: it.position(confluent_kafka.TopicPartition("orders", 0)), "a partition is a TopicPartition"),
        (lambda it: it.seek(confluent_kafka.TopicPartition("orders", 0, 5)), "Consumer.seek takes partition, offset"),
        (lambda it: it.seek(T0, "5"), "there is no offset '5'"),
        (lambda it: it.assign(T0), r"partitions are given in a list: write \[TopicPartition"),
        (
            lambda it: it.pause(partitions=[T0]),
            "write them without a name, one by one or in one list",
        ),
        (lambda it: it.resume(partitions=[T0]), "no argument partitions: write them without a name"),
        (lambda it: it.seek_to_beginning(partitions=[T0]), "no argument partitions: write them without a name"),
        (lambda it: it.seek_to_end(partitions=[T0]), "no argument partitions: write them without a name"),
        (lambda it: it.seek_to_end(None), "given in a list, and not by None"),
        (lambda it: it.assign("orders"), r"not by a text: write partitions_for\('orders'\)"),
        (lambda it: it.offsets_for_times([T0]), r"write \{TopicPartition\('orders', 0\): 1700000000000\}"),
        (lambda it: it.poll(timeout="1s"), "a number of seconds, or None to wait for ever; not '1s'"),
        (lambda it: it.assign([confluent_kafka.TopicPartition("orders", 0)]), "a partition is a TopicPartition"),
        (lambda it: it.commit(asynchronous=False), "it returns when the offsets are written, leave it out"),
        (lambda it: it.commit(message=object()), r"write offsets=\{record.topic_partition: record.offset \+ 1\}"),
        (lambda it: it.commit([confluent_kafka.TopicPartition("orders", 0, 5)]), "offsets are given by partition"),
        (lambda it: it.commit({T0: "5"}), "an offset is a number or an OffsetAndMetadata of octavo.log, not '5'"),
        (lambda it: it.close(autocommit=False), "set enable.auto.commit in the configuration"),
        (lambda it: it.offsets_for_times(timestamps={}), "write timestamps_ms"),
    ],
)
def test_a_call_of_another_consumer_says_what_to_write(
    consumer: Wrong, call: Callable[[Wrong], object], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        call(consumer)
    assert len(consumer.poll()) == 10  # it goes on


@pytest.mark.parametrize("name", ["produce", "poll", "list_topics", "purge", "metrics", "produce_batch"])
def test_a_method_that_only_other_producers_have_says_what_to_write(producer: Wrong, name: str) -> None:
    check_missing(producer, name)


@pytest.mark.parametrize(
    "name",
    ["consume", "partitions_for_topic", "topics", "commit_async", "highwater", "store_offsets", "unassign"],
)
def test_a_method_that_only_other_consumers_have_says_what_to_write(consumer: Wrong, name: str) -> None:
    check_missing(consumer, name)


@pytest.mark.parametrize("name", ["get", "add_callback", "add_errback", "succeeded", "failed", "is_done", "value"])
def test_a_method_that_only_other_futures_have_says_what_to_write(producer: Wrong, name: str) -> None:
    check_missing(producer.send("orders", b""), name)


def test_the_time_of_a_record_is_in_milliseconds(producer: Wrong, consumer: Wrong) -> None:
    check_missing(producer.send("orders", b"").result(), "timestamp")
    check_missing(consumer.poll()[0], "timestamp")


def check_missing(thing: object, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^{type(thing).__name__} has no {name}: .*(write|leave it out)"):
        getattr(thing, name)
    assert not hasattr(thing, name)
    assert name not in dir(thing)


def test_an_error_inside_of_a_method_is_left_as_it_is(data: DataDirectory, consumer: Wrong) -> None:
    def breaks(value: bytes) -> int:
        return len(value) + "1"  # type: ignore[operator]  # that is the point

    with Consumer(data, value_deserializer=breaks, auto_offset_reset="earliest") as broken:
        broken.assign([T0])
        with pytest.raises(OctavoError, match="cannot be deserialized"):
            broken.poll()
    with pytest.raises(TypeError, match="not supported between"):
        consumer.offsets_for_times({T0: "yesterday"})


# -------------------------------------------------------------------------------------------- the same in both clients


def test_partitions_for_is_the_same_in_both_clients(data: DataDirectory, tmp_path: Path) -> None:
    with Producer(data) as producer, Consumer(data) as consumer:
        assert producer.partitions_for("orders") == consumer.partitions_for("orders") == [T0, T1]
        for client in (producer, consumer):
            with pytest.raises(UnknownPartition, match="there is no topic 'nothing'"):
                client.partitions_for("nothing")
    with Consumer(DataDirectory.open(tmp_path / "data", read_only=True)) as watching:
        assert watching.partitions_for("orders") == [T0, T1]


def test_every_time_out_is_called_timeout_and_has_seconds() -> None:
    import inspect

    from octavo.log import SendFuture

    for client in (Producer, Consumer, SendFuture):
        for name, method in inspect.getmembers(client, inspect.isfunction):
            if not name.startswith("_"):
                given = [each for each in inspect.signature(method).parameters if re.search("time_?out|wait", each)]
                assert given in ([], ["timeout"]), f"{client.__name__}.{name}"


def test_signatures_show_what_is_taken_and_not_what_is_refused() -> None:
    import inspect

    shown = {client: inspect.signature(client) for client in (Producer, Consumer, Producer.send, Consumer.poll)}
    assert not [each for each in shown.values() if "more" in each.parameters and "Never" in str(each)]
    assert list(shown[Producer.send].parameters)[1:] == [
        "topic",
        "value",
        "key",
        "headers",
        "partition",
        "timestamp_ms",
        "on_delivery",
    ]
    named = [each for each in shown[Producer.send].parameters.values() if each.kind is each.KEYWORD_ONLY]
    assert len(named) == 4
    assert list(shown[Consumer.poll].parameters) == ["self", "timeout", "max_records"]
    assert Producer.send.__name__ == "send"
    assert (Producer.send.__doc__ or "").startswith("Send a record")


def test_poll_waits_for_ever_if_the_time_out_is_none(data: DataDirectory) -> None:
    import threading

    with Consumer(data) as consumer:
        consumer.subscribe(["orders"])
        consumer.poll()

        def send() -> None:
            with Producer(data) as producer:
                producer.send("orders", b"late")

        threading.Timer(0.2, send).start()
        assert [record.value for record in consumer.poll(timeout=None)] == [b"late"]
