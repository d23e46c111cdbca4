"""The kernel that decompresses: it agrees with the libraries, leaves to them what is odd, and stays in its room."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import aiokafka.codec
import cramjam
import lz4.frame
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.errors import OctavoError
from octavo.records.compression import compress, decompress
from octavo.records.kernels import Kernels, scan
from octavo.records.kernels.inflation import inflate
from octavo.records.kernels.inflation.copy import SLACK
from octavo.records.layout import BATCH_HEADER, Codec
from tests.corruption.guard import Guarded
from tests.unit.records.compression.cases import noise, text

BOTH: Final = [
    pytest.param(Kernels(compiled=False), id="interpreted"),
    pytest.param(Kernels(compiled=True), id="compiled"),
]
LIMIT: Final = 1 << 20
UNTOUCHED: Final = 0xA5


class Inflated(NamedTuple):
    """What became of one stream."""

    outcome: int
    data: bytes


def run(kernels: Kernels, codec: Codec, stream: bytes, *, room: int = LIMIT, limit: int = LIMIT) -> Inflated:
    """Decompress one stream, which ends where memory ends, into memory that ends behind the slack."""
    source = Guarded(BATCH_HEADER.size + len(stream)).room(BATCH_HEADER.size + len(stream), at_end=True)
    source[BATCH_HEADER.size :] = stream
    target = Guarded(room + SLACK).room(room + SLACK, at_end=True)
    out = np.frombuffer(target, np.uint8)
    out[:] = UNTOUCHED
    table = np.zeros((1, scan.COLUMNS), np.int64)
    table[0, [scan.SIZE, scan.MAGIC, scan.ATTRIBUTES]] = len(source), 2, int(codec)
    done, end, outcome = kernels.inflate(
        np.frombuffer(source, np.uint8), table, np.zeros(1, np.int64), 0, 1, out, 0, 1 << 40, limit
    )
    assert (done, outcome == inflate.DONE) in ((1, True), (0, False))
    if outcome == inflate.DONE:
        assert table[0, [scan.INFLATED, scan.START, scan.END]].tolist() == [1, 0, end]
    return Inflated(outcome, out[:end].tobytes())


def lz4_frame(data: bytes, **options: object) -> bytes:
    frame: bytes = lz4.frame.compress(data, block_linked=False, **options)
    return frame


DATA: Final = {
    "nothing": b"",
    "a byte": b"x",
    "text": text(5000),
    "long text": text(200_000),
    "noise": noise(3000),
    "one byte again and again": b"a" * 70_000,
    "short periods": b"".join(bytes([65 + period]) * 3 + b"abcdefgh"[:period] * 40 for period in range(1, 9)),
    "text and noise": b"".join(text(700, seed) + noise(300, seed) for seed in range(100)),
}
FRAMES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "Kafka": lambda data: compress(Codec.LZ4, data),
    "with its size": lambda data: lz4_frame(data, store_size=True),
    "with a checksum": lambda data: lz4_frame(data, store_size=False, content_checksum=True),
    "blocks of 4 MiB": lambda data: lz4_frame(data, block_size=lz4.frame.BLOCKSIZE_MAX4MB),
    "with checked blocks": lambda data: lz4_frame(data, block_checksum=True),
    "aiokafka": lambda data: aiokafka.codec.lz4_encode(data),
    "the best": lambda data: compress(Codec.LZ4, data, level=17),
}
STREAMS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "xerial": lambda data: compress(Codec.SNAPPY, data),
    "raw": lambda data: bytes(cramjam.snappy.compress_raw(data)),
}


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("what", DATA)
@pytest.mark.parametrize(
    ("codec", "framing"), [*((Codec.LZ4, name) for name in FRAMES), *((Codec.SNAPPY, name) for name in STREAMS)]
)
def test_what_others_compressed_comes_back(kernels: Kernels, codec: Codec, framing: str, what: str) -> None:
    data = DATA[what]
    if not kernels.compiled:
        data = data[:20_000]
    stream = (FRAMES if codec == Codec.LZ4 else STREAMS)[framing](data)
    assert run(kernels, codec, stream) == Inflated(inflate.DONE, data)


def damaged(stream: bytes, seed: int) -> Iterator[bytes]:
    """The stream with each byte another, cut everywhere, and with pieces of itself in other places."""
    generator = random.Random(seed)
    for at in range(len(stream)):
        for byte in {0, 0xFF, stream[at] ^ 1, stream[at] ^ 0x80, generator.randrange(256)} - {stream[at]}:
            yield stream[:at] + bytes([byte]) + stream[at + 1 :]
        yield stream[:at]
        yield stream[:at] + generator.randbytes(3) + stream[at:]


CHECKED: Final = (Codec.LZ4, lz4_frame(text(100) + b"z" * 200 + noise(20), block_checksum=True))
SMALL: Final = [
    (Codec.LZ4, compress(Codec.LZ4, text(300))),
    (Codec.LZ4, lz4_frame(text(100) + b"z" * 200 + noise(20), store_size=True, content_checksum=True)),
    CHECKED,
    (Codec.SNAPPY, compress(Codec.SNAPPY, text(300))),
    (Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(text(100) + b"z" * 200 + noise(70)))),
]


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("number", range(len(SMALL)))
def test_whatever_is_taken_is_what_a_library_makes_of_it(kernels: Kernels, number: int) -> None:
    codec, sound = SMALL[number]
    taken = 0
    for stream in damaged(sound, number):
        outcome, data = run(kernels, codec, stream, room=4096, limit=4096)
        if outcome == inflate.DONE:
            taken += 1
            assert data == bytes(decompress(codec, stream, limit=4096)), stream.hex()
        else:
            try:
                decompress(codec, stream, limit=4096)
            except OctavoError:
                continue
            assert outcome == inflate.OTHER  # it may be odd, but for which there is room
    # Much damage only changes what comes out, unless there is a checksum; then only what follows the end can change.
    assert 0 < taken < 20 if SMALL[number] is CHECKED else taken > 100


@pytest.mark.parametrize("kernels", BOTH)
@pytest.mark.parametrize("number", range(len(SMALL)))
def test_nothing_is_written_beyond_the_room(kernels: Kernels, number: int) -> None:
    codec, stream = SMALL[number]
    data = bytes(decompress(codec, stream))
    for room in range(len(data)):
        assert run(kernels, codec, stream, room=room).outcome == inflate.NO_ROOM
        assert run(kernels, codec, stream, room=len(data), limit=room).outcome == inflate.OTHER
    assert run(kernels, codec, stream, room=len(data), limit=len(data)) == Inflated(inflate.DONE, data)


PIECES: Final = st.lists(
    st.tuples(st.binary(min_size=1, max_size=40), st.integers(1, 30)).map(lambda piece: piece[0] * piece[1]),
    max_size=30,
).map(b"".join)


@settings(deadline=None, max_examples=150)
@given(data=PIECES, framing=st.sampled_from([*FRAMES, *STREAMS]))
def test_any_data_come_back(data: bytes, framing: str) -> None:
    codec = Codec.LZ4 if framing in FRAMES else Codec.SNAPPY
    stream = {**FRAMES, **STREAMS}[framing](data)
    for kernels in (Kernels(compiled=False), Kernels(compiled=True)):
        assert run(kernels, codec, stream) == Inflated(inflate.DONE, data)
