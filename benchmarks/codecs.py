"""Compare compression libraries on streams as Kafka writes them, in batches of 24 KiB.

At the end of decompression, all data must be in one contiguous buffer, as the Arrow reader needs it. The first entry of
each list is what `octavo.records.compression` does; the others are alternatives.
"""

from __future__ import annotations

import random
import statistics
import time
import zlib
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import cramjam
import lz4.block
import lz4.frame
import pyarrow
import zstandard
from isal import igzip_lib, isal_zlib

from octavo.records.compression import Inflater, compress
from octavo.records.layout import Codec

BATCHES = 300
RECORDS = 200

WORDS = (
    b"order payment user session checkout cart item price total currency shipped pending failed retry region europe "
    b"america asia device mobile desktop browser version status code latency duration bytes request response path query"
).split()

Piece = bytes | memoryview
Job = Callable[[list[memoryview], memoryview], int]  # takes streams and the output buffer; returns the size of the data


def batches(count: int = BATCHES) -> list[bytes]:
    """Make records with 100-byte values of text, as they are stored in a batch of magic 2, 200 per batch."""
    generator = random.Random(7)
    return [b"".join(_record(generator, number) for number in range(RECORDS)) for _ in range(count)]


def _record(generator: random.Random, number: int) -> bytes:
    note = b" ".join(generator.choices(WORDS, k=8))
    value = b'{"id":%d,"amount":%.2f,"note":"%b' % (generator.randrange(10**9), generator.random() * 1000, note)
    offset = bytes((number * 2 & 0x7F | 0x80, number * 2 >> 7))
    key = b"\x16user-%06d" % generator.randrange(100_000)
    body = b"\x00" + bytes((generator.randrange(0x80) | 0x80, number >> 3)) + offset + key
    body += b"\xc8\x01" + value[:99].ljust(99) + b"}" + b"\x00"
    return bytes((len(body) * 2 & 0x7F | 0x80, len(body) * 2 >> 7)) + body


def stream(codec: Codec, data: bytes) -> bytes:
    """Compress `data` as Kafka's Java libraries would."""
    if codec == Codec.GZIP:
        return compress(codec, data, level=6)
    if codec == Codec.ZSTD:  # zstd-jni writes no content size, and flushes before the end, so the last block is empty
        compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
        return compressor.compress(data) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + compressor.flush()
    return compress(codec, data)


def _ours(codec: Codec) -> Job:
    inflater = Inflater()

    def job(streams: list[memoryview], out: memoryview) -> int:
        inflater.clear()
        for data in streams:
            inflater.add(codec, data)
        return len(inflater.buffer)

    return job


def _copying(decompress: Callable[[memoryview], Piece]) -> Job:
    """Make a job with a library that returns a new object for each stream; copy each object into the output."""

    def job(streams: list[memoryview], out: memoryview) -> int:
        at = 0
        for data in streams:
            piece = decompress(data)
            out[at : at + len(piece)] = piece
            at += len(piece)
        return at

    return job


def _joining(decompress: Callable[[memoryview], Piece]) -> Job:
    """Make a job with a library that returns a new object for each stream; join all objects at the end."""
    return lambda streams, out: len(b"".join([decompress(data) for data in streams]))


def _in_place(decompress: Callable[[memoryview, memoryview], int]) -> Job:
    """Make a job with a library that writes into a given buffer."""

    def job(streams: list[memoryview], out: memoryview) -> int:
        at = 0
        for data in streams:
            at += decompress(data, out[at : at + 65536])
        return at

    return job


def _known_size(codec: Any, piece_of: Callable[[memoryview], memoryview], sizes: Iterable[int]) -> Job:
    """Make a job with pyarrow, which needs the decompressed size.

    In practice the size is not known, so the speed of this job is only an upper bound.
    """
    known = list(sizes)

    def job(streams: list[memoryview], out: memoryview) -> int:
        at = 0
        for data, size in zip(streams, known, strict=True):
            out[at : at + size] = memoryview(codec.decompress(piece_of(data), size)).cast("B")
            at += size
        return at

    return job


def _lz4_block(data: memoryview) -> memoryview:
    return data[11 : 11 + int.from_bytes(data[7:11], "little")]


def _snappy_block(data: memoryview) -> memoryview:
    return data[20:]


def decompressors(codec: Codec, data: list[bytes]) -> dict[str, Job]:
    """Return the ways to decompress `codec`, ours first."""
    sizes = [len(part) for part in data]
    match codec:
        case Codec.GZIP:
            raw = igzip_lib.DECOMP_DEFLATE
            return {
                "octavo (isal)": _ours(codec),
                "isal_zlib.decompress": _copying(lambda data: isal_zlib.decompress(data, 31)),
                "isal IgzipDecompressor, unbounded": _copying(
                    lambda data: igzip_lib.IgzipDecompressor(raw).decompress(data[10:])
                ),
                "zlib": _copying(lambda data: zlib.decompress(data, 31)),
                "cramjam": _in_place(cramjam.gzip.decompress_into),
            }
        case Codec.SNAPPY:
            snappy = pyarrow.Codec("snappy")
            return {
                "octavo (cramjam in place)": _ours(codec),
                "cramjam, copied": _copying(
                    lambda data: memoryview(cramjam.snappy.decompress_raw(_snappy_block(data)))
                ),
                "cramjam, joined": _joining(
                    lambda data: memoryview(cramjam.snappy.decompress_raw(_snappy_block(data)))
                ),
                "pyarrow, size known": _known_size(snappy, _snappy_block, sizes),
            }
        case Codec.LZ4:
            return {
                "octavo (cramjam block in place)": _ours(codec),
                "lz4.block, copied": _copying(lambda data: lz4.block.decompress(_lz4_block(data), 65536)),
                "lz4.block, joined": _joining(lambda data: lz4.block.decompress(_lz4_block(data), 65536)),
                "lz4.frame, copied": _copying(lz4.frame.decompress),
                "cramjam frame": _in_place(cramjam.lz4.decompress_into),
                "pyarrow, size known": _known_size(pyarrow.Codec("lz4_raw"), _lz4_block, sizes),
            }
        case _:
            library = zstandard.ZstdDecompressor()
            return {
                "octavo (zstandard)": _ours(codec),
                "zstandard.decompress, copied": _copying(lambda data: library.decompress(data, max_output_size=65536)),
                "zstandard.decompressobj, copied": _copying(lambda data: library.decompressobj().decompress(data)),
                "cramjam": _in_place(cramjam.zstd.decompress_into),
                "pyarrow, size known": _known_size(pyarrow.Codec("zstd"), lambda data: data, sizes),
            }


def compressors(codec: Codec) -> dict[str, Callable[[bytes], Piece]]:
    """Return the ways to compress with `codec`, ours first."""
    match codec:
        case Codec.GZIP:
            return {
                "octavo, default (isal 2)": lambda data: compress(Codec.GZIP, data),
                "octavo, level 1 (isal 1)": lambda data: compress(Codec.GZIP, data, level=1),
                "octavo, level 3 (isal 3)": lambda data: compress(Codec.GZIP, data, level=3),
                "octavo, level 6 (zlib 6)": lambda data: compress(Codec.GZIP, data, level=6),
                "octavo, level 9 (zlib 9)": lambda data: compress(Codec.GZIP, data, level=9),
            }
        case Codec.SNAPPY:
            return {
                "octavo (cramjam)": lambda data: compress(Codec.SNAPPY, data),
                "pyarrow": lambda data: memoryview(pyarrow.Codec("snappy").compress(data)).cast("B"),
            }
        case Codec.LZ4:
            return {
                "octavo, default (lz4.frame)": lambda data: compress(Codec.LZ4, data),
                "octavo, level 3 (lz4.frame)": lambda data: compress(Codec.LZ4, data, level=3),
                "octavo, level 12 (lz4.frame)": lambda data: compress(Codec.LZ4, data, level=12),
                "cramjam block": lambda data: memoryview(cramjam.lz4.compress_block(data, store_size=False)),
            }
        case _:
            sizeless = zstandard.ZstdCompressor(write_content_size=False)
            return {
                "octavo, default": lambda data: compress(Codec.ZSTD, data),
                "octavo, level 1": lambda data: compress(Codec.ZSTD, data, level=1),
                "zstandard, no content size": sizeless.compress,
                "zstandard.compressobj": lambda data: stream(Codec.ZSTD, data),
                "cramjam": lambda data: memoryview(cramjam.zstd.compress(data, 3)),
            }


def run(*, repeat: int) -> dict[str, Any]:
    """Return the median speeds of `repeat` rounds. The libraries take turns, so that other load slows all alike."""
    data = batches()
    total = sum(map(len, data))
    out = memoryview(bytearray(total + 65536))
    result: dict[str, Any] = {
        "batches": len(data),
        "bytes": total,
        "repeat": repeat,
        "decompress_mb_per_s": {},
        "compress_mb_per_s": {},
        "compressed_ratio": {},
    }
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        name = codec.name.lower()
        blob = memoryview(b"".join(streams := [stream(codec, part) for part in data]))
        ends = [0]
        for part in streams:
            ends.append(ends[-1] + len(part))
        views = [blob[start:end] for start, end in pairwise(ends)]
        jobs = {key: _bound(job, views, out, total) for key, job in decompressors(codec, data).items()}
        result["decompress_mb_per_s"][name] = _speeds(jobs, total, repeat)
        few = data[: BATCHES // 10]
        size = sum(map(len, few))
        writers = compressors(codec)
        result["compress_mb_per_s"][name] = _speeds(
            {key: _all_of(writer, few) for key, writer in writers.items()}, size, repeat
        )
        result["compressed_ratio"][name] = {
            key: round(sum(len(writer(part)) for part in few) / size, 4) for key, writer in writers.items()
        }
    return result


def _bound(job: Job, views: list[memoryview], out: memoryview, total: int) -> Callable[[], None]:
    def turn() -> None:
        size = job(views, out)
        assert size == total, f"{size} bytes where there are {total}"

    return turn


def _all_of(writer: Callable[[bytes], Piece], data: list[bytes]) -> Callable[[], None]:
    def turn() -> None:
        for part in data:
            writer(part)

    return turn


def _speeds(jobs: dict[str, Callable[[], None]], size: int, repeat: int) -> dict[str, float]:
    """Return the megabytes per second of each job: the median of `repeat` rounds after a warm-up round.

    It measures the thread's CPU time: no job waits, and other load on the machine should not count.
    """
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    order = list(jobs)
    for turn in range(repeat + 1):
        for name in order:
            start = time.thread_time()
            jobs[name]()
            if turn:
                taken[name].append(time.thread_time() - start)
        order.append(order.pop(0))  # so that not always the same job is first, with cold caches
    return {name: round(size / statistics.median(times) / 1e6, 1) for name, times in taken.items()}
