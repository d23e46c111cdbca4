"""Everything that changes a directory, each as one call that can be interrupted, and what may be there afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import LogError, WrongTransactionOrder, WrongTransactionState
from octavo.log import Consumer, DataDirectory, Isolation, Log, Producer
from octavo.log.names import TopicPartition
from octavo.log.origin import Origin
from octavo.log.reading.readable_log import ReadableLog
from octavo.records import BatchBuilder, end_transaction_marker
from tests.crash.storage import FastStorage

TIME_MS: Final = 1_700_000_000_000
TOPIC: Final = "a"
COMPACTED: Final = "c"
SMALL: Final = {"internal.segment.bytes": "700", "index.interval.bytes": "100", "file.delete.delay.ms": "0"}
FILES: Final = FastStorage()


Records = tuple[tuple[int, bytes | None, bytes | None], ...]  # offset, key, value


class Held(NamedTuple):
    """What a partition holds, and what is committed of it."""

    start_offset: int
    records: Records
    committed: tuple[int, ...]


Contents = dict[str, Held | None]


@dataclass
class World:
    """A directory that is open, or was."""

    folder: Path
    data: DataDirectory
    producer: Producer | None = None  # that of the transaction, if the change is one

    @property
    def log(self) -> Log:
        return self.data.log(TOPIC, 0)

    @property
    def compacted(self) -> Log:
        return self.data.log(COMPACTED, 0)


def open_directory(folder: Path) -> DataDirectory:
    """To be written; nothing waits for the disk."""
    return DataDirectory.open(folder, storage=FILES, clock=lambda: TIME_MS + 10_000)


def make_world(folder: Path) -> None:
    """Two topics, one of them compacted, each with several segments, and an open transaction."""
    with open_directory(folder) as data:
        data.create_topic(TOPIC, 2, SMALL | {"retention.ms": "-1"})
        data.create_topic(COMPACTED, 1, SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
        for number in range(14):
            data.log(TOPIC, 0).append(batch(number))
            data.log(COMPACTED, 0).append(batch(number % 4))
        for sequence in range(3):
            data.log(TOPIC, 0).append(batch(20 + sequence, producer_id=5000, sequence=sequence))
        data.log(TOPIC, 0).append(batch(30, producer_id=6000, transactional=True))
        with Producer(data, {"transactional.id": "t"}) as producer:
            producer.init_transactions()
        with Consumer(data, {"group.id": "g"}) as consumer:
            consumer.assign([(TOPIC, 0)])
            consumer.seek(TopicPartition(TOPIC, 0), 1)
            consumer.commit()


def batch(
    number: int, count: int = 1, *, producer_id: int = -1, sequence: int = 0, transactional: bool = False
) -> bytes:
    """A batch of records that can be told by their numbers."""
    builder = (
        BatchBuilder()
        if producer_id < 0
        else BatchBuilder(
            producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=transactional
        )
    )
    for each in range(number, number + count):
        builder.append(b"%d" % each, b"value %d " % each * 6, timestamp_ms=TIME_MS + each)
    return builder.build()


def contents(data: DataDirectory) -> Contents:
    """What everything in a directory holds; None for a topic's partition that is not there."""
    found: Contents = {}
    for name, topic in sorted(data.topics.items()):
        for number in sorted(topic.partitions):
            if not name.startswith("__"):
                found[f"{name}-{number}"] = held(data.log(name, number))
    return found


def held(log: ReadableLog) -> Held:
    """What one log holds. Checks that no offset is there twice."""
    records = [
        (record.offset, record.key, record.value)
        for one in log.reader(isolation=Isolation.LOG_END)
        if not one.is_control
        for record in one
        if record.offset >= log.start_offset
    ]
    offsets = [offset for offset, _, _ in records]
    assert offsets == sorted(set(offsets)), f"offsets are there twice: {offsets}"
    committed = [record.offset for record in log.reader(isolation=Isolation.READ_COMMITTED).records()]
    return Held(log.start_offset, tuple(records), tuple(committed))


# ------------------------------------------------------------------------------------------------------------- changes


def _append(world: World) -> None:
    world.log.append(batch(100))


def _append_several(world: World) -> None:
    world.log.append(b"".join(batch(100 + number) for number in range(12)))


def _append_with_producer(world: World) -> None:
    world.log.append(batch(100, 2, producer_id=5000, sequence=3))


def _append_that_rolls(world: World) -> None:
    world.log.append(batch(100, 5))


def _append_as_follower(world: World) -> None:
    copy = bytearray(batch(100))
    copy[:8] = (world.log.end_offset + 2).to_bytes(8, "big")  # a gap, as compaction leaves them
    copy[12:16] = bytes(4)  # the leader epoch
    world.log.append_as_follower(bytes(copy))


def _abort(world: World) -> None:
    marker = end_transaction_marker(
        False, timestamp_ms=TIME_MS, producer_id=6000, producer_epoch=0, coordinator_epoch=0
    )
    world.log.append(marker, origin=Origin.COORDINATOR)


def _roll(world: World) -> None:
    world.log.roll()


def _flush(world: World) -> None:
    world.log.flush()


def _lead(world: World) -> None:
    world.log.become_leader(world.log.leader_epoch + 1)


def _truncate_a_little(world: World) -> None:
    world.log.truncate_to(world.log.end_offset - 1)


def _truncate(world: World) -> None:
    world.log.truncate_to(5)


def _truncate_all(world: World) -> None:
    world.log.delete_oldest(2)
    world.log.truncate_to(0)


def _delete_records(world: World) -> None:
    world.log.delete_records_before(6)
    world.log.delete_oldest(1)
    world.log.delete_files()


def _retain(world: World) -> None:
    world.log.config = world.log.config.with_properties({"retention.bytes": "1000"})
    world.log.apply_retention()
    world.log.delete_files()


def _compact(world: World) -> None:
    world.compacted.compact()


def _checkpoint(world: World) -> None:
    world.data.write_checkpoints()


def _create_topic(world: World) -> None:
    world.data.create_topic("new", 2, SMALL)


def _delete_topic(world: World) -> None:
    world.data.delete_topic(COMPACTED)
    world.data.delete_files()


def _set_config(world: World) -> None:
    world.data.set_config(TOPIC, {"max.message.bytes": "100000"})


def _transact(world: World, *, commit: bool = True) -> None:
    producer = world.producer = Producer(world.data, {"transactional.id": "t"}, clock=lambda: 0)
    producer.init_transactions()
    producer.begin_transaction()
    for partition in (0, 1):
        producer.send(TOPIC, b"in a transaction", key=b"100", partition=partition)
    producer.send_offsets_to_transaction({TopicPartition(TOPIC, 0): 3}, "g")
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()


def _transact_and_abort(world: World) -> None:
    _transact(world, commit=False)


def _commit_offsets(world: World) -> None:
    consumer = Consumer(world.data, {"group.id": "g"})
    consumer.assign([(TOPIC, 0)])
    consumer.seek(TopicPartition(TOPIC, 0), 7)
    consumer.commit()


def _close(world: World) -> None:
    world.data.close()


def _reopen(world: World) -> None:
    world.data.close()
    world.data = open_directory(world.folder)


CHANGES: Final[dict[str, Callable[[World], None]]] = {
    "append": _append,
    "append several batches": _append_several,
    "append of a producer": _append_with_producer,
    "append that rolls": _append_that_rolls,
    "append as a follower": _append_as_follower,
    "abort marker": _abort,
    "roll": _roll,
    "flush": _flush,
    "become leader": _lead,
    "truncate a little": _truncate_a_little,
    "truncate": _truncate,
    "truncate all": _truncate_all,
    "delete records": _delete_records,
    "retention": _retain,
    "compaction": _compact,
    "checkpoints": _checkpoint,
    "create a topic": _create_topic,
    "delete a topic": _delete_topic,
    "set a configuration": _set_config,
    "commit a transaction": _transact,
    "abort a transaction": _transact_and_abort,
    "commit offsets": _commit_offsets,
    "close": _close,
    "close and open": _reopen,
}


def is_between(found: Contents, before: Contents, after: Contents) -> bool:
    """Whether a directory holds what it did before a change or after it: each of its topics one or the other."""
    return all(
        _is_either(found.get(name), before.get(name), after.get(name), compacted=name.startswith(COMPACTED))
        for name in {*found, *before, *after}
    )


def _is_either(found: Held | None, was: Held | None, becomes: Held | None, *, compacted: bool) -> bool:
    if found in (was, becomes):
        return True
    if found is None or was is None or becomes is None:
        return False
    if compacted:  # each group of segments by itself: what the keys mean stays the same
        return _last_values(found) == _last_values(was)
    start = found.start_offset
    if not set(found.committed) <= {*was.committed, *becomes.committed}:
        return False  # what is committed may not be known while the log has a failure
    if _is_prefix(becomes.records, was.records):  # truncated, from the end on
        return _is_prefix(found.records, _behind(was, start))
    return found.records in (_behind(was, start), _behind(becomes, start))  # or deleted, from the start on


def _last_values(held: Held) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in held.records}


def _is_prefix(some: Records, all_of_them: Records) -> bool:
    return some == all_of_them[: len(some)]


def _behind(held: Held, start_offset: int) -> Records:
    return tuple(record for record in held.records if record[0] >= start_offset)


def next_transaction(world: World, key: bytes) -> None:
    """Do what a program does that was interrupted in a transaction: abort it, then commit another of the same size.

    Checks that what was acknowledged is what readers see, and that the offsets of the group go with the transaction. A
    log that has a failure, and says so, takes no transaction.
    """
    producer = world.producer
    assert producer is not None
    try:
        _abort_after_interrupt(producer)
        producer.begin_transaction()
        futures = [producer.send(TOPIC, b"the next", key=key, partition=partition) for partition in (0, 1)]
        producer.commit_transaction()
    except LogError as error:
        if "takes no more" not in str(error):
            raise
        return
    for partition, future in enumerate(futures):
        offset = future.result().offset
        log = world.data.log(TOPIC, partition)
        isolation = Isolation.READ_COMMITTED if partition else Isolation.LOG_END  # one is open in the first
        seen = {record.offset: record for record in log.reader(isolation=isolation).records()}
        assert seen[offset].key == key, "what was committed is not there"
        assert [record.key for record in seen.values()].count(key) == 1
    was_committed = any(record.key == b"100" for record in seen.values())
    consumer = Consumer(world.data, {"group.id": "g"})
    committed = consumer.committed([TopicPartition(TOPIC, 0)])[TopicPartition(TOPIC, 0)]
    assert committed is not None
    assert committed.offset == (3 if was_committed else 1), "offsets were not committed with their transaction"


def _abort_after_interrupt(producer: Producer) -> None:
    try:
        producer.abort_transaction()
    except (WrongTransactionOrder, WrongTransactionState) as refused:
        if "before init_transactions" in str(refused):
            producer.init_transactions()
        elif "outside a transaction" not in str(refused) and "its commit was decided" not in str(refused):
            raise


def next_append(world: World, number: int) -> int | None:
    """Go on with the log; the offset, or None where the log has a failure and says so."""
    try:
        return world.log.append(batch(number)).base_offset
    except LogError as error:
        if "takes no more" not in str(error):
            raise
        return None
