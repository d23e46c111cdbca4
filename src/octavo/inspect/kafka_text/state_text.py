"""The text of transaction indexes and of snapshots of producers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from octavo.inspect.kafka_text.java_names import JavaFile, parse_long
from octavo.inspect.kafka_text.output import Output
from octavo.inspect.kafka_text.throwables import KAFKA, Throwable
from octavo.inspect.kinds import open_regular
from octavo.records.checksum import crc32c
from octavo.records.sequence import decrement_sequence

_ABORTED: Final = struct.Struct(">bxqqqq")  # Kafka reads one byte of the version
_PRODUCER: Final = struct.Struct(">qhiqiqiq")
_VERSION: Final = 1
_VERSION_SIZE: Final = 2
_COVERED_FROM: Final = 6  # by the checksum
_ENTRIES_AT: Final = 10


def print_transaction_index(output: Output, file: JavaFile) -> None:
    """Print the aborted transactions. Raises what Kafka's tool throws; it reads all entries before it prints one."""
    parse_long(file.name.partition(".")[0])
    opened = open_regular(Path(file.path))
    size = opened.size()
    lines = []
    for fields in _ABORTED.iter_unpack(opened.read_at(size - size % _ABORTED.size, 0)):
        version, producer_id, first, last, last_stable = fields
        if version > 0:
            raise Throwable(
                KAFKA,
                f"Unexpected aborted transaction version {version} in transaction index {file.absolute}, current "
                "version is 0",
            )
        lines.append(
            f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {last_stable}\n"
        )
    output.write("".join(lines))


def print_producer_snapshot(output: Output, file: JavaFile) -> None:
    """Print the producers; of a damaged file, what is wrong with it goes to standard error."""
    opened = open_regular(Path(file.path))
    data = opened.read_at(opened.size(), 0)
    problem = _problem(data)
    if problem is not None:
        output.error(problem)
        output.is_damaged = True
        return
    count = int.from_bytes(data[_COVERED_FROM:_ENTRIES_AT], "big")
    for fields in _PRODUCER.iter_unpack(data[_ENTRIES_AT : _ENTRIES_AT + count * _PRODUCER.size]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first = fields
        transaction = f"[{first}]" if first >= 0 else ".empty"
        output.write(
            f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
            f"currentTxnFirstOffset: OptionalLong{transaction} lastTimestamp: {timestamp}"
        )
        if offset >= 0:
            first_sequence = decrement_sequence(sequence, delta)
            output.write(
                f" firstSequence: {first_sequence} lastSequence: {sequence} lastOffset: {offset} offsetDelta: {delta} "
                f"timestamp: {timestamp}"
            )
        output.line("")


def _problem(data: bytes) -> str | None:
    """Return what Kafka says about a snapshot that it does not accept, or None."""
    problem = _schema_problem(data)
    if problem is not None:
        return f"Snapshot failed schema validation: {problem}"
    stored, computed = int.from_bytes(data[2:6], "big"), crc32c(data[_COVERED_FROM:])
    if stored != computed:
        return f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
    return None


def _schema_problem(data: bytes) -> str | None:
    if len(data) < _VERSION_SIZE:
        return "null"  # Java's exception for too few bytes has no message
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    if version != _VERSION:
        return f"Snapshot contained an unknown file version {version}"
    if len(data) < _ENTRIES_AT:
        return "null"
    count = int.from_bytes(data[_COVERED_FROM:_ENTRIES_AT], "big", signed=True)
    left = len(data) - _ENTRIES_AT
    if count < 0:
        return "non-nullable field producerEntries was serialized as null"
    if count > left:
        return f"Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
    return "null" if count * _PRODUCER.size > left else None


assert _PRODUCER.size == 46
