"""Producers and transactions of a directory that goes from Octavo to a real broker, back, and there again.

Kafka's own clients are the witnesses. What was written is in `written`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import pytest

from octavo.errors import ErrorCode, ProducerFenced
from octavo.log import DataDirectory
from octavo.log.coordinator import Coordinator, OffsetAndMetadata, ProducerIdentity
from octavo.log.metadata import handover
from octavo.log.names import TopicPartition
from tests.kafka.bare_producer import BareProducer, batch_of, check_refusals
from tests.kafka.broker import Broker
from tests.kafka.client import Produced, end_transaction, produce
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients, TransactionState
from tests.kafka.judge import Judge
from tests.kafka.serving import Known, assert_taken_over, known_to_octavo, last_batch_of, read_by_octavo
from tests.kafka.written import HANGING, LONG_MS, ORDERS, SETTLED, UNENDED, write_directory

FENCED: Final = Produced(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
OUT_OF_ORDER: Final = Produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def known_here(data: DataDirectory) -> dict[TopicPartition, Known]:
    return {place: known_to_octavo(data.log(*place)) for place in SETTLED}


def known_to_kafka(java: JavaClients) -> dict[TopicPartition, Known]:
    return {place: java.known(*place) for place in SETTLED}


def values_by_librdkafka(broker: Broker, place: TopicPartition, end_offset: int) -> list[bytes | None]:
    """What the other client that there is reads of committed records."""
    consumer: Any = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.address, "group.id": "unused", "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(*place, 0)])
    values = []
    while (message := consumer.poll(20)) is not None and message.error() is None:
        values.append(message.value())
    assert message is not None
    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
    assert message.offset() == end_offset
    consumer.close()
    return values


def check_sequences(broker: Broker, log_end: int, written: BareProducer, last: tuple[bytes, int]) -> None:
    """A broker answers duplicates, gaps and old epochs of a producer that it has never seen itself."""

    def send(batch: bytes) -> Produced:
        return produce(broker.port, *ORDERS, batch)

    batch, offset = last
    producer_id, epoch, sequence = written.producer_id, written.epoch, written.sequence
    next_ = batch_of(b"from a client", producer_id=producer_id, epoch=epoch, sequence=sequence)
    assert send(batch) == Produced(0, offset)
    assert send(batch_of(b"x", producer_id=producer_id, epoch=epoch, sequence=sequence + 1)) == OUT_OF_ORDER
    assert send(next_) == Produced(0, log_end)
    assert send(next_) == Produced(0, log_end)
    assert send(batch) == Produced(0, offset)
    assert send(batch_of(b"x", producer_id=producer_id, epoch=epoch + 1, sequence=1)) == OUT_OF_ORDER
    assert send(batch_of(b"of a new epoch", producer_id=producer_id, epoch=epoch + 1)) == Produced(0, log_end + 1)
    assert send(next_) == FENCED


def end_unended(java: JavaClients, broker: Broker, continued: ProducerIdentity) -> None:
    """What was decided is committed, and what takes too long aborted, without being asked for; the third goes on."""
    java.wait_for_end("decided")
    java.wait_for_end("late")
    assert java.read(*UNENDED).values == [b"decided"]
    more = batch_of(b"by a client", producer_id=continued.producer_id, sequence=1, transactional=True)
    sent = produce(broker.port, *UNENDED, more, transactional_id="continued")
    assert sent.code == 0
    assert produce(broker.port, *UNENDED, more, transactional_id="continued") == sent
    assert end_transaction(broker.port, "continued", *continued, commit=True) == 0
    java.wait_for_end("continued")
    assert java.read(*UNENDED).values == [b"decided", b"continued", b"by a client"]


def go_on_with_left(java: JavaClients, broker: Broker, left: ProducerIdentity) -> None:
    """The next producer of a transactional id fences off the one of Octavo, whose open transaction is aborted."""
    assert java.transaction("left") == TransactionState(
        "Ongoing", left.producer_id, left.epoch, ("__consumer_offsets-0", str(ORDERS))
    )
    before = java.read(*ORDERS)
    assert java.read(*ORDERS, committed=False).end_offset > before.end_offset
    with java.producer(**{"transactional.id": "left"}) as producer:
        producer.init()
        after = java.read(*ORDERS)
        assert after.values == [*before.values, b"behind", b"what", b"is", b"open", b"from a client", b"of a new epoch"]
        late = batch_of(b"late", producer_id=left.producer_id, epoch=left.epoch, sequence=2, transactional=True)
        assert produce(broker.port, *ORDERS, late, transactional_id="left") == FENCED
        producer.begin()
        producer.send(*ORDERS, [b"no longer left"])
        producer.commit()
    assert java.read(*ORDERS).values == [*after.values, b"no longer left"]


def go_on_with_paid(java: JavaClients) -> None:
    """Another goes on: it commits, aborts, and has one open when it is seen last."""
    before = java.read(*ORDERS)
    producer = java.producer(**{"transactional.id": "paid", "transaction.timeout.ms": str(LONG_MS)})
    producer.init()
    for number, commit in enumerate((True, False, True)):
        producer.begin()
        producer.send(*ORDERS, [b"paid in Java %d" % number])
        producer.send_offsets("readers", *ORDERS, 100 + number)
        (producer.commit if commit else producer.abort)()
    assert java.read(*ORDERS).values == [*before.values, b"paid in Java 0", b"paid in Java 2"]
    assert java.committed("readers") == {str(ORDERS): (102, "")}
    producer.begin()
    producer.send(*ORDERS, [b"open in Java"])
    producer.send_offsets("readers", *ORDERS, 103)
    producer.abandon()


def end_hanging(java: JavaClients, hanging: BareProducer) -> None:
    """A transaction of which no coordinator knows stays open, until it is ended by hand."""
    before = java.read(*HANGING)
    [state] = [state for state in java.producers(*HANGING) if state.txn_first_offset >= 0]
    assert state.producer_id == hanging.producer_id
    assert before.end_offset == state.txn_first_offset
    assert before.values == []
    java.abort_hanging(*HANGING, state)
    assert java.read(*HANGING).values == [b"behind", b"of long ago"]


def go_on_with_octavo(data: DataDirectory) -> None:
    """The open transaction of the Java producer is aborted when Octavo takes its transactional id over."""
    coordinator = Coordinator.of(data)
    log = data.log(*ORDERS)
    before = read_by_octavo(log)
    assert before.end_offset < log.high_watermark
    theirs = coordinator.transaction("paid")
    assert theirs is not None
    ours = coordinator.init_producer_id("paid", LONG_MS)
    assert ours.producer_id == theirs.producer_id
    assert ours.epoch > theirs.producer_epoch
    assert log.last_stable_offset == log.high_watermark
    with pytest.raises(ProducerFenced):
        coordinator.add_partitions("paid", ProducerIdentity(theirs.producer_id, theirs.producer_epoch), [ORDERS])
    coordinator.add_partitions("paid", ours, [ORDERS])
    BareProducer(log, *ours, transactional=True).append(b"paid in Octavo")
    offset = {ORDERS: OffsetAndMetadata(200, "Octavo")}
    coordinator.commit_offsets("readers", offset, "paid", ours)
    assert coordinator.committed("readers")[ORDERS] == OffsetAndMetadata(102)
    coordinator.end_transaction("paid", ours, commit=True)
    assert coordinator.committed("readers") == offset
    plain = [b"plain in Java", b"again", b"from Octavo", b"of a new epoch"]
    assert read_by_octavo(log).values == [*before.values, *plain, b"paid in Octavo"]


def go_on_once_more(java: JavaClients, before: Known) -> None:
    assert java.committed("readers") == {str(ORDERS): (200, "Octavo")}
    with java.producer(**{"transactional.id": "paid"}) as producer:
        producer.init()
        producer.begin()
        producer.send(*ORDERS, [b"paid in Java once more"])
        producer.commit()
    assert java.read(*ORDERS).values == [*before.committed.values, b"paid in Java once more"]


def test_what_octavo_knows_of_producers_and_transactions_kafka_goes_on_with_and_octavo_again(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge
) -> None:
    folder = tmp_path / "data"
    written = write_directory(folder)
    known = written.known
    with DataDirectory.open(folder, read_only=True) as watched:
        last = last_batch_of(watched.log(*ORDERS), written.idempotent.producer_id)
    handover([folder])
    broker = new_broker(folder, settings={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"})
    broker.start()
    assert_taken_over(broker, known)
    java = JavaClients(kafka_broker, broker)
    assert known_to_kafka(java) == known
    assert values_by_librdkafka(broker, ORDERS, known[ORDERS].committed.end_offset) == known[ORDERS].committed.values
    end_unended(java, broker, written.continued)
    check_sequences(broker, known[ORDERS].end_offset, written.idempotent, last)
    go_on_with_left(java, broker, written.left)
    go_on_with_paid(java)
    end_hanging(java, written.hanging)
    with java.producer() as producer:
        end_offset = java.read(*ORDERS, committed=False).end_offset
        assert producer.send(*ORDERS, [b"plain in Java", b"again"]) == [end_offset, end_offset + 1]
    known = known_to_kafka(java)
    broker.stop()

    with DataDirectory.open(folder) as data:
        assert all(report.was_clean and report.is_unremarkable for report in data.reports)
        assert known_here(data) == known
        check_refusals(data.log(*ORDERS), max(known[ORDERS].producers))
        go_on_with_octavo(data)
        theirs, ours = (shutil.copytree(folder, tmp_path / name) for name in ("theirs", "ours"))  # nobody has closed it
    with DataDirectory.open(ours) as data:
        assert not any(report.was_clean for report in data.reports)
    with DataDirectory.open(ours) as data:  # Kafka forgets expired producers in a recovery
        known = known_here(data)
    handover([theirs])
    broker = new_broker(theirs)
    broker.start()
    java = JavaClients(kafka_broker, broker)
    assert known_to_kafka(java) == known
    go_on_once_more(java, known[ORDERS])
    broker.stop()
