"""Damaged streams, bombs and lies: named by a typed error, in bounded memory and time."""

from __future__ import annotations

import ctypes
import mmap
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from octavo.errors import BadCompression, FormatError, LimitExceeded, Truncated
from octavo.records.compression import compress, decompress
from octavo.records.layout import Codec
from tests.soak.plugin import Soak
from tests.unit.records.compression.cases import COMPRESSED, noise, streams, text, zstd_frame

codecs = pytest.mark.parametrize("codec", COMPRESSED, ids=str)


# Damage


@codecs
def test_every_cut_is_an_error_or_leaves_a_whole_stream(codec: Codec) -> None:
    for stream in streams(codec):
        whole = bytes(decompress(codec, stream))
        for size in range(len(stream)):
            try:
                data = bytes(decompress(codec, stream[:size]))
            except (Truncated, BadCompression):
                continue
            # Only where one member, block or frame after another may end the stream. A batch that is cut
            # there is short of records.
            assert whole.startswith(data)
            assert len(data) < len(whole)
            assert codec != Codec.LZ4


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4], ids=str)
def test_single_stream_with_an_end_shows_every_cut(codec: Codec) -> None:
    stream = compress(codec, text(200))
    for size in range(len(stream)):
        with pytest.raises(Truncated):
            decompress(codec, stream[:size])


def test_single_zstd_frame_shows_every_cut_but_that_of_everything() -> None:
    stream = compress(Codec.ZSTD, text(200))
    for size in range(1, len(stream)):
        with pytest.raises(Truncated):
            decompress(Codec.ZSTD, stream[:size])
    assert not decompress(Codec.ZSTD, b"")


@codecs
def test_every_flip_is_an_error_or_gives_data(codec: Codec) -> None:
    for stream in streams(codec):
        damaged = bytearray(stream)
        for at in range(len(stream)):
            for bit in range(8):
                damaged[at] ^= 1 << bit
                with suppress(Truncated, BadCompression, LimitExceeded):
                    assert len(decompress(codec, damaged, limit=1 << 20)) <= 1 << 20
                damaged[at] ^= 1 << bit
        assert damaged == stream


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD], ids=str)
def test_flip_under_a_checksum_never_gives_other_data(codec: Codec) -> None:
    data = text(300)
    stream = compress(codec, data) if codec == Codec.GZIP else zstd_frame(data, checksum=True)
    for at in range(len(stream)):
        for bit in range(8):
            damaged = bytearray(stream)
            damaged[at] ^= 1 << bit
            with suppress(FormatError):
                assert decompress(codec, damaged) == data  # a bit without meaning, as those of gzip's time


@codecs
def test_random_damage_raises_nothing_else(codec: Codec) -> None:
    generator = np.random.default_rng(codec)
    shapes = streams(codec)
    for number in range(3000):
        stream = bytearray(shapes[number % len(shapes)])
        for _ in range(generator.integers(1, 5)):
            stream[generator.integers(len(stream))] = generator.integers(256)
        if number % 3 == 0:
            del stream[generator.integers(len(stream)) :]
        with suppress(FormatError):
            decompress(codec, stream, limit=1 << 20, magic=1 + (number % 2 or codec == Codec.ZSTD))


@codecs
def test_random_bytes_raise_nothing_else(codec: Codec) -> None:
    starts = [stream[: 4 + number] for number, stream in enumerate(streams(codec))] + [b""]
    for number in range(2000):
        stream = starts[number % len(starts)] + noise(number % 61, seed=number)
        with suppress(FormatError):
            decompress(codec, stream, limit=1 << 20)


# Reading outside of the buffer


class Guarded:
    """Memory behind which lies a page that nobody may touch: the process ends where somebody does."""

    def __init__(self, size: int) -> None:
        self._size = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._memory = mmap.mmap(-1, self._size + mmap.PAGESIZE)
        guard = ctypes.addressof(ctypes.c_char.from_buffer(self._memory, self._size))
        protect = ctypes.CDLL(None).mprotect
        protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        assert protect(guard, mmap.PAGESIZE, 0) == 0

    def hold(self, data: bytes | bytearray) -> memoryview:
        """`data`, with the guard right behind."""
        view = memoryview(self._memory)[self._size - len(data) : self._size]
        view[:] = data
        return view.toreadonly()


@codecs
def test_nothing_is_read_behind_a_cut_or_damaged_stream(codec: Codec) -> None:
    guarded = Guarded(64 << 10)
    for stream in [*streams(codec), compress(codec, text(2000))]:
        for size in range(len(stream) + 1):
            with suppress(FormatError):
                decompress(codec, guarded.hold(stream[:size]))
        for at in range(len(stream)):
            damaged = bytearray(stream)
            damaged[at] ^= 0x41
            with suppress(FormatError):
                decompress(codec, guarded.hold(damaged), limit=1 << 20)


@pytest.mark.soak
@codecs
def test_long_fuzzing_raises_nothing_else(codec: Codec, soak: Soak) -> None:
    guarded = Guarded(1 << 20)
    shapes = [*streams(codec), *(compress(codec, data) for data in (b"", text(2000), noise(700), bytes(150_000)))]
    for seed in soak.seeds():
        generator = random.Random(seed)
        stream = bytearray(generator.choice(shapes))
        for _ in range(generator.randint(1, 6)):
            at = generator.randrange(len(stream) + 1)
            match generator.randrange(8):
                case 0:
                    del stream[at:]
                case 1:
                    stream[at:at] = generator.randbytes(generator.randrange(30))
                case 2:
                    del stream[at : at + generator.randint(1, 4)]
                case _ if at < len(stream):
                    stream[at] = generator.choice((0, 1, 0x7F, 0x80, 0xFF, generator.randrange(256)))
        limit = generator.choice((100, 3000, 1 << 20))
        with suppress(FormatError):
            assert len(decompress(codec, guarded.hold(stream), limit=limit)) <= limit


# Limits


@codecs
@pytest.mark.parametrize("size", [1000, 70_000, 200_000])
def test_limit_is_exact(codec: Codec, size: int) -> None:
    stream = compress(codec, text(size))
    assert len(decompress(codec, stream, limit=size)) == size
    with pytest.raises(LimitExceeded) as error:
        decompress(codec, stream, limit=size - 1, position=9)
    assert error.value.limit == size - 1
    assert error.value.position == 9


def test_limit_counts_over_members_frames_and_blocks() -> None:
    part = text(1000)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.ZSTD):
        stream = compress(codec, part) * 3
        assert decompress(codec, stream, limit=3000) == part * 3
        with pytest.raises(LimitExceeded):
            decompress(codec, stream, limit=2999)


def test_nothing_fits_a_limit_of_nothing_but_nothing() -> None:
    for codec in COMPRESSED:
        assert not decompress(codec, compress(codec, b""), limit=0)
        with pytest.raises(LimitExceeded):
            decompress(codec, compress(codec, b"a"), limit=0)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak can be reset on Linux only")
def test_bomb_takes_no_more_memory_than_the_limit_and_a_block() -> None:
    program = """
from pathlib import Path
from octavo.errors import FormatError, LimitExceeded
from octavo.records.compression import compress, decompress
from octavo.records.layout import Codec
from tests.unit.records.compression.cases import ZSTD, library_lz4, raw_snappy, zstd_block, zstd_frame

def memory(field):
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) << 10

zeros = bytes(48 << 20)
bombs = [(codec, compress(codec, zeros)) for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)]
bombs += [(codec, compress(codec, zeros[: 1 << 20]) * 48) for codec in (Codec.GZIP, Codec.SNAPPY, Codec.ZSTD)]
bombs += [(Codec.SNAPPY, raw_snappy(zeros)), (Codec.ZSTD, zstd_frame(zeros))]
bombs += [(Codec.LZ4, library_lz4(zeros, block_size=7))]
repeated = zstd_block(1, 1 << 17, b"z", False) * 9999
bombs += [(Codec.ZSTD, ZSTD + b"\\0\\x58" + repeated + zstd_block(0, 0, b""))]
lies = [(Codec.SNAPPY, b"\\xff\\xff\\xff\\xff\\x07" + bytes(50))]  # 2 GiB in 50 bytes
lies += [(Codec.ZSTD, ZSTD + b"\\0\\x88" + zstd_block(0, 1, b"a"))]  # a window of 128 MiB for one byte
del zeros
for codec, stream in bombs + lies:
    Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what is in use
    before = memory("VmRSS")
    try:
        decompress(codec, stream, limit=2 << 20)
        assert (codec, stream) in lies
    except LimitExceeded:
        assert (codec, stream) in bombs
    except FormatError:
        assert (codec, stream) in lies
    taken = memory("VmHWM") - before
    assert taken < (2 + 4 + 2) << 20, (codec, len(stream), taken)  # limit, largest block, the allocator's slack
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[4], timeout=300)


@codecs
def test_thousands_of_tiny_parts_take_linear_time(codec: Codec) -> None:
    # Quadratic time would be minutes here.
    data = b"abc"
    stream = compress(codec, data)
    if codec == Codec.LZ4:
        block = stream[7:-4]
        assert decompress(codec, stream[:7] + block * 50_000 + bytes(4)) == data * 50_000
    else:
        assert decompress(codec, stream * 50_000) == data * 50_000
