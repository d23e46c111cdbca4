"""Names of files as Java sees them: normalised paths, and the numbers in file names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

from octavo.inspect.kafka_text.throwables import NUMBER_FORMAT, STRING_OUT_OF_BOUNDS, Throwable
from octavo.records.layout import MAX_INT32, MAX_INT64

V = TypeVar("V")

_SLASHES: Final = re.compile("/+")


class JavaFile:
    """A `java.io.File`."""

    def __init__(self, path: str) -> None:
        # Java drops repeated and trailing slashes, and keeps everything else.
        path = _SLASHES.sub("/", path)
        self.path: Final = path.rstrip("/") if len(path) > 1 else path

    def __str__(self) -> str:
        return self.path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The rest of the name from its last dot on, which is empty if there is no dot."""
        dot = self.name.rfind(".")
        return self.name[dot:] if dot >= 0 else ""

    @property
    def absolute(self) -> str:
        """The absolute path, which is not resolved further."""
        return self.path if self.path.startswith("/") else f"{Path.cwd()}/{self.path}".rstrip("/")

    @property
    def base_offset(self) -> int:
        """The number before the first dot of the name. Raises what Java's `Long.parseLong` throws."""
        return parse_long(self.name.partition(".")[0])

    def beside(self, suffix: str) -> JavaFile:
        """Return the file of another kind of the same segment."""
        folder = self.absolute.rpartition("/")[0]
        return JavaFile(f"{folder}/{self.name.partition('.')[0]}{suffix}")


def parse_long(text: str, largest: int = MAX_INT64) -> int:
    """Parse a number as `Long.parseLong` does, and raise what it throws."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    number = 0
    for digit in digits:
        value = unicodedata.decimal(digit, -1) if ord(digit) < 0x10000 else -1
        if value < 0:
            raise _no_number(text)
        number = number * 10 + value
    if text[:1] == "-":
        number = -number
    if not digits or not -largest - 1 <= number <= largest:
        raise _no_number(text)
    return number


def parse_int(text: str) -> int:
    """Parse a number as `Integer.parseInt` does, and raise what it throws."""
    return parse_long(text, MAX_INT32)


def snapshot_id(name: str) -> tuple[int, int]:
    """Return end offset and epoch from the name of a KRaft snapshot, and raise what `Snapshots.parse` throws."""
    return parse_long(_substring(name, 0, 20)), parse_int(_substring(name, 21, 31))


def utf16_length(text: str) -> int:
    """Return the length of a string in Java."""
    return len(text) + sum(character > "\uffff" for character in text)


def hash_code(text: str) -> int:
    """Return the hash of a string in Java, as an unsigned number."""
    data = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for at in range(0, len(data), 2):
        result = (result * 31 + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    return result


class HashMap(Generic[V]):
    """A `java.util.HashMap` of strings, as far as the order goes in which it iterates over them."""

    def __init__(self) -> None:
        self._values: Final[dict[str, V]] = {}
        self._capacity = 16

    def __len__(self) -> int:
        return len(self._values)

    def compute_if_absent(self, key: str, make: Callable[[], V]) -> V:
        """Return the value of a key, which is made if it is not there.

        Java doubles the buckets first if there are too many keys already, even if this one is there.
        """
        if len(self._values) > self._capacity * 3 // 4:
            self._capacity *= 2
        if key not in self._values:
            self._values[key] = make()
        return self._values[key]

    def items(self) -> list[tuple[str, V]]:
        """Return the keys by bucket, and their values. A new key is the first one in its bucket."""
        newest_first = list(self._values.items())[::-1]
        return sorted(newest_first, key=lambda item: self._bucket(item[0]))

    def _bucket(self, key: str) -> int:
        hashed = hash_code(key)
        return (hashed ^ hashed >> 16) & (self._capacity - 1)


def _substring(text: str, begin: int, end: int) -> str:
    size = utf16_length(text)
    if end > size:
        raise Throwable(STRING_OUT_OF_BOUNDS, f"begin {begin}, end {end}, length {size}")
    return text[begin:end]


def _no_number(text: str) -> Throwable:
    return Throwable(NUMBER_FORMAT, f'For input string: "{text}"')
