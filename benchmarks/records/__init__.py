"""Compare `octavo.records` with kafka-python, aiokafka and Apache Kafka's own reader (see docs/benchmarks.md)."""

from __future__ import annotations

from benchmarks.data import prepare
from benchmarks.measure import Result
from benchmarks.records import checksums, reading, resources, shapes, writing
from benchmarks.records.other_clients import prepare_clients


def run(*, repeat: int, quick: bool = False) -> list[Result]:
    """Run all parts of this benchmark; `quick` uses a tenth of the data."""
    scale = 10 if quick else 1
    prepare([*shapes.usual(scale), *shapes.to_encode(scale), *shapes.unusual(scale), *shapes.segments(scale)])
    prepare_clients(scale)
    return [
        *reading.decode_codecs(repeat=repeat, scale=scale),
        *reading.decode_shapes(repeat=repeat, scale=scale),
        *reading.small_buffers(repeat=repeat, scale=scale),
        *reading.decode_clients(repeat=repeat, scale=scale),
        *reading.ranges(repeat=repeat, scale=scale),
        *reading.objects(repeat=repeat, scale=scale),
        *writing.encode_codecs(repeat=repeat, scale=scale),
        *writing.encode_shapes(repeat=repeat, scale=scale),
        *checksums.verify(repeat=repeat, scale=scale),
        *resources.resident_memory(scale=scale),
        *resources.start_up(repeat=repeat),
        *resources.first_use(scale=scale, repeat=repeat),
    ]
