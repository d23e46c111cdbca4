"""Make the content of a request: walk kio's declaration of it, and choose a value for each field.

A field has its values in `tests.server.generated.values`, by the name of its API and its own; a field that has none
there gets values of its type, limits among them. `odds` says how often something is not as it should be.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from octavo.broker.wire.api_keys import APIS

T = TypeVar("T")

_BITS: Final = {
    "int8": 7,
    "int16": 15,
    "int32": 31,
    "int64": 63,
    "uint16": 15,
    "timedelta_i32": 31,
    "timedelta_i64": 63,
}
_TEXTS: Final = ("", "x", "ä", "x" * 300, "\0", "\ufffd")
LEAVE_OUT: Final = object()  # the value of a tagged field that is not sent


class Maker:
    """Makes the requests of one case."""

    def __init__(self, rng: random.Random, case: int, odds: float) -> None:
        self.rng: Final = rng
        self.odds = odds
        self.prefix: Final = f"z{case}-"  # of topics that only this case uses
        self.own: list[str] = []  # those that exist
        self.topic = ""  # that was named last: its partitions follow
        self.session_epoch = 0  # of the session that is open; 0 if there is none

    def odd(self, factor: float = 1.0) -> bool:
        """Return whether something should be odd."""
        return self.rng.random() < self.odds * factor

    def pick(self, good: Sequence[T], odd: Sequence[T] = ()) -> T:
        """Return a good value, or sometimes an odd one."""
        return self.rng.choice(odd) if odd and self.odd() else self.rng.choice(good)

    def request(self, api_key: int, version: int) -> dict[str, Any]:
        """Return the content of a request."""
        paths = schema_name_map[api_key_map[api_key]][version]
        declared = resolve_name(paths[EntityType.request])
        return self._structure(declared, APIS[api_key].name)

    def _structure(self, declared: Any, path: str) -> dict[str, Any]:
        content = {}
        for each in fields(declared):
            name = each.name
            if each.metadata.get("kafka_type", "").startswith(("timedelta", "datetime")):
                name += "_ms"
            value = self._value(each, f"{path}.{name}")
            if value is not LEAVE_OUT:
                content[name] = value
        return content

    def _value(self, declared: Any, path: str) -> Any:
        from tests.server.generated.values import LENGTHS, VALUES

        hint, is_array, nullable = _inside(declared.type)
        choose = _named(VALUES, path)
        if choose is not None:
            value = choose(self)
            return ([] if is_array else "") if value is None and not nullable else value
        if is_array:
            length = _named(LENGTHS, path)
            number = self.pick((1, 1, 1, 2), (0, 1, 2, 3)) if length is None else length(self)
            if number is None:
                return None if nullable else []
            items = [self._item(hint, declared, path) for _ in range(number)]
            if items and self.odd(0.5):
                items.append(self.rng.choice(items))
            return items
        if declared.metadata.get("tag") is not None and not self.odd():
            return LEAVE_OUT
        if nullable and (is_dataclass(hint) or self.odd()):
            return None
        return self._item(hint, declared, path)

    def _item(self, hint: Any, declared: Any, path: str) -> Any:
        if is_dataclass(hint):
            return self._structure(hint, path)
        item = _named_item(path)
        return self._plain(declared) if item is None else item(self)

    def _plain(self, declared: Any) -> Any:
        kafka_type = declared.metadata["kafka_type"]
        if kafka_type == "bool":
            return self.rng.random() < 0.5
        if kafka_type == "string":
            return self.pick(("x",), _TEXTS)
        if kafka_type == "bytes":
            return self.pick((b"abc",), (b"", bytes(300)))
        if kafka_type == "uuid":
            return self.pick((bytes(16),), (b"u" * 16,))
        if kafka_type == "float64":
            return self.pick((1.0, 0.5), (0.0, -1.0, float("nan"), float("inf")))
        bits = _BITS[kafka_type]
        default = declared.default if isinstance(declared.default, int) else 0
        return self.pick((default, 0, 1), (-1, -2, 7, (1 << bits) - 1, -(1 << bits)))


def _named(table: dict[str, Callable[[Maker], Any]], path: str) -> Callable[[Maker], Any] | None:
    """Return the entry for a path, by its whole, by API and field, by the last two names, or by the last."""
    parts = path.split(".")
    for key in (path, f"{parts[0]}.{parts[-1]}", ".".join(parts[-2:]), parts[-1]):
        if key in table:
            return table[key]
    return None


def _named_item(path: str) -> Callable[[Maker], Any] | None:
    from tests.server.generated.values import ITEMS

    return _named(ITEMS, path)


def _inside(hint: Any) -> tuple[Any, bool, bool]:
    """Return the type of a field or of its items, whether it is an array, and whether it may be null."""
    nullable = is_array = False
    if get_origin(hint) is UnionType:
        nullable = NoneType in get_args(hint)
        hint = next(each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is tuple:
        is_array = True
        hint = get_args(hint)[0]
        if get_origin(hint) is UnionType:
            hint = next(each for each in get_args(hint) if each is not NoneType)
    return hint, is_array, nullable
