"""Measure decoding batches to Arrow and to `Record` objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pyarrow.compute as pc

from benchmarks import clients, jvm
from benchmarks.data import DataSet
from benchmarks.measure import Contender, Peer, Result, compare, timed
from benchmarks.records.other_clients import client_sets, mixed_set
from benchmarks.records.shapes import unusual, usual
from octavo.records import ArrowDecoder, read_batches, to_arrow

UNIT: Final = "records/s"

# Targets by codec: the ratio to reach against aiokafka, and against Kafka's reader when it copies keys and values.
_AIOKAFKA: Final = {"none": 6, "lz4": 4, "snappy": 3, "zstd": 3, "gzip": 2}
_KAFKA: Final = {"none": 1.0, "lz4": 1.5, "zstd": 1.2}
_CLIENTS: Final = {("aiokafka", "lz4"): 3, ("all", "mixed"): 2.5}  # by client and codec, against aiokafka

_WARM_SECONDS: Final = 6.0
_SLOW_PEER: Final = 50_000  # number of records for kafka-python, which is slow; its speed does not depend on the number


def decode(data: bytes, offsets: tuple[int, int] | None = None) -> int:
    """Decode all columns to Arrow once, verifying checksums; return the number of records."""
    return sum(chunk.num_rows for chunk in to_arrow(data, offsets=offsets))


def decode_codecs(*, repeat: int, scale: int) -> list[Result]:
    """Compare decoding the usual data sets with all peers, for each codec."""
    return [result for data_set in usual(scale) for result in _decode_codec(data_set, repeat)]


def _decode_codec(data_set: DataSet, repeat: int) -> list[Result]:
    data = data_set.read()
    codec = data_set.codec
    with jvm.Peer() as kafka:
        kafka.load(data_set.path, _WARM_SECONDS)
        seen = kafka.copy()
        assert (seen.records, seen.size) == _count_and_bytes(data)
        count = seen.records
        peers = [
            Peer(_python("aiokafka", clients.read_with_aiokafka, data, count), _AIOKAFKA[codec]),
            Peer(_python("aiokafka, all fields", clients.read_all_fields_with_aiokafka, data, count)),
            Peer(Contender("Kafka, copying", count, lambda: kafka.copy().seconds), _KAFKA.get(codec)),
            Peer(Contender("Kafka, touching", count, lambda: kafka.touch().seconds)),
        ]
        if clients.kafka_python_reads(codec):
            part, part_count = _first(data, _SLOW_PEER)
            peers.append(Peer(_python("kafka-python", clients.read_with_kafka_python, part, part_count)))
        ours = _python("octavo", decode, data, count)
        return compare(f"decode {data_set.shape}", ours, peers, unit=UNIT, repeat=repeat)


def decode_shapes(*, repeat: int, scale: int) -> list[Result]:
    """Compare decoding the unusual data sets with aiokafka, for each codec."""
    results = []
    for data_set in unusual(scale):
        data = data_set.read()
        target = 1.2 if (data_set.codec, data_set.batch_count) == ("snappy", 1) else 1.0
        peer = Peer(_python("aiokafka", clients.read_with_aiokafka, data, data_set.count), target)
        ours = _python("octavo", decode, data, data_set.count)
        results += compare(f"decode {data_set.shape}", ours, [peer], unit=UNIT, repeat=repeat)
    return results


def small_buffers(*, repeat: int, scale: int) -> list[Result]:
    """Compare decoding many buffers of one batch, or of 64, with decoding the same batches in one large buffer."""
    data_set = DataSet(count=1_000_000 // scale)
    data = data_set.read()
    starts = [batch.position for batch in read_batches(data, verify=False)]
    results = []
    for count in (1, 64):
        ends = [*starts[count::count], len(data)]
        buffers = [memoryview(data)[first:last] for first, last in zip(starts[::count], ends, strict=True)]
        decoder = ArrowDecoder()
        ours = _python("octavo", partial(_decode_buffers, decoder, buffers), data, data_set.count)
        peer = Peer(_python("one large buffer", decode, data, data_set.count))
        name = f"decode buffers of {count} batch{'es' if count > 1 else ''} of 200"
        results += compare(name, ours, [peer], unit=UNIT, repeat=repeat)
    return results


def _decode_buffers(decoder: ArrowDecoder, buffers: list[memoryview], _data: bytes) -> int:
    return sum(chunk.num_rows for buffer in buffers for chunk in decoder.read(buffer))


def decode_clients(*, repeat: int, scale: int) -> list[Result]:
    """Compare decoding what other clients compressed with aiokafka, each by itself and all by turns."""
    results = []
    for data_set in (*client_sets(scale), mixed_set(scale)):
        data = data_set.read()
        count, _ = _count_and_bytes(data)
        target = _CLIENTS.get((data_set.client, data_set.codec))
        peer = Peer(_python("aiokafka", clients.read_with_aiokafka, data, count), target)
        ours = _python("octavo", decode, data, count)
        results += compare(f"decode {data_set.shape}", ours, [peer], unit=UNIT, repeat=repeat)
    return results


def ranges(*, repeat: int, scale: int) -> list[Result]:
    """Compare reading a hundredth of the offsets with reading all of them."""
    results = []
    for codec in ("none", "zstd"):
        data_set = DataSet(codec=codec, count=1_000_000 // scale)
        data = data_set.read()
        first, size = data_set.count // 2, data_set.count // 100
        part = Contender("octavo", 1, timed(partial(decode, data, (first, first + size))))
        whole = Peer(Contender("reading all", 1, timed(partial(decode, data))))
        results += compare(f"1% of the offsets, {data_set.shape}", part, [whole], unit="reads/s", repeat=repeat)
    return results


def objects(*, repeat: int, scale: int) -> list[Result]:
    """Compare iterating over `Record` objects, which need neither Numba nor pyarrow, with kafka-python."""
    data, count = _first(DataSet(count=1_000_000 // scale).read(), _SLOW_PEER)
    peer = Peer(_python("kafka-python", clients.read_with_kafka_python, data, count), 1.0)
    ours = _python("octavo", clients.read_objects, data, count)
    return compare("iterate Record objects", ours, [peer], unit=UNIT, repeat=repeat)


def _python(name: str, read: Callable[[bytes], int], data: bytes, count: int) -> Contender:
    """Make a contender of a Python reader, and check that each pass sees `count` records."""

    def one_pass() -> None:
        seen = read(data)
        assert seen == count, f"{name} saw {seen} of {count} records"

    return Contender(name, count, timed(one_pass))


def _count_and_bytes(data: bytes) -> tuple[int, int]:
    """Return the number of records, and of bytes in keys and values. All contenders must find the same."""
    count = size = 0
    for chunk in to_arrow(data, columns=("key", "value")):
        count += chunk.num_rows
        size += sum(pc.sum(pc.binary_length(column)).as_py() for column in chunk.columns)
    return count, size


def _first(data: bytes, count: int) -> tuple[bytes, int]:
    """Return the first batches, up to `count` records, and how many records they have."""
    seen = 0
    for batch in read_batches(data, verify=False):
        if batch.count is None or seen + batch.count > count:
            return data[: batch.position], seen
        seen += batch.count
    return data, seen
