"""Kafka's streams read ours, ours read Kafka's, and both make the same of what neither wrote."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from octavo.errors import FormatError, LimitExceeded, Truncated
from octavo.records.compression import compress, decompress
from octavo.records.layout import Codec
from tests.kafka.answers import Codec as CodecName
from tests.kafka.judge import Judge
from tests.unit.records.compression.cases import COMPRESSED, LEVELS, SIZES, cases, noise, streams, text
from tests.unit.records.compression.test_compression import examples

NAMES: dict[Codec, CodecName] = {
    Codec.GZIP: "gzip",
    Codec.SNAPPY: "snappy",
    Codec.LZ4: "lz4",
    Codec.ZSTD: "zstd",
}
MAGICS = {Codec.GZIP: (2,), Codec.SNAPPY: (2,), Codec.LZ4: (0, 1, 2), Codec.ZSTD: (2,)}
DATA = [make(size) for size in SIZES for make in (text, noise)]

codecs = pytest.mark.parametrize("codec", COMPRESSED, ids=str)


def settings(codec: Codec) -> Iterator[tuple[int | None, int, list[bytes]]]:
    """Every level with every magic, and what to compress with them: little where a level is slow."""
    for level in LEVELS[codec]:
        for magic in MAGICS[codec]:
            most = 1 << 20 if level is None else 70_000 if level < 10 else 100
            yield level, magic, [data for data in DATA if len(data) <= most]


@codecs
def test_kafka_reads_what_we_compress(kafka: Judge, codec: Codec) -> None:
    for level, magic, data in settings(codec):
        ours = [compress(codec, part, level=level, magic=magic) for part in data]
        assert kafka.decompress(ours, NAMES[codec], magic=magic) == data


@codecs
def test_we_read_what_kafka_compresses(kafka: Judge, codec: Codec) -> None:
    for level, magic, data in settings(codec):
        theirs = kafka.compress(data, NAMES[codec], level=level, magic=magic)
        assert [bytes(decompress(codec, stream, magic=magic)) for stream in theirs] == data


def test_lz4_is_kafkas_byte_for_byte(kafka: Judge) -> None:
    for level, magic, data in settings(Codec.LZ4):
        if level in (1, 2):
            continue  # newer in lz4 than our library's release
        ours = [compress(Codec.LZ4, part, level=level, magic=magic) for part in data]
        assert kafka.compress(data, "lz4", level=level, magic=magic) == ours


def test_kafka_makes_the_same_of_streams_made_by_hand(kafka: Judge) -> None:
    differing = []
    for case in cases():
        (answer,) = kafka.decompress([case.data], NAMES[case.codec], magic=case.magic)
        if (answer if isinstance(answer, bytes) else None) != case.kafka_reads:
            differing.append((str(case), answer if not isinstance(answer, bytes) else len(answer)))
    assert not differing


def damaged(codec: Codec, count: int) -> list[bytes]:
    """Streams of all shapes, changed in a few places, cut or prolonged."""
    generator = random.Random(codec)
    result = []
    for _ in range(count):
        stream = bytearray(generator.choice(streams(codec)))
        for _ in range(generator.randint(1, 3)):
            at = generator.randrange(len(stream))
            match generator.randrange(6):
                case 0:
                    del stream[max(at, 1) :]
                case 1:
                    stream += generator.randbytes(generator.randrange(30))
                case 2:
                    stream[at] = generator.choice((0, 1, 0x7F, 0x80, 0xFF))
                case _:
                    stream[at] ^= 1 << generator.randrange(8)
        result.append(bytes(stream))
    return result


def is_named_difference(codec: Codec, error: FormatError) -> bool:
    """Whether `docs/formats/compression.md` says that Kafka reads what this error is for."""
    if codec == Codec.SNAPPY:
        return "magic number between" in error.rule
    if codec == Codec.ZSTD:
        return isinstance(error, Truncated | LimitExceeded)
    return codec == Codec.LZ4 and isinstance(error, LimitExceeded)


@codecs
def test_kafka_makes_the_same_of_damage(kafka: Judge, codec: Codec) -> None:
    damage = damaged(codec, 1500)
    refused = 0
    for stream, theirs in zip(damage, kafka.decompress(damage, NAMES[codec]), strict=True):
        try:
            ours: bytes | FormatError = bytes(decompress(codec, stream))
        except FormatError as error:
            ours = error
            refused += 1
        if isinstance(ours, bytes):
            assert ours == theirs, stream.hex()
        elif isinstance(theirs, bytes):
            assert is_named_difference(codec, ours), (stream.hex(), str(ours))
    assert 300 < refused < 1500


@codecs
def test_example_of_the_page_is_kafkas(kafka: Judge, codec: Codec) -> None:
    (stream,) = kafka.compress([b"hello" * 10], NAMES[codec])
    ours = examples()[codec.name.lower()]
    if codec == Codec.GZIP:  # one byte is that of Java's version, and deflate that of its zlib
        stream, ours = stream[:9] + stream[-8:], ours[:9] + ours[-8:]
    assert stream == ours
