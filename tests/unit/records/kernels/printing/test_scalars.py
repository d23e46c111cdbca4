"""Numbers and bytes are printed as Python's own libraries print them."""

from __future__ import annotations

import json
import random
from base64 import b64encode

import pytest

from octavo.records.kernels.printing.scalars import BASE64, HEX, ROOM_A_BYTE, ROOM_AROUND, TEXT, put_bytes, put_number
from octavo.records.layout import MAX_INT64, MIN_INT64


def printed(data: bytes, form: int) -> str:
    out = memoryview(bytearray(len(data) * ROOM_A_BYTE + ROOM_AROUND))  # the room that callers make
    end = put_bytes(out, 0, memoryview(data), 0, len(data), form)
    return bytes(out[:end]).decode()


@pytest.mark.parametrize("size", range(20))
def test_bytes_of_any_length_are_printed(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert printed(data, HEX) == f'"{data.hex()}"'
    assert printed(data, BASE64) == f'"{b64encode(data).decode()}"'


def test_all_bytes_are_printed() -> None:
    data = bytes(range(256)) * 3
    assert printed(data, HEX) == f'"{data.hex()}"'
    assert printed(data, BASE64) == f'"{b64encode(data).decode()}"'


def test_every_character_is_text_as_json_has_it() -> None:
    for code in [*range(0x800), 0xFFFF, 0x10000, 0x10FFFF, 0xD7FF, 0xE000, 0x2028]:
        text = f"a{chr(code)}b"
        assert printed(text.encode(), TEXT) == json.dumps(text, ensure_ascii=False)


def test_what_python_does_not_decode_is_not_taken_for_text() -> None:
    rng = random.Random(0)
    pieces = [b"\xc2", b"\xe0\xa0", b"\xed\x9f", b"\xed\xa0", b"\xf0\x90", b"\xf4\x8f", b"\x80", b"\xbf", b"a", b"\xf5"]
    for _ in range(3000):
        data = b"".join(rng.choices(pieces, k=rng.randrange(4)))
        try:
            said = json.dumps(data.decode(), ensure_ascii=False)
        except UnicodeDecodeError:
            said = json.dumps({"hex": data.hex()}, separators=(",", ":"))
        assert printed(data, TEXT) == said


@pytest.mark.parametrize("form", [HEX, BASE64, TEXT])
def test_a_negative_length_is_null(form: int) -> None:
    out = memoryview(bytearray(8))
    assert bytes(out[: put_bytes(out, 0, memoryview(b""), 0, -1, form)]) == b"null"


def test_every_number_of_64_bits_is_printed() -> None:
    edges = [sign * 10**power + more for power in range(19) for sign in (1, -1) for more in (-1, 0, 1)]
    for number in [*edges, MAX_INT64, MIN_INT64, MIN_INT64 + 1]:
        out = memoryview(bytearray(20))
        assert bytes(out[: put_number(out, 0, number)]) == str(number).encode()
