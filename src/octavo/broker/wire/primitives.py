"""Read and write the primitive types of Kafka's wire protocol.

Readers take a buffer and a position, and return the value there with the position after it. They raise
`MalformedRequest` if the bytes end early, or a length is negative where it must not be. Strings are decoded as Kafka
decodes them: malformed UTF-8 becomes replacement characters.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from octavo.errors import MalformedRequest
from octavo.records.text import read_text, write_text

Read = Callable[[memoryview, int], tuple[Any, int]]
Write = Callable[[list[bytes], Any], None]
ReadItems = Callable[[memoryview, int, int], tuple[Any, int]]  # the last argument is the number of items

MAX_VARINT_SHIFT: Final = 28
_ONE_BYTE: Final = [bytes((number,)) for number in range(0x80)]
MAX_STRING: Final = 0x7FFF
MAX_ITEMS: Final = 20_000  # of an array. Kafka has no limit, but a thread for each request that it works on


def read_uvarint(data: memoryview, position: int) -> tuple[int, int]:
    """Read an unsigned varint of at most five bytes."""
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF, position
            shift += 7
            if shift > MAX_VARINT_SHIFT:
                raise MalformedRequest(f"a varint at byte {position} goes on after its fifth byte")
    except IndexError:
        raise MalformedRequest(f"the bytes end inside a varint, at byte {position}") from None


def skip_tagged(body: memoryview, position: int) -> int:
    """Return the position after the tagged fields of a structure that has none that matter."""
    if position < len(body) and body[position] == 0:  # nearly always
        return position + 1
    number, position = read_uvarint(body, position)
    check_tags(number)
    for _ in range(number):
        _, position = read_uvarint(body, position)
        size, position = read_uvarint(body, position)
        _, position = take(body, position, size)
    return position


def check_tags(number: int) -> None:
    """Refuse a structure with more tagged fields than there could ever be. Raises `MalformedRequest`."""
    if number > MAX_ITEMS:
        raise MalformedRequest(f"{number} tagged fields are announced, and {MAX_ITEMS} are served")


def uvarint(value: int) -> bytes:
    """Return an unsigned varint."""
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def fixed(layout: str) -> tuple[Read, Write]:
    """Return the functions for a number of a fixed size."""
    packed = struct.Struct(f">{layout}")
    unpack, pack, size = packed.unpack_from, packed.pack, packed.size

    def read(data: memoryview, position: int) -> tuple[Any, int]:
        try:
            return unpack(data, position)[0], position + size
        except struct.error:
            raise MalformedRequest(f"the bytes end inside a number, at byte {position}") from None

    def write(parts: list[bytes], value: Any) -> None:
        parts.append(pack(value))

    return read, write


def numbers(layout: str) -> tuple[ReadItems, Write]:
    """Return the functions for the items of an array of numbers, which are read and written at once."""
    size = struct.calcsize(f">{layout}")

    def read(data: memoryview, position: int, number: int) -> tuple[Any, int]:
        try:
            return struct.unpack_from(f">{number}{layout}", data, position), position + number * size
        except struct.error:
            raise MalformedRequest(f"the bytes end inside numbers, after byte {position}") from None

    def write(parts: list[bytes], values: Any) -> None:
        parts.append(struct.pack(f">{len(values)}{layout}", *values))

    return read, write


def take(data: memoryview, position: int, length: int) -> tuple[memoryview, int]:
    """Return a view of `length` bytes, and the position after them."""
    end = position + length
    if end > len(data):
        raise MalformedRequest(f"{length} bytes are announced at byte {position}, and there are fewer")
    return data[position:end], end


_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")


def _length(data: memoryview, position: int, layout: struct.Struct) -> tuple[int, int]:
    try:
        (length,) = layout.unpack_from(data, position)
    except struct.error:
        raise MalformedRequest(f"the bytes end inside a length, at byte {position}") from None
    return length, position + layout.size


def sized(kind: str, *, flexible: bool, nullable: bool) -> tuple[Read, Write]:
    """Return the functions for a string or for bytes: its length comes first, in the form of the version."""
    is_text = kind == "string"
    layout = _SHORT if is_text else _INT

    def read(data: memoryview, position: int) -> tuple[Any, int]:
        if not flexible:
            length, position = _length(data, position, layout)
        elif position < len(data) and data[position] < 0x80:  # nearly always
            length, position = data[position] - 1, position + 1
        else:
            length, position = read_uvarint(data, position)
            length -= 1
        if length < 0:
            if not nullable:
                raise MalformedRequest(f"null at byte {position}, where it must not be")
            return None, position
        if is_text and length > MAX_STRING:
            raise MalformedRequest(f"a string at byte {position} is longer than {MAX_STRING} bytes")
        end = position + length
        if end > len(data):
            raise MalformedRequest(f"{length} bytes are announced at byte {position}, and there are fewer")
        content = bytes(data[position:end])
        return read_text(content) if is_text else content, end

    def write(parts: list[bytes], value: Any) -> None:
        if value is None:
            assert nullable
            parts.append(b"\0" if flexible else layout.pack(-1))
            return
        content = write_text(value) if is_text else value
        parts.append(uvarint(len(content) + 1) if flexible else layout.pack(len(content)))
        parts.append(content)

    return read, write


def count(*, flexible: bool, nullable: bool) -> tuple[Read, Write]:
    """Return the functions for the number of items of an array; a negative one stands for null."""

    def read(data: memoryview, position: int) -> tuple[int, int]:
        if flexible:
            items, position = read_uvarint(data, position)
            items -= 1
        else:
            items, position = _length(data, position, _INT)
        if items < 0 and not nullable:
            raise MalformedRequest(f"null at byte {position}, where an array must be")
        if items > MAX_ITEMS:
            raise MalformedRequest(f"{items} items are announced at byte {position}, and {MAX_ITEMS} are served")
        if items > len(data) - position:  # every item takes at least one byte
            raise MalformedRequest(f"{items} items are announced at byte {position}, and there are fewer bytes")
        return items, position

    def write(parts: list[bytes], items: int) -> None:
        parts.append(uvarint(items + 1) if flexible else _INT.pack(items))

    return read, write


def encode_count(number: int, flexible: bool) -> bytes:
    """Return the number of items of an array, or the size of records."""
    return uvarint(number + 1) if flexible else _INT.pack(number)


def encode_text(text: str | None, flexible: bool) -> bytes:
    """Return a string that may be null."""
    if text is None:
        return b"\0" if flexible else _SHORT.pack(-1)
    encoded = write_text(text)
    return (uvarint(len(encoded) + 1) if flexible else _SHORT.pack(len(encoded))) + encoded


# The types of kio's declarations that have a fixed size, as `struct` calls them; any byte but 0 is true. It has names
# of its own for numbers with a meaning, which are plain numbers here.
FIXED: Final = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
    "bool": "?",
}
ARRAYS: Final[dict[str, tuple[ReadItems, Write]]] = {
    name: numbers(layout) for name, layout in FIXED.items() if len(layout) == 1
}
NUMBERS: Final[dict[str, tuple[Read, Write]]] = {name: fixed(layout) for name, layout in FIXED.items()}
