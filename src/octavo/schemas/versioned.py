"""Read and write keys and values of Kafka's coordinators: a two-byte number, followed by a structure.

The number is the type of a key, or the version of a value.

    key   => type:int16     structure
    value => version:int16  structure
"""

from __future__ import annotations

import io
from typing import Any, ClassVar, Final, TypeVar

from octavo.errors import BadLength, InvalidInput, Unsupported
from octavo.schemas.entity import read_entity, write_entity

_NUMBER_SIZE: Final = 2


class CoordinatorKey:
    """A key in a coordinator's topic. Each kind has a number, and only one version, which is not flexible."""

    __slots__ = ()

    TYPE: ClassVar[int]


class CoordinatorValue:
    """A value in a coordinator's topic. Each kind has several versions."""

    __slots__ = ()

    VERSIONS: ClassVar[range]  # versions that Kafka 4.3 knows
    FIRST_FLEXIBLE: ClassVar[int]


K = TypeVar("K", bound=CoordinatorKey)
V = TypeVar("V", bound=CoordinatorValue)


def read_number(data: bytes) -> int:
    """Return the type of a key, or the version of a value; raises `BadLength`."""
    if len(data) < _NUMBER_SIZE:
        raise BadLength(0, "there is no room for a version")
    return int.from_bytes(data[:_NUMBER_SIZE], signed=True)


def read_key(kind: type[K], data: bytes) -> K:
    """Read a key, whose structure follows its number. Raises a `FormatError` if it is malformed."""
    key, _ = read_entity(kind, data, _NUMBER_SIZE, 0, flexible=False)
    return key


def write_key(key: CoordinatorKey) -> bytes:
    """Write a key with its number; raises `InvalidInput` if a field cannot hold its value."""
    return _write(key.TYPE, key, 0, flexible=False)


def read_value(kind: type[V], data: bytes) -> V:
    """Read a value of any version that Kafka 4.3 knows.

    Raises a `FormatError` for another version or if the value is malformed.
    """
    version = read_number(data)
    if version not in kind.VERSIONS:
        raise Unsupported(0, f"there is no version {version} of {kind.__name__}")
    value, _ = read_entity(kind, data, _NUMBER_SIZE, version, flexible=version >= kind.FIRST_FLEXIBLE)
    return value


def write_value(value: CoordinatorValue, version: int) -> bytes:
    """Write a value in `version`; raises `InvalidInput` for an unknown version or a field that it cannot hold."""
    if version not in value.VERSIONS:
        raise InvalidInput(f"{type(value).__name__} has no version {version}")
    return _write(version, value, version, flexible=version >= value.FIRST_FLEXIBLE)


def _write(number: int, content: Any, version: int, *, flexible: bool) -> bytes:
    buffer = io.BytesIO()
    buffer.write(number.to_bytes(_NUMBER_SIZE, signed=True))
    write_entity(buffer, content, version, flexible=flexible)
    return buffer.getvalue()
