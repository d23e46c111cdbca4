"""Read and write keys and values of Kafka's coordinators: a two-byte number, followed by a structure.

The number is the type of a key, or the version of a value. The type of a key also says which structure the value has.

    key   => type:int16     structure
    value => version:int16  structure

    key = read_group_key(record.key)                  # in octavo.schemas.consumer_offsets.serde
    if isinstance(key, OffsetCommitKey):
        value = read_value_of(key, record.value)      # an OffsetCommitValue, an UnknownValue, or None
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

from octavo.errors import BadLength, InvalidInput, Unsupported
from octavo.schemas.entity import read_entity, write_entity

_NUMBER: Final = struct.Struct(">h")
_NUMBER_SIZE: Final = _NUMBER.size


class CoordinatorValue:
    """A value in a coordinator's topic. Each kind has several versions."""

    __slots__ = ()

    VERSIONS: ClassVar[range]  # versions that Kafka 4.3 knows
    FIRST_FLEXIBLE: ClassVar[int]


V = TypeVar("V", bound=CoordinatorValue)


class CoordinatorKey(Generic[V]):
    """A key in a coordinator's topic. Each kind has a number, and only one version, which is not flexible."""

    __slots__ = ()

    TYPE: ClassVar[int]
    VALUE: ClassVar[type[CoordinatorValue]]  # the class V


K = TypeVar("K", bound=CoordinatorKey[Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKey:
    """A key whose type Kafka 4.3 does not know."""

    type: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownValue:
    """A value whose key or version Kafka 4.3 does not know."""

    version: int
    body: bytes


def key_kinds(*modules: ModuleType) -> dict[int, type[CoordinatorKey[Any]]]:
    """Return the classes of keys that are declared in some modules, by their type."""
    return {
        kind.TYPE: kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, CoordinatorKey) and kind is not CoordinatorKey
    }


def read_number(data: bytes) -> int:
    """Return the type of a key, or the version of a value; raises `BadLength`."""
    if len(data) < _NUMBER_SIZE:
        raise BadLength(0, "there is no room for a version")
    return int.from_bytes(data[:_NUMBER_SIZE], signed=True)


def read_any_key(kinds: Mapping[int, type[CoordinatorKey[Any]]], data: bytes) -> CoordinatorKey[Any] | UnknownKey:
    """Read a key of one of several kinds. Raises a `FormatError` if it is malformed."""
    number = read_number(data)
    kind = kinds.get(number)
    return UnknownKey(type=number, body=data[_NUMBER_SIZE:]) if kind is None else read_key(kind, data)


def read_key(kind: type[K], data: bytes) -> K:
    """Read a key, whose structure follows its number. Raises a `FormatError` if it is malformed."""
    key, _ = read_entity(kind, data, _NUMBER_SIZE, 0, flexible=False)
    return key


def write_key(key: CoordinatorKey[Any]) -> bytes:
    """Write a key with its number; raises `InvalidInput` if a field cannot hold its value."""
    return _write(key.TYPE, key, 0, flexible=False)


def read_value_of(key: CoordinatorKey[V] | UnknownKey, data: bytes | None) -> V | UnknownValue | None:
    """Read the value that belongs to `key`; None, if the record has no value.

    Raises a `FormatError` if the value is malformed.
    """
    if data is None:
        return None
    version = read_number(data)
    if isinstance(key, UnknownKey) or version not in key.VALUE.VERSIONS:
        return UnknownValue(version=version, body=data[_NUMBER_SIZE:])
    return cast("V", read_value(key.VALUE, data))


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
    return _NUMBER.pack(number) + write_entity(content, version, flexible=flexible)
