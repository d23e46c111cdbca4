"""Transactional producers of librdkafka and of Java, behind one interface: `TransactionalProducer`.

librdkafka speaks version 1 of the protocol of transactions, Java version 2 (KIP-890).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.faults.client_threads import PATIENCE_S
from tests.faults.readers import CONSUMER, QUICK, Config
from tests.faults.values import encode
from tests.history import Outcome, Partition, Send
from tests.kafka.answers import KafkaError as JavaError
from tests.kafka.judge import Judge

_HASTE_S: Final = 0.001


class MustAbort(Exception):
    """The transaction has to be aborted; then the producer goes on."""


class Unanswered(Exception):
    """The producer did not wait for the answer."""


class Broken(Exception):
    """The producer is of no use any more: another one has its id, or it is confused."""


class TransactionalProducer(Protocol):
    """What is asked of a producer. All but `abandon` raise `MustAbort` or `Broken`."""

    def init(self) -> None:
        """Become the one producer with this transactional id."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(self, sends: Sequence[Send]) -> None:
        """Send values, now or later, and note where they are when that is told."""

    def send_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Have the group go on from there if the transaction is committed."""

    def commit(self) -> None:
        """Commit the transaction."""

    def commit_hastily(self) -> None:
        """Commit the transaction, and raise `Unanswered` if that is not done almost at once."""

    def abort(self) -> None:
        """Abort the transaction."""

    def abandon(self) -> None:
        """End the producer, and leave to others what it has open."""


class LibrdkafkaProducer:
    """A producer of confluent-kafka."""

    def __init__(self, address: str, transactional_id: str) -> None:
        config: Config = {
            "transactional.id": transactional_id,
            "linger.ms": 0,
            # After a restart, librdkafka may not send offsets before some connection changes its state
            # (confluentinc/librdkafka#5456, #5511), so have one close.
            "connections.max.idle.ms": 1_000,
        }
        self._address: Final = address
        self._producer: Final = Producer({"bootstrap.servers": address, **QUICK, **config})

    def init(self) -> None:
        self._try(lambda: self._producer.init_transactions(PATIENCE_S))

    def begin(self) -> None:
        self._try(self._producer.begin_transaction)

    def send(self, sends: Sequence[Send]) -> None:
        for send in sends:
            topic, number = send.partition
            assert isinstance(send.value, int)
            data = encode(send.value)
            delivered = _delivered(send)
            self._try(lambda: self._producer.produce(topic, data, partition=number, on_delivery=delivered))  # noqa: B023 (it is called at once)
        self._producer.poll(0)

    def send_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        consumer = Consumer({"bootstrap.servers": self._address, **CONSUMER, **QUICK, "group.id": group})
        places = [TopicPartition(*partition, offset) for partition, offset in offsets.items()]
        metadata = consumer.consumer_group_metadata()
        self._try(lambda: self._producer.send_offsets_to_transaction(places, metadata, PATIENCE_S))
        consumer.close()

    def commit(self) -> None:
        self._try(lambda: self._producer.flush(PATIENCE_S))  # which tells where everything is
        self._try(lambda: self._producer.commit_transaction(PATIENCE_S))

    def commit_hastily(self) -> None:
        self._try(lambda: self._producer.flush(PATIENCE_S))
        try:
            self._producer.commit_transaction(_HASTE_S)
        except KafkaException as failure:
            raise Unanswered from failure

    def abort(self) -> None:
        self._try(lambda: self._producer.abort_transaction(PATIENCE_S))

    def abandon(self) -> None:
        self._producer.purge()

    @staticmethod
    def _try(call: Callable[[], object]) -> None:
        while True:
            try:
                call()
            except KafkaException as failure:
                error = failure.args[0]
                if error.fatal():
                    raise Broken(error.str()) from failure
                if error.txn_requires_abort() or error.code() == KafkaError._STATE:
                    raise MustAbort(error.str()) from failure
                if not error.retriable():
                    raise Broken(error.str()) from failure
            else:
                return


def _delivered(send: Send) -> Callable[[KafkaError | None, Message], None]:
    def delivered(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None and offset >= 0 and send.outcome is Outcome.UNKNOWN:
            send.succeed(offset)

    return delivered


class JavaProducer:
    """A KafkaProducer in the process of the judge, which one thread uses."""

    _count = 0

    def __init__(self, judge: Judge, address: str, transactional_id: str) -> None:
        JavaProducer._count += 1
        self._name: Final = f"{address} transactional {JavaProducer._count}"
        self._judge: Final = judge
        quick = {"reconnect.backoff.ms": "5", "reconnect.backoff.max.ms": "50", "retry.backoff.ms": "5"}
        config = {"bootstrap.servers": address, "transactional.id": transactional_id, **quick}
        judge.ask("producer.open", client=self._name, config=config)

    def init(self) -> None:
        self._ask("init")

    def begin(self) -> None:
        self._ask("begin")

    def send(self, sends: Sequence[Send]) -> None:
        by_partition: dict[Partition, list[Send]] = {}
        for send in sends:
            by_partition.setdefault(send.partition, []).append(send)
        for (topic, number), mine in by_partition.items():
            records = [[None, _base64(send.value)] for send in mine]
            for send, offset in zip(
                mine, self._ask("send", topic=topic, partition=number, records=records), strict=True
            ):
                send.succeed(offset)

    def send_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        places = [{"topic": topic, "partition": number, "offset": at} for (topic, number), at in offsets.items()]
        self._ask("offsets", group=group, offsets=places)

    def commit(self) -> None:
        self._ask("commit")

    def commit_hastily(self) -> None:
        self.commit()  # Java waits for as long as it was once configured to

    def abort(self) -> None:
        self._ask("abort")

    def abandon(self) -> None:
        self._judge.ask("producer.close", client=self._name, wait=False)

    def _ask(self, question: str, **details: Any) -> Any:
        while True:
            try:
                return self._judge.ask(f"producer.{question}", client=self._name, **details)
            except JavaError as failure:
                name = failure.fault.name
                if name == "TimeoutException" and question in ("init", "commit", "abort"):
                    continue  # Java may be asked again
                if name in ("ProducerFencedException", "IllegalStateException") or question in ("init", "abort"):
                    raise Broken(str(failure)) from failure
                raise MustAbort(str(failure)) from failure


def _base64(value: object) -> str:
    assert isinstance(value, int)
    return b64encode(encode(value)).decode("ascii")
