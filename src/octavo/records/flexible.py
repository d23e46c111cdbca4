"""Read and write the flexible encoding of Kafka's messages (KIP-482), as far as control records need it.

Lengths and tags are varints without zig-zag. Arrays and strings store their length plus one; 0 means null. Each
structure ends with its tagged fields, which are skipped.
"""

from __future__ import annotations

import struct
from typing import Final
from uuid import UUID

from octavo.errors import BadLength, BadRecord, BadVarint, InvalidInput
from octavo.records.text import read_text, write_text

_INT16: Final = struct.Struct(">h")
_UINT16: Final = struct.Struct(">H")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")

MAX_STRING: Final = 0x7FFF


class FlexibleReader:
    """Reads one message, field by field; errors carry the position of the record that holds the message."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._at = 0
        self._position = position

    def int16(self) -> int:
        return self._number(_INT16)

    def uint16(self) -> int:
        return self._number(_UINT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def uuid(self) -> UUID:
        return UUID(bytes=self._take(16))

    def string(self) -> str:
        length = self._unsigned_varint() - 1
        if length < 0:
            raise BadRecord(self._position, "a string in a control record is null")
        if length > MAX_STRING:
            raise BadLength(self._position, f"a string in a control record is longer than {MAX_STRING}")
        return read_text(self._take(length))

    def array_length(self) -> int:
        """Return the number of items that follow; never more than the number of bytes left."""
        length = self._unsigned_varint() - 1
        if length < 0:
            raise BadRecord(self._position, "an array in a control record is null")
        if length > len(self._data) - self._at:
            raise BadLength(self._position, "an array in a control record is longer than its bytes")
        return length

    def tagged_fields(self) -> None:
        """Skip the tagged fields of a structure."""
        for _ in range(self._unsigned_varint()):
            self._unsigned_varint()
            self._take(self._unsigned_varint())

    def _number(self, kind: struct.Struct) -> int:
        number: int = kind.unpack(self._take(kind.size))[0]
        return number

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise BadLength(self._position, "a control record's value ends inside a field")
        self._at += size
        return taken

    def _unsigned_varint(self) -> int:
        number = 0
        for shift in range(0, 35, 7):
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number & 0xFFFFFFFF
        raise BadVarint(self._position, "a varint in a control record goes on after its last possible byte")


class FlexibleWriter:
    """Writes one message, field by field, into `data`; raises `struct.error` for numbers that do not fit."""

    def __init__(self) -> None:
        self.data = bytearray()

    def int16(self, number: int) -> None:
        self.data += _INT16.pack(number)

    def uint16(self, number: int) -> None:
        self.data += _UINT16.pack(number)

    def int32(self, number: int) -> None:
        self.data += _INT32.pack(number)

    def int64(self, number: int) -> None:
        self.data += _INT64.pack(number)

    def uuid(self, uuid: UUID) -> None:
        self.data += uuid.bytes

    def string(self, text: str) -> None:
        encoded = write_text(text)
        if len(encoded) > MAX_STRING:
            raise InvalidInput(f"a string of {len(encoded)} bytes is longer than {MAX_STRING}")
        self._unsigned_varint(len(encoded) + 1)
        self.data += encoded

    def array_length(self, length: int) -> None:
        self._unsigned_varint(length + 1)

    def no_tagged_fields(self) -> None:
        self.data.append(0)

    def _unsigned_varint(self, number: int) -> None:
        while number >= 0x80:
            self.data.append((number & 0x7F) | 0x80)
            number >>= 7
        self.data.append(number)
