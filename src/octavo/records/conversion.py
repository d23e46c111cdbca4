"""Convert batches to another magic or codec, by Kafka's rules.

    magic   down    (Kafka's `RecordsUtil.downConvert`) a batch becomes one message for each record, or one wrapper
                    if it is compressed. Control batches are dropped. Headers, producers, sequences, epochs and,
                    in magic 0, timestamps are lost
            up      (Kafka's `LogValidator`) a wrapper becomes a batch, and consecutive messages become batches.
                    Records without a timestamp get -1
    codec           the records stay the same, byte for byte; only their compression changes. A batch that already
                    has the codec stays as it is, whatever its compression level

Offsets never change, and each batch is converted on its own: a log that holds the same offsets twice still does so
afterwards. Parts of a buffer that need no conversion are copied. The rest goes through the kernels and Arrow, some
megabytes at a time: no Python object is created for a record or a message, only one for each batch that changes codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import BadRecord, InvalidInput, Unsupported
from octavo.records.batch import Batch
from octavo.records.compression import DEFAULT_LIMIT, compress, decompress
from octavo.records.fields import codec_of
from octavo.records.kernels import kernels, rules, scan
from octavo.records.kernels.batch_checksums import first_mismatch, mismatch
from octavo.records.kernels.batch_table import BatchTable
from octavo.records.layout import (
    BATCH_HEADER,
    MAX_SIZE,
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    Attributes,
    Buffer,
    Codec,
    TimestampType,
)
from octavo.records.reader import read_batches
from octavo.records.v2 import write_batch

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = npt.NDArray[np.int64]

_TOGETHER: Final = 1 << 20  # bytes of messages that become one batch, just below Kafka's default batch size limit
_TABLE_ROWS: Final = 8192  # maximum number of batches that are scanned together
_WINDOW: Final = 8 << 20  # bytes of batches after which a scan stops


@dataclass(slots=True)
class Lost:
    """Counts of what a conversion could not keep."""

    control_batches: int = 0  # dropped
    empty_batches: int = 0  # dropped: they hold a producer's last sequence, which the target cannot store
    headers: int = 0  # records whose headers were dropped
    timestamps: int = 0  # records whose timestamp was dropped
    producers: int = 0  # batches that lost their producer id, epoch, sequence and transactional flag
    leader_epochs: int = 0  # batches that lost their leader epoch
    delete_horizons: int = 0  # batches that lost their delete horizon

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        counts = ((field.name.replace("_", " "), getattr(self, field.name)) for field in fields(self))
        return ", ".join(f"{name} {count}" for name, count in counts if count) or "nothing"


class Converted(NamedTuple):
    """The converted bytes, and what was lost in the conversion."""

    data: bytes
    lost: Lost


def convert(
    buffer: Buffer,
    *,
    magic: int | None = None,
    codec: Codec | str | None = None,
    level: int | None = None,
    max_decompressed: int = DEFAULT_LIMIT,
) -> Converted:
    """Convert the batches of `buffer` to `magic` and `codec`. None keeps each batch's own value.

    Drops a torn tail. Raises `FormatError` for damage in the buffer. Raises `Unsupported` if a batch is compressed with
    zstd, the target is magic 0 or 1, and no other codec is given; Kafka refuses that as well. Raises `InvalidInput` for
    a target that does not exist and for records that Kafka's builder refuses, such as one with a negative timestamp.
    """
    if magic not in (None, 0, 1, 2):
        raise InvalidInput(f"there is no magic {magic}")
    codec = None if codec is None else codec_of(codec)
    if codec == Codec.ZSTD and magic is not None and magic < 2:
        raise InvalidInput(f"magic {magic} has no zstd")
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise InvalidInput("the buffer's bytes do not lie one after another")
    view = view.cast("B")
    lost = Lost()
    out = BytesIO()
    for run in _runs(view, magic, codec, lost):
        if run.way == _Action.KEEP:
            out.write(view[run.start : run.end])
        elif run.way == _Action.RECOMPRESS:
            assert codec is not None
            for batch in read_batches(
                view, start=run.start, end=run.end, verify=False, max_decompressed=max_decompressed
            ):
                out.write(_recompressed(batch, codec, level, max_decompressed))
        else:
            target = run.magic if magic is None else magic
            for piece in _rebuilt(view, run, target, codec, level, lost, max_decompressed):
                out.write(piece)
    return Converted(out.getvalue(), lost)


class _Action(IntEnum):
    """What a conversion does with a batch."""

    KEEP = 0
    RECOMPRESS = 1  # compress the same records differently
    REBUILD = 2  # make new batches or messages from the same records


class _Run(NamedTuple):
    """Consecutive batches of one magic that are treated alike."""

    way: _Action
    magic: int
    start: int
    end: int


def _runs(view: memoryview, magic: int | None, codec: Codec | None, lost: Lost) -> Iterator[_Run]:
    """Walk and check the batches, and yield what to do with them; counts the batches that lose something."""
    run: _Run | None = None
    for table in _windows(view):
        actions = _actions(table, magic, codec)
        if magic is not None and magic < 2:
            _count_lost_batches(table[actions == _Action.REBUILD], lost)
        kinds = np.stack((actions, table[:, scan.MAGIC]))
        first = np.flatnonzero(np.append(True, (kinds[:, 1:] != kinds[:, :-1]).any(axis=0)))
        last = np.append(first[1:], len(table)) - 1
        starts, ends = table[first, scan.POSITION], table[last, scan.END]
        for way, of_magic, start, end in zip(*kinds[:, first].tolist(), starts.tolist(), ends.tolist(), strict=True):
            if run is not None and (way, of_magic) == (run.way, run.magic):
                run = run._replace(end=end)
                continue
            if run is not None:
                yield run
            run = _Run(_Action(way), of_magic, start, end)
    if run is not None:
        yield run


def _windows(view: memoryview) -> Iterator[Int64s]:
    """Yield non-empty tables of the next batches, with their checksums verified. Raises at the first damage."""
    data = np.frombuffer(view, np.uint8)
    kernel_set = kernels(len(view))
    table = BatchTable(kernel_set, _TABLE_ROWS)
    outcome = scan.MORE
    while outcome == scan.MORE:
        outcome = table.scan(data, table.position, len(view), _WINDOW)
        found = table.batches
        wrong = first_mismatch(kernel_set, data, found)
        if wrong is not None:
            raise mismatch(data, found[wrong])
        if len(found):
            yield found
        if outcome == scan.BROKEN:
            raise rules.broken(table.rule, table.position)


def _actions(table: Int64s, magic: int | None, codec: Codec | None) -> Int64s:
    """Return what to do with each batch of a table.

    Old messages are nested in their wrapper, so another codec means another nesting, and the batch is rebuilt.

    Raises `Unsupported` at the first batch whose codec does not exist at all, or not in the target.
    """
    own_magic = table[:, scan.MAGIC]
    own_codec = table[:, scan.ATTRIBUTES] & Attributes.CODEC
    same_magic = own_magic == magic if magic is not None else np.full(len(table), True)
    same_codec = own_codec == codec if codec is not None else np.full(len(table), True)
    kept = same_magic & (same_codec | (table[:, scan.COUNT] == 0))
    recompressed = same_magic & (own_magic == 2)
    actions = np.where(kept, _Action.KEEP, np.where(recompressed, _Action.RECOMPRESS, _Action.REBUILD)).astype(np.int64)
    refused = own_codec >= len(Codec)
    if codec is None:
        refused &= ~same_magic
        if magic is not None and magic < 2:
            refused |= ~same_magic & (own_codec == Codec.ZSTD) & ~_have_flag(table, Attributes.CONTROL)
    if refused.any():
        row = int(refused.argmax())
        if own_codec[row] < len(Codec):
            raise Unsupported(
                int(table[row, scan.POSITION]), f"magic {magic} has no zstd, and no other codec is asked for"
            )
        raise Unsupported(int(table[row, scan.POSITION]), f"there is no codec {own_codec[row]}")
    return actions


def _have_flag(table: Int64s, flag: Attributes) -> npt.NDArray[np.bool_]:
    """Return for each batch whether it has `flag`, which exists in magic 2 only."""
    has: npt.NDArray[np.bool_] = (table[:, scan.MAGIC] == 2) & ((table[:, scan.ATTRIBUTES] & flag) != 0)
    return has


def _count_lost_batches(table: Int64s, lost: Lost) -> None:
    control = _have_flag(table, Attributes.CONTROL)
    empty = table[:, scan.COUNT] == 0
    stay = ~control & ~empty
    lost.control_batches += int(control.sum())
    lost.empty_batches += int((empty & ~control).sum())
    lost.producers += int((stay & (table[:, scan.PRODUCER_ID] != NO_PRODUCER_ID)).sum())
    lost.leader_epochs += int((stay & (table[:, scan.LEADER_EPOCH] != NO_LEADER_EPOCH)).sum())
    lost.delete_horizons += int((stay & _have_flag(table, Attributes.DELETE_HORIZON)).sum())


def _recompressed(batch: Batch, codec: Codec, level: int | None, max_decompressed: int) -> bytes:
    """Return a batch of magic 2 with the same records in another compression."""
    records: Buffer = batch.data[BATCH_HEADER.size :]
    if batch.is_compressed:
        records = decompress(batch.codec, records, limit=max_decompressed, position=batch.position)
    if codec:
        records = compress(codec, records, level=level)
    header = BATCH_HEADER.read(batch.data)
    return write_batch(header._replace(attributes=batch.attributes & ~Attributes.CODEC | codec), records)


def _rebuilt(
    view: memoryview,
    run: _Run,
    magic: int,
    codec: Codec | None,
    level: int | None,
    lost: Lost,
    max_decompressed: int,
) -> Iterator[memoryview]:
    """Yield the records of a run as batches or messages of another magic, or in other wrappers."""
    from octavo.records.arrow.decoder import to_arrow
    from octavo.records.arrow.schema import ALL_COLUMNS
    from octavo.records.arrow.writer import from_arrow

    chunks = to_arrow(
        view,
        columns=ALL_COLUMNS,
        start=run.start,
        end=run.end,
        verify=False,  # the walk that found the run has verified the checksums
        whole_batches=True,
        max_decompressed=max_decompressed,
    )
    for chunk in chunks:
        prepared = _prepared(chunk, run.magic, magic, codec, lost)
        yield from_arrow(prepared, magic=magic, level=level, max_size=MAX_SIZE)


def _prepared(chunk: pa.RecordBatch, source: int, target: int, codec: Codec | None, lost: Lost) -> pa.RecordBatch:
    """Return `chunk` with only what the target can hold, cut into batches as Kafka cuts them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keep = ["offset", "timestampMs", "key", "value", "position", "timestampType", "compression"]
    if target < 2:
        chunk = chunk.filter(pc.invert(chunk["isControl"]))
        lost.headers += pc.sum(pc.greater(pc.list_value_length(chunk["headers"]), 0)).as_py() or 0
    if target == 0:
        lost.timestamps += pc.sum(pc.not_equal(chunk["timestampMs"], -1)).as_py() or 0
    prepared = chunk.select(keep)

    def replaced(name: str, values: pa.Array) -> pa.RecordBatch:
        return prepared.set_column(prepared.schema.get_field_index(name), name, values)

    alone = pc.equal(chunk["compression"], "none").to_numpy(zero_copy_only=False) if source < 2 else None
    prepared = replaced("position", pa.array(_batches(chunk["position"], chunk["offset"], alone)))
    if source == 0 or target == 0:
        prepared = replaced("timestampType", pa.array(np.full(chunk.num_rows, TimestampType.CREATE_TIME, np.int32)))
    if codec is not None:
        prepared = replaced("compression", pa.repeat(codec.name.lower(), chunk.num_rows))
    return prepared


def _batches(position: pa.Array, offset: pa.Array, alone: npt.NDArray[np.bool_] | None) -> Int64s:
    """Return a number for each record; where the number changes, a new batch has to begin.

    `alone` marks messages that are not in a wrapper. Those within one mebibyte are put together, as long as their
    offsets increase. Raises `BadRecord` if offsets do not increase within one batch: no builder of Kafka would write
    such a batch.
    """
    positions: Int64s = position.to_numpy()
    falls = np.diff(offset.to_numpy()) <= 0
    within = falls & (np.diff(positions) == 0)
    if within.any():
        raise BadRecord(int(positions[within.argmax()]), "the offsets of the batch do not grow from record to record")
    if alone is None:
        return positions
    blocks = np.where(alone, -1 - positions // _TOGETHER, positions)
    return np.append(0, np.cumsum(falls | (np.diff(blocks) != 0)))
