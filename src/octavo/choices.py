"""Arguments that are one of a few choices. `chosen` takes Kafka's word, and the member of an enumeration."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from octavo.errors import InvalidInput

E = TypeVar("E", bound=Enum)


def chosen(name: str, value: object, kind: type[E], words: Mapping[str, E]) -> E:
    """Return the member of `kind` that a caller means, by itself or by one of `words`.

    name: what the argument is called. Raises `InvalidInput` for anything else, a number that equals a member included
    """
    if type(value) is kind:
        return value
    found = words.get(value) if type(value) is str else None
    if found is None:
        told = ", ".join(words)
        raise InvalidInput(f"{name} cannot be {value!r}: it must be one of {told}, or a member of {kind.__name__}")
    return found
