"""Headers of batches from idempotent and transactional producers, and the markers in control batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from octavo.errors import FormatError
from octavo.records.control import ControlType, EndTransactionMarker, read_control
from octavo.records.layout import (
    BATCH_HEADER,
    FLAGS_AT,
    MAGIC_AT,
    MAX_SEQUENCE,
    NO_SEQUENCE,
    PRODUCER_ID_AT,
    Attributes,
    Buffer,
)
from octavo.records.reader import read_batches

_PRODUCER: Final = BATCH_HEADER.only(
    "base_offset",
    "attributes",
    "last_offset_delta",
    "max_timestamp_ms",
    "producer_id",
    "producer_epoch",
    "base_sequence",
)
_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CONTROL: Final = int(Attributes.CONTROL)
_NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call


class Marker(NamedTuple):
    """A transaction marker: commit or abort."""

    is_commit: bool
    coordinator_epoch: int
    timestamp_ms: int


class ProducerBatch(NamedTuple):
    """The fields of a batch that the producer state needs."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    is_transactional: bool
    is_control: bool
    marker: Marker | None  # the marker in a control batch, unless that is empty


def has_producer(header: Buffer) -> bool:
    """Whether a batch of magic 2 has a producer id."""
    return header[PRODUCER_ID_AT] < 0x80


def producer_batch(header: Buffer, records: Buffer) -> ProducerBatch:
    """Parse the header of a batch with a producer id. The `records` after it are read only if they hold a marker."""
    base_offset, attributes, delta, max_timestamp_ms, producer_id, epoch, sequence = _PRODUCER.unpack_from(header, 0)
    batch = batch_of_fields(
        producer_id, epoch, sequence, attributes, base_offset, base_offset + delta, max_timestamp_ms
    )
    return batch._replace(marker=read_marker(bytes(header) + bytes(records))) if batch.is_control else batch


def batch_of_fields(
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    attributes: int,
    base_offset: int,
    last_offset: int,
    max_timestamp_ms: int,
) -> ProducerBatch:
    """Return a batch with these fields of its header, without a marker."""
    last_sequence = NO_SEQUENCE if base_sequence < 0 else base_sequence + last_offset - base_offset & MAX_SEQUENCE
    fields = (
        producer_id,
        producer_epoch,
        base_sequence,
        last_sequence,
        base_offset,
        last_offset,
        max_timestamp_ms,
        attributes & _TRANSACTIONAL != 0,
        attributes & _CONTROL != 0,
        None,
    )
    return _NEW(ProducerBatch, fields)


def read_marker(batch: Buffer) -> Marker | None:
    """Return the transaction marker in a control batch; None if it has none."""
    try:
        for found in read_batches(batch, verify=False):
            for record in found:
                control = read_control(record)
                if isinstance(control, EndTransactionMarker):
                    is_commit = control.type is ControlType.COMMIT
                    return Marker(is_commit, control.coordinator_epoch, record.timestamp_ms)
                return None
    except FormatError:
        pass  # a control batch that nobody can read, though its checksum is right, ends no transaction
    return None


def producer_batches(parts: Sequence[Buffer], sizes: Iterable[int]) -> list[ProducerBatch]:
    """Return the batches that have a producer id.

    `parts`: the bytes of batches of these `sizes`. No header is split between two parts.
    """
    found = []
    rest = iter(parts)
    part = memoryview(b"")
    for size in sizes:
        while not part:
            part = memoryview(next(rest))
        batch, left = part[:size], size
        if batch[MAGIC_AT] == 2 and has_producer(batch):
            records: Buffer = b""
            if batch[FLAGS_AT] & _CONTROL and len(batch) < size:
                part = memoryview(next(rest))
                left -= len(batch)
                records = part[:left]
            found.append(producer_batch(batch, records))
        while left > len(part):
            left -= len(part)
            part = memoryview(next(rest))
        part = part[left:]
    return found
