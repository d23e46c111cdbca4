"""Keys and values of Kafka's coordinators: a number of two bytes, and a structure of that version, or of that kind.

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
    """A key of an internal topic; each kind has a number, and one version that is not flexible."""

    __slots__ = ()

    TYPE: ClassVar[int]


class CoordinatorValue:
    """A value of an internal topic, in several versions."""

    __slots__ = ()

    VERSIONS: ClassVar[range]  # those that Kafka 4.3 knows
    FIRST_FLEXIBLE: ClassVar[int]


K = TypeVar("K", bound=CoordinatorKey)
V = TypeVar("V", bound=CoordinatorValue)


def read_number(data: bytes) -> int:
    """The type of a key, or the version of a value; raises `BadLength`."""
    if len(data) < _NUMBER_SIZE:
        raise BadLength(0, "there is no room for a version")
    return int.from_bytes(data[:_NUMBER_SIZE], signed=True)


def read_key(kind: type[K], data: bytes) -> K:
    """The key behind its number. Raises a `FormatError` where it is none."""
    key, _ = read_entity(kind, data, _NUMBER_SIZE, 0, flexible=False)
    return key


def write_key(key: CoordinatorKey) -> bytes:
    """A key with its number; raises `InvalidInput` for what it cannot hold."""
    return _write(key.TYPE, key, 0, flexible=False)


def read_value(kind: type[V], data: bytes) -> V:
    """A value of any version that Kafka 4.3 knows. Raises a `FormatError` where it is none."""
    version = read_number(data)
    if version not in kind.VERSIONS:
        raise Unsupported(0, f"there is no version {version} of {kind.__name__}")
    value, _ = read_entity(kind, data, _NUMBER_SIZE, version, flexible=version >= kind.FIRST_FLEXIBLE)
    return value


def write_value(value: CoordinatorValue, version: int) -> bytes:
    """A value in `version`; raises `InvalidInput` for one that there is not, and for what it cannot hold."""
    if version not in value.VERSIONS:
        raise InvalidInput(f"{type(value).__name__} has no version {version}")
    return _write(version, value, version, flexible=version >= value.FIRST_FLEXIBLE)


def _write(number: int, content: Any, version: int, *, flexible: bool) -> bytes:
    buffer = io.BytesIO()
    buffer.write(number.to_bytes(_NUMBER_SIZE, signed=True))
    write_entity(buffer, content, version, flexible=flexible)
    return buffer.getvalue()
