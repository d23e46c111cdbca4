"""A directory that Octavo has written, with all that it can know of producers and transactions.

orders-0    idempotent batches, transactions of producers that nobody else knows, and those of two transactional ids:
            `paid` has ended all of its, `left` has one open. Many segments
orders-1    a transaction that hangs: it is open, and no coordinator knows of it
orders-2    one of `decided`, of which only the coordinator knows that it is committed
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple
from unittest.mock import patch

import pytest

from octavo.log import DataDirectory, Log
from octavo.log.coordinator import Coordinator, OffsetAndMetadata, ProducerIdentity
from octavo.log.names import TopicPartition
from octavo.log.producer_state.states import EXPIRATION_MS
from octavo.records import Codec
from octavo.records.layout import MAX_SEQUENCE
from tests.kafka.bare_producer import BareProducer, now_ms
from tests.kafka.serving import Known, known_to_octavo

KEPT: Final = {"retention.ms": "-1", "index.interval.bytes": "200"}
ORDERS: Final = TopicPartition("orders", 0)
HANGING: Final = TopicPartition("orders", 1)
TRIMMED: Final = TopicPartition("orders", 2)
UNENDED: Final = TopicPartition("orders", 3)
SETTLED: Final = (ORDERS, HANGING, TRIMMED)  # in which a broker changes nothing by itself
LONG_MS: Final = 900_000  # no coordinator ends a transaction before that by itself
ABORTED: Final = 9  # transactions
BARE: Final = 500_000  # the first of the producer ids that no coordinator gave out
HUNG: Final = BARE + 100_000


class Written(NamedTuple):
    """Who has written, and may be asked to go on; and what is there."""

    idempotent: BareProducer
    left: ProducerIdentity  # of the producer that has a transaction open, of which the coordinator knows
    continued: ProducerIdentity  # of another such
    hanging: BareProducer  # that has one open of which nobody knows
    known: dict[TopicPartition, Known]  # of what is as it should be


def write_orders(log: Log) -> BareProducer:
    """Idempotent batches between transactions that go over segments, committed and aborted, of three producers."""
    idempotent = BareProducer(log, BARE, sequence=MAX_SEQUENCE - 36)  # its last batch goes over the largest
    committed = BareProducer(log, BARE + 1, epoch=3, transactional=True)
    aborted = BareProducer(log, BARE + 2, transactional=True)
    for number, codec in enumerate(Codec):
        idempotent.append(b"plain %d" % number, b"and %d" % number, codec=codec)
        committed.append(b"committed %d" % number, codec=codec)
        aborted.append(b"aborted %d" % number, codec=codec)
        if number % 2:
            log.roll()
            committed.append(b"more %d" % number)
            committed.end(commit=True, coordinator_epoch=number)
        idempotent.append(*(b"between %d/%d" % (number, each) for each in range(5)))
        aborted.end(commit=False, coordinator_epoch=number)
    aborted.append(b"committed after all")
    aborted.end(commit=True, coordinator_epoch=9)
    committed.end(commit=False, coordinator_epoch=9)
    return idempotent


def write_by_coordinator(data: DataDirectory) -> ProducerIdentity:
    """Transactions of transactional ids: `paid` has one of each end, `left` one that is open."""
    coordinator = Coordinator.of(data)
    log = data.log(*ORDERS)
    sequence = 0
    paid = coordinator.init_producer_id("paid", LONG_MS)
    for commit in (True, False, True):
        coordinator.add_partitions("paid", paid, [ORDERS])
        producer = BareProducer(log, *paid, transactional=True, sequence=sequence)
        producer.append(b"paid" if commit else b"not paid", b"twice")
        sequence = producer.sequence
        offset = OffsetAndMetadata(log.end_offset, "paid" if commit else "not paid")
        coordinator.commit_offsets("readers", {ORDERS: offset}, "paid", paid)
        coordinator.end_transaction("paid", paid, commit)
    left = coordinator.init_producer_id("left", LONG_MS)
    coordinator.add_partitions("left", left, [ORDERS])
    BareProducer(log, *left, transactional=True).append(b"left", b"open")
    coordinator.commit_offsets("readers", {HANGING: OffsetAndMetadata(1, "never")}, "left", left)
    return left


def write_hanging(log: Log) -> BareProducer:
    """A transaction that is aborted, one that is not ended; and batches of others behind."""
    aborted = BareProducer(log, HUNG, transactional=True)
    aborted.append(b"aborted")
    aborted.end(commit=False)
    hanging = BareProducer(log, HUNG + 1, epoch=5, transactional=True)
    hanging.append(b"hanging")
    log.roll()
    BareProducer(log, HUNG + 2, sequence=17).append(b"behind")
    BareProducer(log, HUNG + 3, timestamp_ms=now_ms() - 2 * EXPIRATION_MS).append(b"of long ago")
    return hanging


def write_trimmed(log: Log) -> None:
    """An open transaction whose beginning is deleted, and an aborted one of which only the marker is left."""
    open_ = BareProducer(log, HUNG, transactional=True)
    aborted = BareProducer(log, HUNG + 1, transactional=True)
    open_.append(b"open")
    aborted.append(b"aborted")
    log.roll()
    aborted.append(b"aborted", b"too")
    aborted.end(commit=False)
    open_.append(b"still", b"open")
    log.delete_records_before(4)


def write_unended(data: DataDirectory) -> ProducerIdentity:
    """A transaction whose coordinator died when it had decided, one that takes too long, and one that takes long."""
    coordinator = Coordinator.of(data)
    identities = []
    for name, timeout_ms in (("decided", LONG_MS), ("late", 1), ("continued", LONG_MS)):
        identities.append(coordinator.init_producer_id(name, timeout_ms))
        coordinator.add_partitions(name, identities[-1], [UNENDED])
        BareProducer(data.log(*UNENDED), *identities[-1], transactional=True).append(name.encode())
    dies = patch("octavo.log.coordinator.markers.write_marker", side_effect=OSError("it dies"))
    with dies, pytest.raises(OSError, match="it dies"):
        coordinator.end_transaction("decided", identities[0], commit=True)
    return identities[-1]


def write_directory(folder: Path) -> Written:
    """Write all of it; closed in good order."""
    with DataDirectory.open(folder) as data:
        data.create_topic("orders", 4, KEPT)
        idempotent = write_orders(data.log(*ORDERS))
        left = write_by_coordinator(data)
        idempotent.append(b"behind", b"what", b"is", b"open")
        hanging = write_hanging(data.log(*HANGING))
        write_trimmed(data.log(*TRIMMED))
        continued = write_unended(data)
    with DataDirectory.open(folder) as data:  # without those who have not been there for long
        known = {place: known_to_octavo(data.log(*place)) for place in SETTLED}
    return Written(idempotent, left, continued, hanging, known)
