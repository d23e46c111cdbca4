"""Read and write `.snapshot` files: the state of all producers of a partition at an offset, in Kafka's format.

    version   int16     1
    crc       uint32    CRC-32C of what follows
    count     int32     number of entries of 46 bytes each, which follow

The file is named after the offset up to which it covers the log. It holds only the last batch of each producer. It is
written in place, and synced only when a log is closed: a snapshot can be rebuilt from the data at any time, and the
checksum exposes an incomplete one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import CorruptFile
from octavo.log.producer_state.states import ProducerEntry, RememberedBatch
from octavo.log.storage import Storage
from octavo.records.checksum import crc32c
from octavo.records.layout import Int16, Int32, Int64, Layout, UInt32

_VERSION: Final = 1


class _Start(NamedTuple):
    version: Int16
    crc: UInt32
    entry_count: Int32


class _Entry(NamedTuple):
    producer_id: Int64
    epoch: Int16
    last_sequence: Int32  # -1 if there is no batch; then last_offset is -1 too, and offset_delta 0
    last_offset: Int64
    offset_delta: Int32
    timestamp_ms: Int64
    coordinator_epoch: Int32
    txn_first_offset: Int64  # -1 if no transaction is open


START: Final = Layout(_Start)
ENTRY: Final = Layout(_Entry)
assert START.size == 10
assert ENTRY.size == 46
_COVERED_FROM: Final = START.at("entry_count")
_MAX_SIZE: Final = 1 << 30  # room for twenty million producers
_ROWS: Final = ENTRY.only(*_Entry._fields)  # a plain struct, fast enough for many entries


def write_snapshot(storage: Storage, path: Path, entries: Mapping[int, ProducerEntry], *, sync: bool = False) -> None:
    """Write a snapshot, overwriting an existing file. Raises `OSError`."""
    pack = _ROWS.pack
    rows = [
        pack(
            producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.offset_delta,
            entry.last_timestamp_ms,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for producer_id, entry in entries.items()
    ]
    covered = b"".join([len(rows).to_bytes(4, "big"), *rows])
    file = storage.open_to_write(path, create=True)
    file.truncate(0)
    file.write_at([START.write(_Start(_VERSION, crc32c(covered), 0))[:_COVERED_FROM], covered], 0)
    if sync:
        file.sync()


def read_snapshot(storage: Storage, path: Path) -> dict[int, ProducerEntry]:
    """Read the state of each producer. Raises `CorruptFile` and `FileNotFoundError`."""
    file = storage.open(path)
    start = file.read_at(START.size, 0)
    if len(start) < START.size:
        raise CorruptFile(path, len(start), "a snapshot of producers ends before its entries begin")
    version, stored, count = START.read(start)
    if version != _VERSION:
        raise CorruptFile(path, 0, f"version {version} of the producer snapshot format is unknown")
    size = file.size()
    if size > _MAX_SIZE:
        raise CorruptFile(path, _MAX_SIZE, f"the file has {size:,} bytes, and none of its kind has so many")
    if size != START.size + count * ENTRY.size:
        raise CorruptFile(path, _COVERED_FROM, f"there is no room for exactly the {count} entries that are announced")
    data = file.read_at(size, 0)
    computed = crc32c(memoryview(data)[_COVERED_FROM:])
    if computed != stored:
        raise CorruptFile(path, 2, f"checksum is {stored:#010x} but the bytes give {computed:#010x}")
    entries = {}
    for row in _ROWS.iter_unpack(memoryview(data)[START.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp_ms, coordinator_epoch, txn_first_offset = row
        batch = RememberedBatch(sequence, offset, delta, timestamp_ms) if offset >= 0 else None
        entries[producer_id] = ProducerEntry(epoch, coordinator_epoch, timestamp_ms, txn_first_offset, batch)
    return entries
