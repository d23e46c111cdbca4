"""Read schemas as Spark writes them, as DDL or as JSON, into Arrow types; and write them as JSON.

The Arrow types are those that Spark gives to its Python workers: timestamps in microseconds, all fields nullable. What
the text says about NOT NULL, defaults and comments is read, and makes no difference: Spark's `from_json` ignores it,
too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from octavo.errors import InvalidInput

MAX_DEPTH: Final = 32  # of types inside of types

_SIMPLE: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_SYNONYMS: Final = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}
_JSON_NAMES: Final = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")|([<>(),:]))")


def list_of(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type of Spark's ARRAY."""
    return pa.list_(pa.field("element", kind))


def read_schema(text: str) -> pa.Schema:
    """Read a schema: DDL (`id BIGINT, tags ARRAY<STRING>`), or Spark's StructType as JSON. Raises `InvalidInput`."""
    if text.lstrip().startswith("{"):
        try:
            kind = _from_json(json.loads(text), 0)
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            raise InvalidInput(f"the schema is not a StructType of Spark's in JSON: {error}") from None
        fields = [kind.field(number) for number in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    else:
        fields = _Ddl(text).fields()
    if not fields:
        raise InvalidInput("the schema has no fields")
    return pa.schema(fields)


def _simple(name: str) -> pa.DataType:
    kind = _SIMPLE.get(_SYNONYMS.get(name, name))
    if kind is None:
        raise InvalidInput(f"the schema has a type that values cannot have here: {name}")
    return kind


def _decimal(precision: int, scale: int) -> pa.DataType:
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise InvalidInput(f"there is no type decimal({precision},{scale})")
    return pa.decimal128(precision, scale)


def _struct(fields: list[tuple[str, pa.DataType]]) -> pa.DataType:
    names = [name for name, _ in fields]
    if len(set(names)) < len(names):
        raise InvalidInput("the schema names a field twice")
    return pa.struct([pa.field(name, kind) for name, kind in fields])


def _from_json(described: Any, depth: int) -> pa.DataType:
    if depth > MAX_DEPTH:
        raise InvalidInput(f"the schema has more than {MAX_DEPTH} levels")
    if isinstance(described, str):
        found = re.fullmatch(r"decimal\((\d+),\s*(-?\d+)\)", described)
        return _decimal(int(found[1]), int(found[2])) if found else _simple(described)
    match described["type"]:
        case "struct":
            return _struct([(field["name"], _from_json(field["type"], depth + 1)) for field in described["fields"]])
        case "array":
            return list_of(_from_json(described["elementType"], depth + 1))
        case "map":
            return _map(_from_json(described["keyType"], depth + 1), _from_json(described["valueType"], depth + 1))
        case other:
            raise InvalidInput(f"the schema has a type that values cannot have here: {other}")


def _map(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    if not pa.types.is_string(key):
        raise InvalidInput("the keys of a map are strings")
    return pa.map_(key, value)


class _Ddl:
    """Parses DDL."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._position = 0
        self._depth = 0

    def fields(self) -> list[pa.Field]:
        fields = self._listed(self._field)
        if self._next() is not None:
            raise self._error()
        kind = _struct(fields)
        return [kind.field(number) for number in range(kind.num_fields)]

    def _peek(self) -> str | None:
        found = _TOKEN.match(self._text, self._position)
        if found is None and self._text[self._position :].strip():
            raise self._error()
        return found[0].strip() if found else None

    def _next(self) -> str | None:
        token = self._peek()
        found = _TOKEN.match(self._text, self._position)
        self._position = found.end() if found else self._position
        return token

    def _error(self) -> InvalidInput:
        rest = self._text[self._position :].strip()[:40]
        return InvalidInput(f"the schema is no DDL such as `id BIGINT, tags ARRAY<STRING>`: see {rest!r}")

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise self._error()
        self._next()

    def _listed(self, read: Callable[[], Any]) -> list[Any]:
        items = [read()]
        while self._peek() == ",":
            self._next()
            items.append(read())
        return items

    def _field(self) -> tuple[str, pa.DataType]:
        name = self._peek()
        if name is None or not (name.startswith("`") or name[0].isalnum() or name[0] == "_"):
            raise self._error()
        self._next()
        if self._peek() == ":":
            self._next()
        kind = self._type()
        self._skip_remarks()
        return (name[1:-1].replace("``", "`") if name.startswith("`") else name), kind

    def _skip_remarks(self) -> None:
        if (self._peek() or "").upper() == "NOT":
            self._next()
            if (self._next() or "").upper() != "NULL":
                raise self._error()
        if (self._peek() or "").upper() == "COMMENT":
            self._next()
            if (self._next() or "")[:1] not in ("'", '"'):
                raise self._error()

    def _type(self) -> pa.DataType:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidInput(f"the schema has more than {MAX_DEPTH} levels")
        name = self._next()
        if name is None or not name[0].isalpha():
            raise self._error()
        match _SYNONYMS.get(name.lower(), name.lower()):
            case "array":
                kind = list_of(self._in_brackets(self._type)[0])
            case "map":
                kinds = self._in_brackets(self._type)
                if len(kinds) != 2:
                    raise self._error()
                kind = _map(*kinds)
            case "struct":
                kind = _struct(self._in_brackets(self._field))
            case "decimal":
                kind = _decimal(*self._precision())
            case other:
                kind = _simple(other)
        self._depth -= 1
        return kind

    def _in_brackets(self, read: Callable[[], Any]) -> list[Any]:
        self._expect("<")
        items = self._listed(read)
        self._expect(">")
        return items

    def _precision(self) -> tuple[int, int]:
        if self._peek() != "(":
            return 10, 0
        self._next()
        numbers = self._listed(self._number)
        self._expect(")")
        if len(numbers) > 2:
            raise self._error()
        return numbers[0], numbers[1] if len(numbers) > 1 else 0

    def _number(self) -> int:
        token = self._peek()
        if token is None or not token.isdecimal():
            raise self._error()
        self._next()
        return int(token)


def write_schema(schema: pa.Schema) -> str:
    """Return a schema as Spark's StructType in JSON."""
    return json.dumps(_to_json(pa.struct(list(schema))), ensure_ascii=False)


def _to_json(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return {
            "type": "struct",
            "fields": [
                {"name": field.name, "type": _to_json(field.type), "nullable": True, "metadata": {}} for field in fields
            ],
        }
    if pa.types.is_map(kind):
        value = _to_json(kind.item_type)
        return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _to_json(kind.value_type), "containsNull": True}
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    name = next(name for name, simple in _SIMPLE.items() if simple.equals(kind))
    return _JSON_NAMES.get(name, name)
