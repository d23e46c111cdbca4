"""Find the producer ids that occur in logs, so that none of them is given out again.

A log detects duplicates by producer id and sequence number. If a new producer gets an id that is in a log, its first
record is taken for a duplicate, acknowledged, and lost. The metadata say which ids were given out, but not which ids
are in partitions that came from elsewhere. So partitions are searched for ids:

    of a topic that is new to the metadata     in all producer snapshots, and the headers of all batches
    of any other topic                         in all snapshots, and the headers of the batches after the newest one
    of `__transaction_state`, if new           also in the contents of records: an id may have written nothing yet

A batch counts only if its checksum is right. Damage is skipped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Final

from octavo.errors import BadDirectory, CorruptFile, FormatError
from octavo.log.names import LOG, SNAPSHOT, TRANSACTION_STATE, TopicPartition, base_offset_of, file_name
from octavo.log.producer_state.replay import snapshots_of
from octavo.log.producer_state.snapshot import read_snapshot
from octavo.log.segment.damage import pass_over
from octavo.log.storage import File, Storage
from octavo.records import Batch, read_batches
from octavo.records.layout import MAX_INT64, NO_PRODUCER_ID
from octavo.schemas.transaction_state import TransactionLogValue, read_transaction_key
from octavo.schemas.versioned import read_value

PRODUCER_IDS: Final = 1000  # size of a block, as Kafka's controller gives it to a broker
_MAX_VERIFIED: Final = 256 << 20  # bytes; the header of a larger batch is trusted


def first_free_producer_id(storage: Storage, found: Mapping[TopicPartition, Path], new: Container[str]) -> int:
    """Return the first id above all ids in the partitions `found`. `new` are the topics missing from the metadata.

    Raises `BadDirectory` if Kafka would have none left to give out.
    """
    largest = NO_PRODUCER_ID
    for partition, path in found.items():
        largest = max(largest, _largest_in(storage, partition, path, whole=partition.topic in new))
        if largest > MAX_INT64 - PRODUCER_IDS:
            raise BadDirectory(path, f"it knows the producer id {largest}, and above that there are none to give out")
    return largest + 1


def _largest_in(storage: Storage, partition: TopicPartition, folder: Path, *, whole: bool) -> int:
    """Return the largest producer id in one partition; -1 if there is none. `whole`: read all its batches."""
    snapshots = snapshots_of(folder)
    known = [NO_PRODUCER_ID]
    for offset in snapshots:
        with contextlib.suppress(CorruptFile):  # a damaged snapshot is rebuilt from the data
            known += read_snapshot(storage, folder / file_name(offset, SNAPSHOT))
    names = [path.name for path in folder.iterdir() if path.name.endswith(LOG)]
    bases = sorted(base for base in map(base_offset_of, names) if base is not None)
    if not whole and snapshots:
        behind = sum(base <= snapshots[-1] for base in bases)
        bases = bases[max(behind - 1, 0) :]
    largest = max(known)
    for base in bases:
        file = storage.open(folder / file_name(base, LOG))
        largest = _largest_in_batches(file, largest)
        if whole and partition.topic == TRANSACTION_STATE:
            largest = max(largest, _largest_in_states(file))
    return largest


def _largest_in_batches(file: File, largest: int) -> int:
    """Return the largest producer id of all batches in a file, or `largest` if none is larger."""
    from octavo.log.segment.header_scan import scan_headers
    from octavo.records.kernels import scan

    for table, shift in scan_headers(file, 0, file.size(), pass_over()):
        rows = table[(table[:, scan.MAGIC] == 2) & (table[:, scan.PRODUCER_ID] > largest)]
        for row in rows[rows[:, scan.PRODUCER_ID].argsort()[::-1]]:
            if _is_sound(file, shift + int(row[scan.POSITION]), int(row[scan.SIZE])):
                largest = int(row[scan.PRODUCER_ID])
                break
    return largest


def _largest_in_states(file: File) -> int:
    """Return the largest producer id in the transaction states in a file of `__transaction_state`; -1 if none."""
    largest = NO_PRODUCER_ID
    for batch in _batches(file):
        with contextlib.suppress(FormatError):  # reporting the damage is up to Kafka's coordinator
            for value in _states(batch):
                largest = max(largest, value.producer_id, value.previous_producer_id, value.next_producer_id)
    return largest


def _states(batch: Batch) -> Iterator[TransactionLogValue]:
    for record in () if batch.is_control else batch:
        if record.key is not None and record.value is not None and read_transaction_key(record.key) is not None:
            yield read_value(TransactionLogValue, record.value)


def _batches(file: File) -> Iterator[Batch]:
    """Yield the undamaged batches of a file."""
    from octavo.log.segment.header_scan import scan_headers
    from octavo.records.kernels import scan

    for table, shift in scan_headers(file, 0, file.size(), pass_over()):
        for position, size in table[:, [scan.POSITION, scan.SIZE]].tolist():
            if size <= _MAX_VERIFIED:
                with contextlib.suppress(FormatError):
                    yield from read_batches(file.read_at(size, shift + position))


def _is_sound(file: File, position: int, size: int) -> bool:
    if size > _MAX_VERIFIED:
        return True
    try:
        return next(read_batches(file.read_at(size, position)), None) is not None
    except FormatError:
        return False
