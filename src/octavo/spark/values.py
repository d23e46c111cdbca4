"""Parse the values of single options: booleans, numbers, words, durations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from octavo.errors import InvalidConfig, InvalidInput

_DURATION: Final = re.compile(r"(-?[0-9]+)\s*(us|ms|s|m|min|h|d)?")
_UNITS_MS: Final = {
    None: 1,
    "us": 0.001,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


class Values:
    """Options, stored by name in lower case.

    Callers pass the name as it is documented, which is also the one that error messages show.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options: Final = options

    def truth(self, name: str, *, default: bool) -> bool:
        """Read true or false. Raises `InvalidConfig`."""
        value = self.options.get(name.lower())
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise InvalidConfig(name, value, "it is true or false")
        return value.lower() == "true"

    def positive(self, name: str) -> int | None:
        """Read a number above 0. Raises `InvalidInput`."""
        value = self.options.get(name.lower())
        if value is None:
            return None
        try:
            number = int(value)
        except ValueError:
            raise InvalidConfig(name, value, "it is a number") from None
        if number <= 0:
            raise InvalidInput(f"{name} must be positive")
        return number

    def one_of(self, name: str, allowed: list[str], default: str) -> str:
        """Read one of the words in `allowed`, and return it as it is written there. Raises `InvalidConfig`."""
        value = self.options.get(name.lower(), default)
        for word in allowed:
            if value.strip().lower() == word.lower():
                return word
        raise InvalidConfig(name, value, f"it is one of {', '.join(allowed)}")

    def words(self, name: str) -> tuple[str, ...] | None:
        """Read words separated by commas; None if the option was not given."""
        value = self.options.get(name.lower())
        return None if value is None else tuple(word.strip() for word in value.split(",") if word.strip())

    def duration_ms(self, name: str) -> int | None:
        """Read a duration as Spark writes it: `500`, `30s`, `15m`. Raises `InvalidConfig`."""
        value = self.options.get(name.lower())
        if value is None:
            return None
        found = _DURATION.fullmatch(value.strip().lower())
        if found is None or int(found[1]) < 0:
            raise InvalidConfig(name, value, "it is a duration, such as 30s or 15m")
        return int(int(found[1]) * _UNITS_MS[found[2]])
