"""Serve a directory to librdkafka, which produces and consumes, and goes on producing while Spark reads the files."""

from __future__ import annotations

import threading
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Self

from octavo.cli.demo.stage import Stage, table
from octavo.errors.root import Signal

if TYPE_CHECKING:
    from octavo.server.serving import Server

TOPIC: Final = "clicks"
GROUP: Final = "readers"
COUNT: Final = 100_000
_VALUE: Final = (
    b"a click on a page, somewhere, by somebody; nothing else of it matters here, but it has a hundred bytes"
)
_AT_ONCE: Final = 100  # clicks that are produced every `_PAUSE_S` while Spark reads
_PAUSE_S: Final = 0.05
_PATIENCE_S: Final = 60
_CODE: Final = f"""\
with octavo.serve(folder) as broker:
    producer = confluent_kafka.Producer({{"bootstrap.servers": broker.bootstrap_servers}})
    producer.produce("{TOPIC}", value)"""


class NotServed(Signal):
    """The client did not get what it asked for, and this is what it said."""


class Clicks:
    """A broker on a directory, and librdkafka's clients of it. A context manager, which stops both."""

    def __init__(self, folder: Path) -> None:
        from confluent_kafka import Producer

        from octavo.server.serving import serve

        self.folder: Final = folder
        config = {"num.partitions": "3", "group.initial.rebalance.delay.ms": "0"}
        self._server: Final[Server] = serve(folder, config=config)
        # At the end the broker goes first, which librdkafka would tell on stderr.
        self._address: Final = {"bootstrap.servers": self._server.bootstrap_servers, "log_level": 0}
        self._producer: Final = Producer({**self._address, "linger.ms": 5})
        self._is_over: Final = threading.Event()
        self._thread: threading.Thread | None = None

    def produce(self, count: int) -> None:
        """Produce so many clicks, and return when all are acknowledged. Raises `NotServed`."""
        failed: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failed.append(str(error))

        for number in range(count):
            if number % 10_000 == 0:
                self._producer.poll(0)
            self._producer.produce(TOPIC, _VALUE, b"page %d" % (number % 1000), on_delivery=delivered)
        if self._producer.flush(_PATIENCE_S) or failed:
            raise NotServed(failed[0] if failed else "clicks were not acknowledged")

    def consume(self, count: int) -> None:
        """Consume so many clicks as a member of a group, and commit that. Raises `NotServed`."""
        from confluent_kafka import Consumer

        settings = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer({**self._address, **settings})
        consumer.subscribe([TOPIC])
        left = count
        while left > 0:
            messages = consumer.consume(min(left, 10_000), _PATIENCE_S)
            if not messages or any(message.error() for message in messages):
                raise NotServed("clicks are missing")
            left -= len(messages)
        consumer.commit(asynchronous=False)
        committed = consumer.committed(consumer.assignment(), timeout=_PATIENCE_S)
        consumer.close()
        if sum(each.offset for each in committed) != count:
            raise NotServed("clicks are not committed")

    def go_on(self) -> None:
        """Go on producing, a few thousand clicks a second, until the end."""
        self._thread = threading.Thread(target=self._click, daemon=True)
        self._thread.start()

    def _click(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            for number in range(_AT_ONCE):
                self._producer.produce(TOPIC, _VALUE, b"page %d" % number)
            self._producer.poll(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        self._producer.flush(_PATIENCE_S)
        self._server.close()


def what_is_missing() -> str:
    """Return a sentence that says what is missing for a client; an empty string if nothing is."""
    if find_spec("confluent_kafka") is None:
        return "confluent-kafka, the client, is not installed; pip install 'octavo[demo]' brings it"
    return ""


def show(stage: Stage, clicks: Clicks) -> None:
    """Produce and consume over the wire."""
    stage.chapter("Serve: a broker for any Kafka client, without a JVM")
    stage.code(_CODE)
    rate = "records/s"
    drawn = table("librdkafka, over the wire", "records", "seconds", rate, right=("records", "seconds", rate))
    with stage.waiting("Producing and consuming ..."):
        for what, how in (
            ("produced, all acknowledged", clicks.produce),
            (f"consumed by the group {GROUP}", clicks.consume),
        ):
            began = perf_counter()
            how(COUNT)
            seconds = perf_counter() - began
            drawn.add_row(what, f"{COUNT:,}", f"{seconds:.2f}", f"{COUNT / seconds:,.0f}")
    stage.show(drawn)
    stage.say("The client is unmodified, and the files are those that the tools, Spark and Apache Kafka read.")
