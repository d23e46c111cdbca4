"""The rules of `.snapshot` files: what Kafka remembers of the producers of a partition at an offset.

A snapshot has a version (int16, 1), the CRC-32C of what follows, the number of entries (int32), and 46 bytes for each:
producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of the open
transaction.

Kafka forgets a producer without an open transaction when its last timestamp is older than `producer.id.expiration.ms`.
So a producer may be missing, unless one that is older in every respect is there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from crc32c import crc32c

from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.producer_replay import Producer, ProducerReplay
from octavo.inspect.verify.repairs import READ_ALL_PRODUCERS, READ_PRODUCERS

KIND: Final = "producer snapshot"

LENGTH: Final = Rule.declare(
    "snapshot-length",
    KIND,
    means="The file does not have exactly the entries that it announces; Kafka deletes it and reads the log again.",
    repair=READ_PRODUCERS,
)
VERSION: Final = Rule.declare(
    "snapshot-version",
    KIND,
    means="The version is unknown; Kafka deletes the snapshot and reads the log again.",
    repair=READ_PRODUCERS,
)
CRC: Final = Rule.declare(
    "snapshot-crc",
    KIND,
    means="The bytes do not match their checksum; Kafka deletes the snapshot and reads the log again.",
    repair=READ_PRODUCERS,
)
FIELDS: Final = Rule.declare(
    "snapshot-fields",
    KIND,
    means="An entry has values that no producer can have at this offset.",
    repair=READ_PRODUCERS,
)
DUPLICATE: Final = Rule.declare(
    "snapshot-duplicate",
    KIND,
    means="A producer has two entries; Kafka takes the last one and loses the other.",
    repair=READ_PRODUCERS,
)
BEYOND_END: Final = Rule.declare(
    "snapshot-beyond-end",
    KIND,
    means="The snapshot is of an offset that the log does not reach: records are missing at its end.",
    repair="Restore the end of the log from another replica; otherwise delete the snapshot, as Kafka does.",
)
NONE: Final = Rule.declare(
    "snapshot-missing",
    KIND,
    means="Producers wrote to the log, but it was closed without a snapshot: Kafka starts as if it knew none of them.",
    repair=READ_ALL_PRODUCERS,
)
UNKNOWN_PRODUCER: Final = Rule.declare(
    "snapshot-unknown-producer",
    KIND,
    means="An entry names a batch that the log does not have.",
    repair=READ_PRODUCERS,
)
MISSING_PRODUCER: Final = Rule.declare(
    "snapshot-missing-producer",
    KIND,
    means="A producer that Kafka cannot have forgotten has no entry: duplicates are stored, its transaction is lost.",
    repair=READ_PRODUCERS,
)
EPOCH: Final = Rule.declare(
    "snapshot-epoch",
    KIND,
    means="A producer's epoch is not that of its last batch: a fenced producer may write, or a good one is refused.",
    repair=READ_PRODUCERS,
)
LAST_BATCH: Final = Rule.declare(
    "snapshot-last-batch",
    KIND,
    means="The last batch of a producer is another one in the log: duplicates are stored, or good batches refused.",
    repair=READ_PRODUCERS,
)
TIMESTAMP: Final = Rule.declare(
    "snapshot-timestamp",
    KIND,
    means="The timestamp of a producer is not that of its last batch: Kafka forgets it too early or too late.",
    repair=READ_PRODUCERS,
)
COORDINATOR_EPOCH: Final = Rule.declare(
    "snapshot-coordinator-epoch",
    KIND,
    means="The coordinator epoch is not that of the last marker: good markers are refused, or stale ones taken.",
    repair=READ_PRODUCERS,
)
TRANSACTION: Final = Rule.declare(
    "snapshot-transaction",
    KIND,
    means="The open transaction of a producer is another one in the log: the last stable offset will be wrong.",
    repair=READ_PRODUCERS,
)

_START: Final = struct.Struct(">hIi")
_ENTRY: Final = struct.Struct(">qhiqiqiq")
assert _START.size == 10
assert _ENTRY.size == 46
MAX_SIZE: Final = 1 << 30  # of a snapshot: room for twenty million producers
_VERSION: Final = 1
_CRC_AT: Final = 2
_COUNT_AT: Final = 6


class SnapshotEntry(NamedTuple):
    """What a snapshot says of one producer."""

    position: int  # in the file
    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction: int  # first offset of the open one, or -1


def check_form(name: str, data: bytes, offset: int) -> tuple[list[Problem], list[SnapshotEntry] | None]:
    """Check a snapshot by itself. Returns the entries too, unless they cannot be trusted."""
    if len(data) < _START.size:
        return [LENGTH.broken(name, position=len(data), offset=offset, found=f"{len(data)} bytes")], None
    version, stored, count = _START.unpack_from(data)
    if version != _VERSION:
        return [VERSION.broken(name, position=0, offset=offset, found=f"version {version}")], None
    problems = []
    computed = crc32c(memoryview(data)[_COUNT_AT:])
    if computed != stored:
        found = f"stored {stored:#010x}, computed {computed:#010x}"
        problems.append(CRC.broken(name, position=_CRC_AT, offset=offset, found=found))
    if len(data) != _START.size + count * _ENTRY.size:
        found = f"{count} entries in {len(data)} bytes"
        problems.append(LENGTH.broken(name, position=_COUNT_AT, offset=offset, found=found))
    if problems:
        return problems, None
    rows = enumerate(_ENTRY.iter_unpack(memoryview(data)[_START.size :]))
    entries = [SnapshotEntry(_START.size + at * _ENTRY.size, *each) for at, each in rows]
    return list(_check_entries(name, entries, offset)), entries


def _check_entries(name: str, entries: list[SnapshotEntry], offset: int) -> Iterator[Problem]:
    seen: set[int] = set()
    for entry in entries:
        wrong = _wrong_field(entry, offset)
        if wrong:
            yield FIELDS.broken(name, position=entry.position, offset=offset, found=wrong)
        if entry.producer_id in seen:
            yield DUPLICATE.broken(name, position=entry.position, offset=offset, found=f"producer {entry.producer_id}")
        seen.add(entry.producer_id)


def _wrong_field(entry: SnapshotEntry, offset: int) -> str | None:
    limits = (
        ("producer id", entry.producer_id, 0, None),
        ("epoch", entry.epoch, -1, None),  # after an empty control batch, Kafka knows no epoch
        ("last sequence", entry.last_sequence, -1, None),
        ("last offset", entry.last_offset, -1, offset),
        ("first offset of the transaction", entry.transaction, -1, offset),
        ("coordinator epoch", entry.coordinator_epoch, -1, None),
    )
    for what, value, smallest, end in limits:
        if value < smallest or (end is not None and value >= end):
            return f"{what} {value} of producer {entry.producer_id}"
    return None


def check_against_log(
    name: str, entries: list[SnapshotEntry], offset: int, replay: ProducerReplay
) -> Iterator[Problem]:
    """Compare a snapshot with the producers that the log up to its offset has."""
    for entry in entries:
        if _wrong_field(entry, offset) is not None:
            continue
        producer = replay.producers.get(entry.producer_id)
        if producer is None:
            claimed = max(entry.last_offset, entry.transaction)
            if claimed >= replay.whole_from:
                found = f"producer {entry.producer_id} has no batch at {claimed}"
                yield UNKNOWN_PRODUCER.broken(name, position=entry.position, offset=offset, found=found)
        else:
            yield from _check_entry(name, entry, offset, producer, replay.whole_from)
    yield from _check_missing(name, {entry.producer_id: entry for entry in entries}, offset, replay)


def _check_entry(
    name: str, entry: SnapshotEntry, offset: int, producer: Producer, whole_from: int
) -> Iterator[Problem]:
    def broken(rule: Rule, found: str) -> Problem:
        return rule.broken(name, position=entry.position, offset=offset, found=f"producer {entry.producer_id}: {found}")

    if producer.opened is not None or entry.transaction >= 0:
        wrong = _wrong_transaction(entry, producer, whole_from)
        if wrong:
            yield broken(TRANSACTION, wrong)
    is_exact = producer.last_event >= whole_from  # compaction cannot have removed a later batch
    if not is_exact and entry.last_offset > producer.last_event:
        return
    if is_exact and entry.epoch != producer.epoch:
        yield broken(EPOCH, f"epoch {entry.epoch}, but its last batch has {producer.epoch}")
        return  # the rest follows from it
    if not _is_last_batch(entry, producer, whole_from, is_exact):
        batch = producer.last_batch
        what = "none" if batch is None else f"that to offset {batch.last_offset} with sequence {batch.last_sequence}"
        yield broken(
            LAST_BATCH, f"offset {entry.last_offset} with sequence {entry.last_sequence}, but the log has {what}"
        )
    elif is_exact:
        yield from (broken(rule, found) for rule, found in _wrong_details(entry, producer, whole_from))


def _is_last_batch(entry: SnapshotEntry, producer: Producer, whole_from: int, is_exact: bool) -> bool:
    batch, marker = producer.last_batch, producer.marker
    if entry.last_offset < 0 and entry.last_sequence < 0:  # Kafka knows no batch
        # It forgets an idle producer; if a marker without records follows, that is all it knows.
        return batch is None or producer.ended_nothing or not is_exact
    if marker is not None and marker.offset == producer.last_event == entry.last_offset:
        # Release 0.11 counted a marker as a batch with the sequence of the last record.
        return entry.offset_delta == 0 and (batch is None or entry.last_sequence == batch.last_sequence)
    last_known = -1 if producer.data is None else producer.data.last_offset
    if batch is None or entry.last_offset > last_known:  # then compaction must have removed it
        return last_known < entry.last_offset < whole_from
    delta = batch.last_offset - batch.base_offset
    return (
        entry.last_offset == batch.last_offset
        and entry.last_sequence == batch.last_sequence
        and (entry.offset_delta == delta or batch.base_sequence < 0)  # old releases: 0 for want of sequences
    )


def _wrong_details(entry: SnapshotEntry, producer: Producer, whole_from: int) -> Iterator[tuple[Rule, str]]:
    batch, marker = producer.last_batch, producer.marker
    if marker is not None and marker.offset >= whole_from:
        allowed = {marker.coordinator_epoch}
        if marker.offset != producer.last_event:
            allowed.add(-1)  # forgotten after the marker, and met again
        if entry.coordinator_epoch not in allowed:
            found = f"coordinator epoch {entry.coordinator_epoch}, but its last marker has {marker.coordinator_epoch}"
            yield COORDINATOR_EPOCH, found
    if entry.last_offset >= 0 and (batch is None or batch.last_offset != entry.last_offset or not batch.is_whole):
        return  # its timestamp is not known any more
    # Until release 2.5, markers did not count, and a producer without a batch had no timestamp.
    times = {-1 if batch is None or entry.last_offset < 0 else batch.max_timestamp}
    if marker is not None:
        times.add(marker.timestamp)
    if entry.timestamp not in times:
        yield TIMESTAMP, f"timestamp {entry.timestamp}, but its last batch has {max(times)}"


def _wrong_transaction(entry: SnapshotEntry, producer: Producer, whole_from: int) -> str | None:
    opened = producer.opened
    if opened is None:
        ended = -1 if producer.marker is None else producer.marker.offset
        is_gone = ended < entry.transaction < whole_from  # its batches may have been removed since
        return None if is_gone else f"open since {entry.transaction}, but the log has no such transaction"
    if entry.transaction == opened.base_offset:
        return None
    if opened.base_sequence < 0 and opened.has(entry.transaction):
        return None  # old releases: the last record, if a batch has no sequence
    ended = -1 if producer.marker is None else producer.marker.offset
    if entry.transaction >= 0 and ended < entry.transaction < min(whole_from, opened.base_offset):
        return None  # its first batches may have been removed since
    return f"open since {entry.transaction}, but in the log since {opened.base_offset}"


def _check_missing(
    name: str, entries: Mapping[int, SnapshotEntry], offset: int, replay: ProducerReplay
) -> Iterator[Problem]:
    kept = _oldest_kept(entries, replay)
    for producer_id, producer in replay.producers.items():
        if producer_id in entries:
            continue
        batch = producer.last_batch
        times = [] if batch is None else [batch.max_timestamp]
        if producer.marker is not None:
            times.append(producer.marker.timestamp)
        is_newer = batch is not None and any(
            event < producer.last_event and timestamp <= min(times) for event, timestamp in kept
        )
        if producer.opened is not None:
            found = f"producer {producer_id} has a transaction open since {producer.opened.base_offset}"
        elif is_newer:
            found = f"producer {producer_id} wrote at {producer.last_event}, later than others that are there"
        else:
            continue
        yield MISSING_PRODUCER.broken(name, position=_COUNT_AT, offset=offset, found=found)


def _oldest_kept(entries: Mapping[int, SnapshotEntry], replay: ProducerReplay) -> list[tuple[int, int]]:
    """Return offset and timestamp of producers that are remembered without an open transaction, the fewest that matter.

    One that is neither earlier in the log nor older than another is left out.
    """
    found = []
    for producer_id, entry in entries.items():
        producer = replay.producers.get(producer_id)
        if producer is None or producer.last_batch is None or producer.last_event < replay.whole_from:
            continue
        if producer.opened is None and entry.transaction < 0:
            found.append((producer.last_event, entry.timestamp))
    kept: list[tuple[int, int]] = []
    for event, timestamp in sorted(found):
        if not kept or timestamp < kept[-1][1]:
            kept.append((event, timestamp))
    return kept
