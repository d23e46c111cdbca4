"""To another magic or codec, by Kafka's rules.

    magic   down    (Kafka's `RecordsUtil.downConvert`) a batch becomes as many messages, or one wrapper where it is
                    compressed. Control batches go; headers, producers, sequences, epochs and, to magic 0,
                    timestamps are lost
            up      (Kafka's `LogValidator`) a wrapper becomes a batch, and messages that follow one another become
                    batches. What has no timestamp gets -1
    codec           the records stay as they are, byte for byte, only their compression changes. A batch that has
                    the codec already is left alone, whatever its level

Offsets never change. What of a buffer needs no conversion is copied as it is. Whole runs of batches are converted
through Arrow, so nothing here makes a Python object for a record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

from octavo.errors import InvalidInput, Unsupported
from octavo.records.batch import Batch
from octavo.records.compression import DEFAULT_LIMIT, compress, decompress
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

_TOGETHER = 1 << 20  # bytes of messages that become one batch, just below Kafka's default limit for one


@dataclass(slots=True)
class Lost:
    """What a conversion could not keep."""

    control_batches: int = 0  # left out
    empty_batches: int = 0  # left out: they hold a producer's last sequence, which the target has no place for
    headers: int = 0  # records whose headers were dropped
    timestamps: int = 0  # records whose timestamp was dropped
    producers: int = 0  # batches that lost producer id, epoch, sequence and whether they were transactional
    leader_epochs: int = 0  # batches that lost it
    delete_horizons: int = 0  # batches that lost it

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def __str__(self) -> str:
        counts = ((field.name.replace("_", " "), getattr(self, field.name)) for field in fields(self))
        return ", ".join(f"{name} {count}" for name, count in counts if count) or "nothing"


class Converted(NamedTuple):
    """The bytes, and what they lack."""

    data: bytes
    lost: Lost


def convert(
    buffer: Buffer,
    *,
    magic: int | None = None,
    codec: Codec | None = None,
    level: int | None = None,
    max_decompressed: int = DEFAULT_LIMIT,
) -> Converted:
    """The batches of `buffer` in `magic` and with `codec`, or with their own where that is None.

    Raises `FormatError` for damage in the buffer, `Unsupported` where a batch is compressed with zstd, the target is
    magic 0 or 1 and no other codec is asked for (Kafka refuses that as well), `InvalidInput` for a target that does not
    exist. A torn tail is left out.
    """
    if magic not in (None, 0, 1, 2):
        raise InvalidInput(f"there is no magic {magic}")
    if codec == Codec.ZSTD and magic is not None and magic < 2:
        raise InvalidInput(f"magic {magic} has no zstd")
    lost = Lost()
    pieces: list[Buffer] = []
    view = memoryview(buffer)
    for run in _runs(view, magic, codec, max_decompressed):
        if run.way == "keep":
            pieces.append(view[run.start : run.end])
        elif run.way == "recompress":
            assert codec is not None
            pieces += (_recompressed(batch, codec, level, max_decompressed) for batch in run.batches)
        else:
            target = run.magic if magic is None else magic
            pieces += _rebuilt(view, run, target, codec, level, lost, max_decompressed)
    return Converted(b"".join(pieces), lost)


class _Run(NamedTuple):
    """Batches that follow one another and are treated alike."""

    way: str  # keep | recompress | rebuild
    magic: int
    start: int
    end: int
    batches: list[Batch]


def _runs(view: memoryview, magic: int | None, codec: Codec | None, max_decompressed: int) -> Iterator[_Run]:
    run: _Run | None = None
    for batch in read_batches(view, max_decompressed=max_decompressed):
        way = _way(batch, magic, codec)
        if run is not None and (way, batch.magic) == (run.way, run.magic):
            run.batches.append(batch)
            run = run._replace(end=batch.position + batch.size)
            continue
        if run is not None:
            yield run
        run = _Run(way, batch.magic, batch.position, batch.position + batch.size, [batch])
    if run is not None:
        yield run


def _way(batch: Batch, magic: int | None, codec: Codec | None) -> str:
    """How to treat a batch. Old messages are nested in their wrapper: another codec is another nesting."""
    target = batch.magic if magic is None else magic
    same_codec = codec is None or batch.codec == codec
    if target == batch.magic:
        if same_codec or batch.count == 0:
            return "keep"
        return "recompress" if target == 2 else "rebuild"
    if target < 2 and codec is None and batch.codec == Codec.ZSTD and not batch.is_control:
        raise Unsupported(batch.position, f"magic {target} has no zstd, and no other codec is asked for")
    return "rebuild"


def _recompressed(batch: Batch, codec: Codec, level: int | None, max_decompressed: int) -> bytes:
    """A batch of magic 2 with the same records in another compression."""
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
) -> Iterator[bytes]:
    """The records of a run in batches or messages of another magic, or in other wrappers."""
    from octavo.records.arrow.reader import to_arrow
    from octavo.records.arrow.schema import ALL_COLUMNS
    from octavo.records.arrow.writer import from_arrow

    if magic < 2:
        _count_lost_batches(run.batches, lost)
    chunks = to_arrow(
        view,
        columns=ALL_COLUMNS,
        start=run.start,
        end=run.end,
        verify=False,  # done by the walk that made the run
        whole_batches=True,
        max_decompressed=max_decompressed,
    )
    for chunk in chunks:
        prepared = _prepared(chunk, run.magic, magic, codec, lost)
        yield from_arrow(prepared, magic=magic, level=level, max_size=MAX_SIZE)


def _count_lost_batches(batches: list[Batch], lost: Lost) -> None:
    for batch in batches:
        lost.control_batches += batch.is_control
        lost.empty_batches += batch.count == 0 and not batch.is_control
        if not batch.is_control and batch.count != 0:
            lost.producers += batch.producer_id != NO_PRODUCER_ID
            lost.leader_epochs += batch.leader_epoch != NO_LEADER_EPOCH
            lost.delete_horizons += batch.delete_horizon_ms is not None


def _prepared(chunk: pa.RecordBatch, source: int, target: int, codec: Codec | None, lost: Lost) -> pa.RecordBatch:
    """`chunk` with only what the target can hold, and cut into batches as Kafka cuts."""
    import numpy as np
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

    if source < 2:
        # Messages that stand alone are all batches of their own: those within a mebibyte are put together.
        alone = pc.equal(chunk["compression"], "none")
        together = pc.subtract(-1, pc.divide(chunk["position"], _TOGETHER))
        prepared = replaced("position", pc.if_else(alone, together, chunk["position"]))
    if source == 0 or target == 0:
        create_time = np.full(chunk.num_rows, int(TimestampType.CREATE_TIME), np.int32)
        prepared = replaced("timestampType", pa.array(create_time))
    if codec is not None:
        prepared = replaced("compression", pa.array([codec.name.lower()] * chunk.num_rows, pa.string()))
    return prepared
