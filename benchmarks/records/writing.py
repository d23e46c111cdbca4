"""Compare encoding from Arrow with aiokafka's compiled builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa

from benchmarks import clients
from benchmarks.data import DataSet
from benchmarks.measure import Contender, Peer, Result, compare, timed
from benchmarks.records.shapes import to_encode, unusual
from octavo.records import Codec, from_arrow, to_arrow
from octavo.records.layout import Buffer

_UNCOMPRESSED: Final = 10  # the ratio to aiokafka to reach without compression; with compression it is 1
_CHUNK_BYTES: Final = 6 << 20
_CHUNK_ROWS: Final = 1 << 16
_MAX_SIZE: Final = 2**31 - 1


def encode_codecs(*, repeat: int, scale: int) -> list[Result]:
    """Compare encoding the usual data sets, for each codec; without compression also with all output kept."""
    results = []
    for data_set in to_encode(scale):
        if data_set.codec == "none":
            results += _encode(data_set, _UNCOMPRESSED, repeat)
            results += _encode(data_set, None, repeat, kept=True)
        else:
            results += _encode(data_set, 1.0, repeat)
    return results


def encode_shapes(*, repeat: int, scale: int) -> list[Result]:
    """Compare encoding the unusual data sets, uncompressed."""
    return [
        result for data_set in unusual(scale) if data_set.codec == "none" for result in _encode(data_set, 1.0, repeat)
    ]


def _encode(data_set: DataSet, target: float | None, repeat: int, *, kept: bool = False) -> list[Result]:
    """Compare encoding a data set. Each piece of output is dropped at once, or all of them are `kept` for the pass."""
    data = data_set.read()
    codec = Codec[data_set.codec.upper()]
    chunks = _chunks(data, data_set)
    records = [record for chunk in chunks for record in _rows(chunk)]
    room = 1024 + data_set.batch_count * (max(len(record.value) for record in records) + 64)
    if codec == Codec.NONE:  # without compression, the bytes must be the same as those that Kafka wrote
        assert b"".join(_written(chunks, codec, data_set.batch_count)) == data
    take: Callable[[Iterator[Buffer]], object] = list if kept else _drop

    def ours() -> object:
        return take(_written(chunks, codec, data_set.batch_count))

    def theirs() -> object:
        return take(clients.build_with_aiokafka(records, codec, data_set.batch_count, room))

    name = f"encode {data_set.shape}, all output kept" if kept else f"encode {data_set.shape}"
    peer = Peer(Contender("aiokafka", data_set.count, timed(theirs)), target)
    return compare(name, Contender("octavo", data_set.count, timed(ours)), [peer], unit="records/s", repeat=repeat)


def _drop(pieces: Iterator[Buffer]) -> int:
    return sum(map(len, pieces))


def _written(chunks: list[pa.RecordBatch], codec: Codec, batch_count: int) -> Iterator[memoryview]:
    return (from_arrow(chunk, codec=codec, max_size=_MAX_SIZE, max_count=batch_count) for chunk in chunks)


def _chunks(data: bytes, data_set: DataSet) -> list[pa.RecordBatch]:
    """Divide the records into chunks of a few megabytes, each a whole number of batches."""
    columns = ("offset", "timestamp", "key", "value")
    (batch,) = pa.Table.from_batches(list(to_arrow(data, columns=columns))).combine_chunks().to_batches()
    batches = max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // data_set.value_size) // data_set.batch_count)
    rows = batches * data_set.batch_count
    slices = [batch.slice(at, rows) for at in range(0, len(batch), rows)]
    return [pa.concat_batches([part]) for part in slices]


def _rows(chunk: pa.RecordBatch) -> list[clients.Row]:
    """Convert the records to Python objects. This is not part of the measured time."""
    timestamps_ms = chunk["timestamp"].cast(pa.int64()).to_numpy() // 1000
    columns = (timestamps_ms.tolist(), chunk["key"].to_pylist(), chunk["value"].to_pylist())
    return [clients.Row(*row) for row in zip(*columns, strict=True)]
