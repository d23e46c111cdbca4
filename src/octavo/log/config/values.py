"""Kinds of configuration values: how Kafka parses them from text, which values are valid, and how they are written.

Text is parsed as Kafka's `ConfigDef` does in Java. Surrounding blanks are ignored, and numbers may have a sign. `true`
and `false` may have any case; all other words are case-sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

from octavo.records.layout import MAX_INT32, MAX_INT64

_JAVA_BLANKS: Final = "".join(map(chr, range(0x21)))  # what String.trim() removes
_INTEGER: Final = re.compile(r"[+-]?\d{1,40}")
_DECIMAL: Final = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
_THROTTLED: Final = re.compile(r"([0-9]+:[0-9]+)?")

E = TypeVar("E", bound=Enum)


class Kind(Protocol):
    """A set of valid values and their text form."""

    allowed: str  # completes "... cannot be 7: it must be ..."

    def read(self, text: str) -> Any:
        """Parse a text. Raises `ValueError` if it has the wrong form; `accepts` checks the range."""

    def accepts(self, value: Any) -> bool:
        """Whether a value is in the set."""

    def write(self, value: Any) -> str:
        """Return the text of a value in the set."""


class Integer:
    """The kind of whole numbers in a range, as Java's `int` or `long`."""

    def __init__(self, minimum: int, maximum: int, *, also: int | None = None, is_int32: bool = False) -> None:
        """`also`: one more valid number outside the range; `is_int32`: it is an `int` in Java."""
        self.is_int32: Final = is_int32
        self.minimum: Final = minimum
        self.maximum: Final = maximum
        self.also: Final = also
        self.largest: Final = MAX_INT32 if is_int32 else MAX_INT64  # of the type
        self.smallest: Final = -self.largest - 1
        self.allowed = f"a whole number from {minimum} to {maximum}" + (f", or {also}" if also is not None else "")

    def read(self, text: str) -> int:
        text = text.strip(_JAVA_BLANKS)
        if _INTEGER.fullmatch(text) is None:
            raise ValueError(text)
        return int(text)

    def accepts(self, value: Any) -> bool:
        return type(value) is int and (self.minimum <= value <= self.maximum or value == self.also)

    def write(self, value: int) -> str:
        return str(value)


def int32(minimum: int = -MAX_INT32 - 1, maximum: int = MAX_INT32, *, also: int | None = None) -> Integer:
    """Return the kind of numbers that fit Java's `int`."""
    return Integer(minimum, maximum, also=also, is_int32=True)


def int64(minimum: int = -MAX_INT64 - 1) -> Integer:
    """Return the kind of numbers that fit Java's `long`."""
    return Integer(minimum, MAX_INT64)


class Ratio:
    """The kind of numbers from 0 to 1. NaN is accepted, as in Kafka, because every comparison with it is false."""

    allowed = "a number from 0 to 1"

    def read(self, text: str) -> float:
        text = text.strip(_JAVA_BLANKS)
        if _DECIMAL.fullmatch(text):
            return float(text.rstrip("fFdD"))
        if _HEXADECIMAL.fullmatch(text):
            digits, sign, exponent = text.lower().partition("p")
            return float.fromhex(digits + sign + exponent.rstrip("fd"))
        raise ValueError(text)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, (int, float)) and not (value < 0 or value > 1)

    def write(self, value: float) -> str:
        return "NaN" if value != value else repr(float(value))


class Switch:
    """The kind of the values `true` and `false`."""

    allowed = "true or false"

    def read(self, text: str) -> bool:
        text = text.strip(_JAVA_BLANKS).lower()
        if text not in {"true", "false"}:
            raise ValueError(text)
        return text == "true"

    def accepts(self, value: Any) -> bool:
        return type(value) is bool

    def write(self, value: bool) -> str:
        return "true" if value else "false"


class Text:
    """The kind of any text."""

    allowed = "a text"

    def read(self, text: str) -> str:
        return text

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str)

    def write(self, value: str) -> str:
        return value


class Name(Text):
    """The kind of texts that are not empty; None is valid, too."""

    allowed = "a text that is not empty"

    def accepts(self, value: Any) -> bool:
        return value is None or (isinstance(value, str) and value.strip() != "")


class Word:
    """The kind of values that are one of a fixed set of words."""

    def __init__(self, words: Iterable[str], members: Mapping[Enum, str] = MappingProxyType({})) -> None:
        """`members`: of an enumeration, each with the word that it stands for."""
        self.words: Final = tuple(words)
        self.members: Final = members
        self.allowed = f"one of {', '.join(self.words)}"

    def read(self, text: str) -> str:
        return text.strip(_JAVA_BLANKS)

    def accepts(self, value: Any) -> bool:
        return value in self.words

    def write(self, value: str) -> str:
        return value


class Choice:
    """Base class of kinds whose values are objects with a word for each: a field takes the word as well."""


class Member(Choice, Generic[E]):
    """The kind of members of an enumeration, written as Kafka's words for them."""

    def __init__(self, members: Mapping[str, E]) -> None:
        self.words: Final = tuple(members)
        self._types: Final = frozenset(map(type, members.values()))
        self._members: Final = members
        self._words: Final = {member: word for word, member in members.items()}
        self.allowed = f"one of {', '.join(members)}"

    def read(self, text: str) -> E:
        try:
            return self._members[text.strip(_JAVA_BLANKS)]
        except KeyError:
            raise ValueError(text) from None

    def accepts(self, value: Any) -> bool:
        return type(value) in self._types and value in self._words  # not a number that equals one

    def write(self, value: E) -> str:
        return self._words[value]


class Words:
    """The kind of comma-separated lists of words from a fixed set. The empty list is valid (KIP-1161)."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words: Final = tuple(sorted(words))
        self._words: Final = frozenset(self.words)
        self.allowed = f"any of {', '.join(self.words)} with commas in between, or nothing"

    def read(self, text: str) -> frozenset[str]:
        return frozenset(_items(text))

    def accepts(self, value: Any) -> bool:
        return isinstance(value, frozenset) and value <= self._words

    def write(self, value: frozenset[str]) -> str:
        return ",".join(sorted(value))


class Ordered:
    """The kind of comma-separated lists of words from a fixed set, in an order; not empty, and no word twice."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words: Final = tuple(words)
        self.allowed = f"one or more of {', '.join(self.words)} with commas in between, none of them twice"

    def read(self, text: str) -> tuple[str, ...]:
        return tuple(_items(text))

    def accepts(self, value: Any) -> bool:
        return isinstance(value, tuple) and 0 < len(value) == len(set(value)) and set(value) <= set(self.words)

    def write(self, value: tuple[str, ...]) -> str:
        return ",".join(value)


class Throttled:
    """The kind of lists of replicas whose replication is throttled."""

    allowed = "'*', or partition:broker pairs of numbers with commas in between"

    def read(self, text: str) -> tuple[str, ...]:
        return tuple(_items(text))

    def accepts(self, value: Any) -> bool:
        if not isinstance(value, tuple):
            return False
        return value == ("*",) or all(_THROTTLED.fullmatch(item.strip(_JAVA_BLANKS)) for item in value)

    def write(self, value: tuple[str, ...]) -> str:
        return ",".join(value)


def _items(text: str) -> list[str]:
    text = text.strip(_JAVA_BLANKS)
    return re.split(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*", text) if text else []
