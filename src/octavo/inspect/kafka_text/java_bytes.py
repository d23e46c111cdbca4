"""Read fields as Java's `ByteBuffer` and Kafka's `ByteUtils` read them, with their exceptions."""

from __future__ import annotations

from typing import Final

from octavo.inspect.kafka_text.throwables import ILLEGAL_ARGUMENT, OUT_OF_BOUNDS, OUT_OF_MEMORY, UNDERFLOW, Throwable
from octavo.records.layout import Buffer

HEAP: Final = 256 << 20  # of Kafka's tool, unless it is told otherwise


def check_heap(size: int) -> None:
    """Raise what Java throws if an array of `size` bytes cannot be allocated.

    For sizes a little below that of the heap, it depends on what else is in it. They are taken for possible.
    """
    if size > HEAP:
        raise Throwable(OUT_OF_MEMORY, "Java heap space")


def wrap32(number: int) -> int:
    """Return `number` in 32 signed bits, as Java's `int` does."""
    return ((number + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def int_at(data: Buffer, position: int) -> int:
    """Return the 32-bit number at `position`, and raise what `ByteBuffer.getInt(int)` throws."""
    return _number_at(data, position, 4)


def long_at(data: Buffer, position: int) -> int:
    """Return the 64-bit number at `position`, and raise what `ByteBuffer.getLong(int)` throws."""
    return _number_at(data, position, 8)


def short_at(data: Buffer, position: int) -> int:
    """Return the 16-bit number at `position`, and raise what `ByteBuffer.getShort(int)` throws."""
    return _number_at(data, position, 2)


def _number_at(data: Buffer, position: int, size: int) -> int:
    if not 0 <= position <= len(data) - size:
        raise Throwable(OUT_OF_BOUNDS)
    return int.from_bytes(data[position : position + size], "big", signed=True)


class Cursor:
    """A `ByteBuffer` that is read from its position on."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: Buffer, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.end = len(data)

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return self.end - self.at

    def byte(self) -> int:
        """Read one byte, unsigned."""
        if self.at >= self.end:
            raise Throwable(UNDERFLOW)
        byte = self.data[self.at]
        self.at += 1
        return byte

    def varint(self) -> int:
        """Read a signed varint of at most five bytes."""
        result = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            if shift == 28:
                # Java shifts the signed byte, of which four bits remain
                result |= (byte << 28) & 0xFFFFFFFF
                if byte & 0x80:
                    raise Throwable(
                        ILLEGAL_ARGUMENT,
                        "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
                        f"{result:x}",
                    )
                break
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        return wrap32(result >> 1 ^ -(result & 1))

    def varlong(self) -> int:
        """Read a signed varint of at most ten bytes."""
        result = 0
        shift = 0
        while (byte := self.byte()) & 0x80:
            result = (result | (byte & 0x7F) << shift) & 0xFFFFFFFFFFFFFFFF
            shift += 7
            if shift > 63:
                raise Throwable(
                    ILLEGAL_ARGUMENT,
                    f"Varlong is too long, most significant bit in the 10th byte is set, converted value: {result:x}",
                )
        result = (result | byte << shift) & 0xFFFFFFFFFFFFFFFF
        result = result >> 1 ^ -(result & 1)
        return ((result + (1 << 63)) & 0xFFFFFFFFFFFFFFFF) - (1 << 63)

    def sized(self, size: int) -> bytes | None:
        """Read `size` bytes, or None for a negative size."""
        if size < 0:
            return None
        if size > self.remaining:
            raise Throwable(ILLEGAL_ARGUMENT, f"newLimit > capacity: ({size} > {self.remaining})")
        self.at += size
        return bytes(self.data[self.at - size : self.at])
