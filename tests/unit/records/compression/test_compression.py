"""Codecs: what is written can be read, and what others write is read as Kafka reads it."""

from __future__ import annotations

import mmap
import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from octavo.errors import BadCompression, FormatError, InvalidInput, LimitExceeded, Unsupported
from octavo.records.compression import DEFAULT_LIMIT, Inflater, compress, decompress
from octavo.records.compression import gzip as octavo_gzip
from octavo.records.layout import Codec
from tests.unit.records.compression.cases import COMPRESSED, LEVELS, SIZES, Case, cases, noise, text

codecs = pytest.mark.parametrize("codec", COMPRESSED, ids=str)


# Round trips


@pytest.mark.parametrize("codec", Codec, ids=str)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [text, noise])
def test_what_is_compressed_decompresses(codec: Codec, size: int, make: Callable[[int], bytes]) -> None:
    data = make(size)
    assert decompress(codec, compress(codec, data)) == data


@codecs
def test_every_level_decompresses(codec: Codec) -> None:
    data = text(70_000)
    for level in LEVELS[codec]:
        assert decompress(codec, compress(codec, data, level=level)) == data


@pytest.mark.parametrize(
    ("codec", "level", "allowed"),
    [
        (Codec.GZIP, 0, "1 to 9 and -1"),
        (Codec.GZIP, 10, "1 to 9 and -1"),
        (Codec.GZIP, -2, "1 to 9 and -1"),
        (Codec.SNAPPY, 1, "no levels"),
        (Codec.LZ4, 0, "1 to 17"),
        (Codec.LZ4, 18, "1 to 17"),
        (Codec.ZSTD, 23, "-131072 to 22"),
        (Codec.ZSTD, -131073, "-131072 to 22"),
        (Codec.NONE, 1, "no levels"),
    ],
)
def test_level_outside_of_kafkas_range_is_refused(codec: Codec, level: int, allowed: str) -> None:
    with pytest.raises(InvalidInput, match=allowed):
        compress(codec, b"data", level=level)


def test_size_follows_the_level() -> None:
    data = text(200_000)
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 9, 8), (Codec.ZSTD, 1, 19)):
        assert len(compress(codec, data, level=high)) < len(compress(codec, data, level=low))


def test_lz4_default_is_the_fast_compressor_and_not_level_9_of_the_high_one() -> None:
    data = text(100_000)
    assert compress(Codec.LZ4, data) == compress(Codec.LZ4, data, level=9)
    assert len(compress(Codec.LZ4, data, level=8)) < len(compress(Codec.LZ4, data, level=9))


def test_lz4_of_magic_0_has_the_wrong_header_checksum() -> None:
    data = text(1000)
    assert compress(Codec.LZ4, data, magic=1).hex().startswith("04224d18604082")
    assert compress(Codec.LZ4, data, magic=0).hex().startswith("04224d1860401a")
    assert decompress(Codec.LZ4, compress(Codec.LZ4, data, magic=0), magic=0) == data
    with pytest.raises(BadCompression, match="checksum"):
        decompress(Codec.LZ4, compress(Codec.LZ4, data, magic=0), magic=1)


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_for_magic_2_only(magic: int) -> None:
    with pytest.raises(InvalidInput, match="magic"):
        compress(Codec.ZSTD, b"data", magic=magic)
    with pytest.raises(Unsupported, match="magic"):
        decompress(Codec.ZSTD, compress(Codec.ZSTD, b"data"), magic=magic)


@pytest.mark.parametrize("number", [-1, 5, 6, 7, 100])
def test_unknown_codec_is_refused(number: int) -> None:
    with pytest.raises(InvalidInput, match="no codec"):
        compress(number, b"data")
    with pytest.raises(Unsupported, match="no codec") as error:
        decompress(number, b"data", position=77)
    assert error.value.position == 77


# Any buffer


@pytest.mark.parametrize("codec", Codec, ids=str)
def test_any_buffer_is_taken_as_it_is(codec: Codec, tmp_path: Path) -> None:
    data = text(5000)
    stream = compress(codec, memoryview(bytearray(data)))
    assert stream == compress(codec, np.frombuffer(data, np.uint8).data) == compress(codec, data)
    file = tmp_path / "stream"
    file.write_bytes(b"before" + stream + b"after")
    with file.open("rb") as handle:
        mapped = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
    for buffer in (stream, bytearray(stream), memoryview(mapped)[6:-5], memoryview(stream).cast("b")):
        assert decompress(codec, buffer) == data


def test_nothing_is_copied_where_nothing_is_compressed() -> None:
    data = bytearray(b"data")
    view = decompress(Codec.NONE, data)
    data[0] = ord("D")
    assert bytes(view) == b"Data"
    assert view.readonly


# Others' streams


@pytest.mark.parametrize("case", cases(), ids=str)
def test_stream_made_by_hand(case: Case) -> None:
    if isinstance(case.result, bytes):
        assert decompress(case.codec, case.data, magic=case.magic) == case.result
        return
    with pytest.raises(case.result) as error:
        decompress(case.codec, case.data, magic=case.magic, position=1234)
    assert type(error.value) is case.result
    assert error.value.position == 1234


# Many buffers in one piece of memory


def test_inflater_puts_one_buffer_after_another() -> None:
    inflater = Inflater()
    parts = [text(20_000, seed=number) for number in range(50)]
    spans = [inflater.add(Codec(number % 5), compress(Codec(number % 5), part)) for number, part in enumerate(parts)]
    assert inflater.buffer == b"".join(parts)
    assert [bytes(inflater.buffer[start:end]) for start, end in spans] == parts
    inflater.clear()
    assert len(inflater.buffer) == 0
    assert inflater.add(Codec.LZ4, compress(Codec.LZ4, b"again")) == (0, 5)
    assert bytes(inflater.buffer) == b"again"


def test_inflater_grows_while_somebody_looks_at_it() -> None:
    inflater = Inflater()
    inflater.add(Codec.SNAPPY, compress(Codec.SNAPPY, text(1000)))
    before = np.frombuffer(inflater.buffer, np.uint8)
    inflater.add(Codec.ZSTD, compress(Codec.ZSTD, text(3_000_000)))
    assert before.tobytes() == text(1000)
    assert inflater.buffer == text(1000) + text(3_000_000)


@codecs
def test_inflater_adds_nothing_where_it_fails(codec: Codec) -> None:
    inflater = Inflater(limit=100_000)
    inflater.add(codec, compress(codec, b"first"))
    stream = compress(codec, text(90_000))
    for bad in (stream[: len(stream) // 2], compress(codec, text(100_001))):
        with pytest.raises(FormatError) as error:
            inflater.add(codec, bad, position=55)
        assert error.value.position == 55
        assert bytes(inflater.buffer) == b"first"
    assert inflater.add(codec, stream) == (5, 90_005)
    assert inflater.buffer == b"first" + text(90_000)


def test_inflaters_limit_is_for_each_buffer() -> None:
    inflater = Inflater(limit=1000)
    for codec in Codec:
        inflater.add(codec, compress(codec, text(1000)))
    with pytest.raises(LimitExceeded):
        inflater.add(Codec.NONE, text(1001))
    assert inflater.buffer == text(1000) * 5


# The rest


@codecs
def test_threads_do_not_disturb_each_other(codec: Codec) -> None:
    failures: list[int] = []

    def work(number: int) -> None:
        for turn in range(40):
            data = text(60_000 + turn, seed=number)
            if decompress(codec, compress(codec, data, level=LEVELS[codec][turn % min(3, len(LEVELS[codec]))])) != data:
                failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_libraries_are_imported_when_they_are_needed() -> None:
    program = """
import sys
from octavo.records.compression import compress, decompress
assert not {"cramjam", "lz4", "zstandard", "numpy", "numba", "pyarrow"} & set(sys.modules)
decompress(4, compress(4, b"data"))
assert "zstandard" in sys.modules
assert not {"cramjam", "lz4", "octavo.records.compression.gzip", "numpy", "numba", "pyarrow"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_gzip_above_level_3_is_what_zlib_makes() -> None:
    stream = compress(Codec.GZIP, text(1000), level=6)
    assert stream.startswith(octavo_gzip.HEADER)
    assert stream[10:-8] == zlib.compress(text(1000), 6, -15)


def test_default_limit_is_256_mib() -> None:
    assert DEFAULT_LIMIT == 256 * 1024 * 1024


# The page about it


def examples() -> dict[str, bytes]:
    """The worked examples of the page, by codec: the hex before the words of each line."""
    page = (Path(__file__).parents[4] / "docs/formats/compression.md").read_text()
    found = re.findall(r"```hex (\w+)\n(.*?)```", page, re.DOTALL)
    return {
        name: bytes.fromhex("".join(re.split(r" {2,}", line)[0] for line in body.splitlines())) for name, body in found
    }


@codecs
def test_example_of_the_page_is_what_it_says(codec: Codec) -> None:
    stream = examples()[codec.name.lower()]
    assert decompress(codec, stream) == b"hello" * 10
    if codec in (Codec.SNAPPY, Codec.LZ4):
        assert compress(codec, b"hello" * 10) == stream
