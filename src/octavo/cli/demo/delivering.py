"""Show producer and consumer: consumers see whole transactions or nothing, and compaction keeps the last values."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rich.table import Table

from octavo.cli.demo.samples import TIME_MS
from octavo.cli.demo.stage import Stage, table
from octavo.log import Consumer, DataDirectory, Producer

PAYMENTS: Final = "payments"
STOCK: Final = "stock"
KEYS: Final = 20
ROUNDS: Final = 500
_COMPACTED: Final = {"cleanup.policy": "compact", "delete.retention.ms": "0", "segment.bytes": str(1 << 20)}


def show(stage: Stage, folder: Path) -> None:
    """Send records in transactions and read them; then compact a topic."""
    with DataDirectory.open(folder) as data:
        stage.chapter("Deliver: transactions, seen whole or not at all")
        stage.code(
            'producer = Producer(data, {"transactional.id": "till-1"})\n'
            "producer.begin_transaction()\n"
            'producer.send("payments", b"12.50", key=b"customer-1")\n'
            "producer.commit_transaction()        # or abort_transaction()"
        )
        stage.show(_transactions(data))
        stage.say("What was aborted is in the log, with a marker after it; readers of committed data leave it out.")
        stage.chapter("Compact: the last value of every key")
        stage.code('data.create_topic("stock", config={"cleanup.policy": "compact"})\ndata.log("stock", 0).compact()')
        stage.show(_compaction(data))
        stage.say("Offsets stay what they were. A tombstone outlives the compaction that meets it first.")


def seen(data: DataDirectory, isolation: str) -> int:
    """Count the payments that a consumer with this isolation level sees."""
    with Consumer(data, {"auto.offset.reset": "earliest", "isolation.level": isolation}) as consumer:
        consumer.subscribe([PAYMENTS])
        return len(consumer.poll(timeout=0, max_records=1000))


def _transactions(data: DataDirectory) -> Table:
    drawn = table("after", "read_uncommitted", "read_committed", right=("read_uncommitted", "read_committed"))
    data.create_topic(PAYMENTS, 2)

    def note(after: str) -> None:
        drawn.add_row(after, f"{seen(data, 'read_uncommitted')}", f"{seen(data, 'read_committed')}")

    with Producer(data, {"transactional.id": "till-1"}) as producer:
        producer.init_transactions()
        for number, commit in enumerate((True, False, True)):
            producer.begin_transaction()
            for customer in range(10):
                producer.send(PAYMENTS, b"12.50", key=b"customer-%d" % customer)
            producer.flush()
            note(f"transaction {number + 1}: ten payments sent")
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            note(f"transaction {number + 1}: {'committed' if commit else 'aborted'}")
    return drawn


def _compaction(data: DataDirectory) -> Table:
    drawn = table("", "records", "bytes", "keys", right=("records", "bytes", "keys"))
    data.create_topic(STOCK, 1, _COMPACTED)
    log = data.log(STOCK, 0)

    def note(what: str) -> None:
        records = list(log.reader().records())
        keys = {record.key for record in records}
        drawn.add_row(what, f"{len(records):,}", f"{log.size:,}", f"{len(keys)}")

    with Producer(data) as producer:
        for number in range(KEYS * ROUNDS):
            producer.send(STOCK, b"%d left" % (number % 97), key=b"item-%d" % (number % KEYS), timestamp_ms=TIME_MS)
        for item in range(KEYS // 2):
            producer.send(STOCK, None, key=b"item-%d" % item, timestamp_ms=TIME_MS)  # sold out: a tombstone
    log.roll()
    note("as sent")
    log.compact(TIME_MS)
    note("compacted")
    with Producer(data) as producer:
        producer.send(STOCK, b"one left", key=b"item-19", timestamp_ms=TIME_MS)
    log.roll()
    log.compact(TIME_MS + 1)
    note("and once more, the tombstones' time being over")
    return drawn
