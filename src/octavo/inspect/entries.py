"""Read the entries of the files that Kafka keeps beside segments, as plain dictionaries.

    offset-index            offset, relativeOffset, position
    time-index              timestamp, offset, relativeOffset
    transaction-index       version, producerId, firstOffset, lastOffset, lastStableOffset
    producer-snapshot       producerId, producerEpoch, coordinatorEpoch, currentTxnFirstOffset, lastTimestamp,
                            firstSequence, lastSequence, lastOffset, offsetDelta
    leader-epoch-checkpoint epoch, startOffset
    offset-checkpoint       topic, partition, offset
    partition-metadata      name, value: one entry for each line, as for the next three
    meta-properties
    quorum-state
    clean-shutdown

The names are Kafka's own where it has any. Every entry begins with `kind`, one of the names on the left, then `topic`
and `partition`, which are null outside of a partition's folder, and ends with `file`. Nothing is compared with the
segment (that is what `octavo verify` does), but a file that cannot be read as its kind raises `CorruptFile`, after all
entries before the damage. Files of any size are read in bounded memory, except for those that are always small.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.errors import Corrupt, CorruptFile
from octavo.inspect.kinds import FileName, Kind, check_regular, open_regular
from octavo.log.names import TopicPartition
from octavo.log.storage import DISK
from octavo.records.layout import MAX_INT32

Entry = dict[str, Any]
Row = tuple[Any, ...]

_CHUNK: Final = 8 * 12 * 34 * 256  # bytes that are read at a time: a multiple of every entry's size
_MOST_SMALL: Final = 1 << 20  # bytes of a file of properties: more than any has

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_ABORTED_ENTRY: Final = struct.Struct(">hqqqq")


class _Form(NamedTuple):
    """How the entries of one kind are read."""

    name: str
    fields: tuple[str, ...]
    read: Callable[[Path, FileName], Iterator[Row]]


def has_entries(kind: Kind) -> bool:
    """Return whether files of this kind have entries that `read_entries` reads."""
    return kind in _FORMS


def fields_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of the fields of every entry of a kind, in their order."""
    form = _FORMS[kind]
    own = form.fields
    place = () if own[0] == "topic" else ("topic", "partition")
    return ("kind", *place, *own, "file")


def name_of(kind: Kind) -> str:
    """Return the name of a kind, as it is in every entry."""
    return _FORMS[kind].name


def read_entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of a file whose kind `has_entries`. Raises `Unreadable`, and `CorruptFile` at damage."""
    name = FileName.parse(path.name)
    form = _FORMS[name.kind]
    check_regular(path)
    fields = fields_of(name.kind)
    folder = TopicPartition.parse(path.absolute().parent.name)
    place: Row = () if form.fields[0] == "topic" else (folder or (None, None))
    file = str(path)
    for row in form.read(path, name):
        yield dict(zip(fields, (form.name, *place, *row, file), strict=True))


def _read_rows(path: Path, row: struct.Struct, *, filled: bool) -> Iterator[Row]:
    """Yield the rows of a file of rows of one size.

    `filled`: Kafka gives such a file its full size in advance, filled with zeros. Zeros at the end are no rows, except
    if they are the only row.
    """
    file = open_regular(path)
    if file.size() > MAX_INT32:
        raise CorruptFile(path, MAX_INT32, f"the file has {file.size():,} bytes, and none of its kind has so many")
    only_one = file.size() == row.size
    number = zeros = 0
    while data := file.read_at(_CHUNK, number * row.size):
        whole = len(data) - len(data) % row.size
        if filled and not only_one and data.count(0) == len(data):
            zeros += whole // row.size
        else:
            for fields in row.iter_unpack(memoryview(data)[:whole]):
                if filled and not only_one and not any(fields):
                    zeros += 1
                else:
                    yield from repeat((0,) * len(fields), zeros)
                    zeros = 0
                    yield fields
        number += whole // row.size
        if whole < len(data):
            raise CorruptFile(path, number * row.size, f"an entry takes {row.size} bytes, and the last one is cut")


def _offset_index(path: Path, name: FileName) -> Iterator[Row]:
    for relative, position in _read_rows(path, _OFFSET_ENTRY, filled=True):
        yield None if name.base_offset is None else name.base_offset + relative, relative, position


def _time_index(path: Path, name: FileName) -> Iterator[Row]:
    for timestamp_ms, relative in _read_rows(path, _TIME_ENTRY, filled=True):
        yield timestamp_ms, None if name.base_offset is None else name.base_offset + relative, relative


def _transaction_index(path: Path, name: FileName) -> Iterator[Row]:
    return _read_rows(path, _ABORTED_ENTRY, filled=False)


def _producer_snapshot(path: Path, name: FileName) -> Iterator[Row]:
    from octavo.log.producer_state.snapshot import read_snapshot

    for producer_id, entry in read_snapshot(DISK, path).items():
        batch = entry.batches[-1] if entry.batches else None
        yield (
            producer_id,
            entry.epoch,
            entry.coordinator_epoch,
            None if entry.txn_first_offset < 0 else entry.txn_first_offset,
            entry.last_timestamp_ms,
            None if batch is None else batch.first_sequence,
            None if batch is None else batch.last_sequence,
            None if batch is None else batch.last_offset,
            None if batch is None else batch.offset_delta,
        )


def _leader_epochs(path: Path, name: FileName) -> Iterator[Row]:
    from octavo.log.files.text_checkpoint import read_epochs

    return iter(read_epochs(DISK, path))


def _offset_checkpoint(path: Path, name: FileName) -> Iterator[Row]:
    from octavo.log.files.text_checkpoint import read_offsets

    for partition, offset in read_offsets(DISK, path).items():
        yield *partition, offset


def _properties(path: Path, name: FileName) -> Iterator[Row]:
    from octavo.log.files.properties import read_properties
    from octavo.log.files.small_file import read_small_file

    data = read_small_file(DISK, path, _MOST_SMALL)
    if b"\0" in data:  # Java would read it, but nobody writes it
        raise CorruptFile(path, data.index(b"\0"), "a file of properties is text, without null characters")
    try:
        found = read_properties(data)
    except Corrupt as error:
        raise CorruptFile(path, error.position, error.rule) from None
    if _EXPECTED[name.kind].isdisjoint(found):
        expected = ", ".join(sorted(_EXPECTED[name.kind]))
        raise CorruptFile(path, 0, f"none of the names that such a file has is in it: {expected}")
    return iter(found.items())


def _json_object(path: Path, name: FileName) -> Iterator[Row]:
    """Read a file that is one JSON object, or empty, as old releases left the mark of a clean shutdown."""
    from octavo.log.files.small_file import read_small_file

    data = read_small_file(DISK, path, _MOST_SMALL)
    try:
        content = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise CorruptFile(path, 0, "the file is not a JSON object")
    for key, value in content.items():
        yield key, value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


_EXPECTED: Final = {
    Kind.PARTITION_METADATA: frozenset({"topic_id"}),
    Kind.META_PROPERTIES: frozenset({"broker.id", "cluster.id", "node.id"}),
}
_PAIR: Final = ("name", "value")
_FORMS: Final = {
    Kind.OFFSET_INDEX: _Form("offset-index", ("offset", "relativeOffset", "position"), _offset_index),
    Kind.TIME_INDEX: _Form("time-index", ("timestamp", "offset", "relativeOffset"), _time_index),
    Kind.TRANSACTION_INDEX: _Form(
        "transaction-index",
        ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset"),
        _transaction_index,
    ),
    Kind.PRODUCER_SNAPSHOT: _Form(
        "producer-snapshot",
        (
            "producerId",
            "producerEpoch",
            "coordinatorEpoch",
            "currentTxnFirstOffset",
            "lastTimestamp",
            "firstSequence",
            "lastSequence",
            "lastOffset",
            "offsetDelta",
        ),
        _producer_snapshot,
    ),
    Kind.LEADER_EPOCHS: _Form("leader-epoch-checkpoint", ("epoch", "startOffset"), _leader_epochs),
    Kind.OFFSET_CHECKPOINT: _Form("offset-checkpoint", ("topic", "partition", "offset"), _offset_checkpoint),
    Kind.PARTITION_METADATA: _Form("partition-metadata", _PAIR, _properties),
    Kind.META_PROPERTIES: _Form("meta-properties", _PAIR, _properties),
    Kind.QUORUM_STATE: _Form("quorum-state", _PAIR, _json_object),
    Kind.CLEAN_SHUTDOWN: _Form("clean-shutdown", _PAIR, _json_object),
}
