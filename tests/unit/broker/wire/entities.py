"""Random messages of kio, and the same as our codec has them."""

from __future__ import annotations

import io
import string
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pkgutil import resolve_name
from random import Random
from types import NoneType, UnionType
from typing import Any, get_args, get_origin
from uuid import UUID

from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.static.constants import EntityType
from kio.static.primitive import Records


def declared(api_key: int, version: int, *, response: bool = False) -> Any:
    """The class of kio for a message."""
    paths = schema_name_map[api_key_map[api_key]][version]
    return resolve_name(paths[EntityType.response] if response else paths[EntityType.request])


_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def random_message(kind: Any, random: Random, fixed: dict[str, Any]) -> Any:
    """A random message; fields whose names are in `fixed` have that value, at every depth."""
    values = {}
    for each in fields(kind):
        values[each.name] = (
            fixed[each.name]
            if each.name in fixed
            else _value(each.type, each.metadata.get("kafka_type", ""), random, fixed)
        )
    return kind(**values)


def _value(hint: Any, kafka_type: str, random: Random, fixed: dict[str, Any]) -> Any:
    if get_origin(hint) is UnionType:
        if random.random() < 0.3:
            return None
        hint = next(each for each in get_args(hint) if each is not NoneType)
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], kafka_type, random, fixed) for _ in range(random.choice((0, 1, 1, 3))))
    if is_dataclass(hint):
        return random_message(hint, random, fixed)
    return _primitive(hint, kafka_type, random)


def _primitive(hint: Any, kafka_type: str, random: Random) -> Any:
    if kafka_type in _BITS:
        half = 1 << (_BITS[kafka_type] - 1)
        return random.choice((-1, 0, 1, half - 1, -half, random.randrange(-half, half)))
    match kafka_type:
        case "bool":
            return random.random() < 0.5
        case "uint16" | "uint32":
            return random.randrange(1 << 16)
        case "float64":
            return random.random()
        case "uuid":
            return UUID(int=random.randrange(1, 1 << 128))
        case "string":
            return "".join(random.choices(string.ascii_letters + "äß€😀", k=random.choice((0, 1, 5, 200))))
        case "bytes":
            return random.randbytes(random.choice((0, 1, 200)))
        case "records":
            return Records(random.randbytes(random.choice((0, 1, 200))))
        case "error_code":
            return random.choice(list(hint))
        case "datetime_i64":
            return datetime.fromtimestamp(random.randrange(1 << 30), UTC)
    assert kafka_type.startswith("timedelta"), kafka_type
    return timedelta(milliseconds=random.randrange(1 << 30))


def written(message: Any) -> bytes:
    """The bytes of a message, as kio writes it."""
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def plain(value: Any, kafka_type: str = "") -> Any:
    """A message of kio as nested dicts of plain values, with the names that our codec gives to fields."""
    if is_dataclass(value) and not isinstance(value, type):
        named = {}
        for each in fields(value):
            kind = each.metadata.get("kafka_type", "")
            is_time = kind.startswith(("timedelta", "datetime"))
            named[f"{each.name}_ms" if is_time else each.name] = plain(getattr(value, each.name), kind)
        return named
    if isinstance(value, tuple):
        return [plain(each, kafka_type) for each in value]
    if kafka_type == "uuid":
        return bytes(16) if value is None else value.bytes
    if kafka_type == "datetime_i64" and value is None:
        return -1
    if isinstance(value, Records):
        return bytes(value)
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, bool) or value is None or isinstance(value, str | bytes | float):
        return value
    return int(value)
