"""Read Avro schemas, and tell which columns they have.

Columns are those of Spark's `from_avro`: enums are strings, fixed are bytes, dates and timestamps have their types,
times of day are numbers. Unions other than of null and one type, types that contain themselves, and lists of things
without any bytes are refused.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.values.ddl import MAX_DEPTH, list_of

PRIMITIVES: Final[dict[str, pa.DataType]] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Final[dict[tuple[str, str], tuple[pa.DataType, int]]] = {
    ("int", "date"): (pa.date32(), 1),
    ("long", "timestamp-millis"): (pa.timestamp("us", "UTC"), 1000),
    ("long", "timestamp-micros"): (pa.timestamp("us", "UTC"), 1),
    ("long", "local-timestamp-millis"): (pa.timestamp("us"), 1000),
    ("long", "local-timestamp-micros"): (pa.timestamp("us"), 1),
}


class Field(NamedTuple):
    """A field of a record."""

    name: str
    type: AvroType
    aliases: tuple[str, ...]
    has_default: bool
    default: Any


class AvroType(NamedTuple):
    """A type, with all names in it resolved."""

    kind: str  # the name of the primitive or complex type; `optional` for a union of null and another type
    column: pa.DataType
    fields: tuple[Field, ...] = ()  # of a record
    items: AvroType | None = None  # of an array, map or optional
    null_at: int = 0  # position of null in a union
    size: int = 0  # of a fixed
    symbols: tuple[str, ...] = ()
    factor: int = 1  # from the unit of the numbers to that of the column


def read_avro_schema(text: str) -> AvroType:
    """Read a schema: a record. Raises `InvalidInput`."""
    try:
        described = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the Avro schema is not JSON: {error}") from None
    try:
        found = _Names().read(described, "", 0)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"the Avro schema is not well-formed: {type(error).__name__} {error}") from None
    if found.kind != "record":
        raise InvalidInput(f"the Avro schema is of a {found.kind}, but only the fields of a record can be columns")
    if not found.fields:
        raise InvalidInput("the Avro schema has no fields")
    return found


class _Names:
    """The named types of a schema."""

    def __init__(self) -> None:
        self._types: dict[str, AvroType | None] = {}  # None while it is being read

    def read(self, described: Any, namespace: str, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise InvalidInput(f"the Avro schema has more than {MAX_DEPTH} levels")
        if isinstance(described, list):
            return self._union(described, namespace, depth)
        if isinstance(described, str):
            return self._named(described, namespace)
        kind = described["type"]
        if isinstance(kind, dict | list):
            return self.read(kind, namespace, depth + 1)
        match kind:
            case "record" | "error":
                return self._record(described, namespace, depth)
            case "array":
                items = _with_bytes(self.read(described["items"], namespace, depth + 1))
                return AvroType("array", list_of(items.column), items=items)
            case "map":
                items = self.read(described["values"], namespace, depth + 1)
                return AvroType("map", pa.map_(pa.string(), _column(items)), items=items)
            case "enum":
                symbols = tuple(map(_text, described["symbols"]))
                return self._add(described, namespace, AvroType("enum", pa.string(), symbols=symbols))
            case "fixed":
                return self._add(described, namespace, self._fixed(described))
        return _logical(described, self._named(_text(kind), namespace))

    def _named(self, name: str, namespace: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(name, PRIMITIVES[name])
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._types.get(full, self._types.get(name, False))
        if found is False:
            raise InvalidInput(f"the Avro schema has an unknown type {name!r}")
        if not isinstance(found, AvroType):
            raise InvalidInput(f"the Avro type {name!r} contains itself, so it cannot be columns")
        return found

    def _add(self, described: dict[str, Any], namespace: str, found: AvroType) -> AvroType:
        self._types[_full_name(described, namespace)] = found
        return found

    def _record(self, described: dict[str, Any], namespace: str, depth: int) -> AvroType:
        full = _full_name(described, namespace)
        self._types[full] = None
        inner = full.rpartition(".")[0]
        fields = tuple(
            Field(
                _text(field["name"]),
                self.read(field["type"], inner, depth + 1),
                tuple(map(_text, field.get("aliases", ()))),
                "default" in field,
                field.get("default"),
            )
            for field in described["fields"]
        )
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise InvalidInput(f"the Avro record {full!r} names a field twice")
        column = pa.struct([pa.field(field.name, _column(field.type)) for field in fields])
        return self._add(described, namespace, AvroType("record", column, fields=fields))

    def _union(self, described: list[Any], namespace: str, depth: int) -> AvroType:
        kinds = [self.read(each, namespace, depth + 1) for each in described]
        nulls = [number for number, kind in enumerate(kinds) if kind.kind == "null"]
        if len(kinds) != 2 or len(nulls) != 1:
            names = ", ".join(kind.kind for kind in kinds)
            raise InvalidInput(f"an Avro union of {names} cannot be a column: it can be of null and one other type")
        items = kinds[1 - nulls[0]]
        return AvroType("optional", items.column, items=items, null_at=nulls[0])

    def _fixed(self, described: dict[str, Any]) -> AvroType:
        size = described["size"]
        if not isinstance(size, int) or not 0 < size < 1 << 24:
            raise InvalidInput(f"an Avro type of fixed size cannot have {size!r} bytes")
        return _logical(described, AvroType("fixed", pa.binary(), size=size))


def _logical(described: dict[str, Any], plain: AvroType) -> AvroType:
    logical = described.get("logicalType")
    if logical == "decimal" and plain.kind in ("bytes", "fixed"):
        precision, scale = described["precision"], described.get("scale", 0)
        if not 1 <= precision <= 38 or not 0 <= scale <= precision:
            raise InvalidInput(f"an Avro decimal({precision}, {scale}) is beyond those of Spark and Arrow")
        return plain._replace(kind=f"{plain.kind} decimal", column=pa.decimal128(precision, scale))
    column, factor = _LOGICAL.get((plain.kind, str(logical)), (plain.column, 1))
    return plain._replace(column=column, factor=factor)


def _full_name(described: dict[str, Any], namespace: str) -> str:
    name = _text(described["name"])
    namespace = described.get("namespace", namespace)
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"the Avro schema has {value!r} where a name is expected")
    return value


def _column(kind: AvroType) -> pa.DataType:
    return pa.string() if kind.kind == "null" else kind.column  # Spark has no columns of nothing but nulls


def _with_bytes(items: AvroType) -> AvroType:
    """Check that an item of a list has at least one byte: otherwise a few bytes could say that there are billions."""
    if items.kind == "null" or (items.kind == "record" and not _has_bytes(items)):
        raise InvalidInput("the Avro schema has a list of items without any bytes")
    return items


def _has_bytes(kind: AvroType) -> bool:
    if kind.kind == "record":
        return any(_has_bytes(field.type) for field in kind.fields)
    return kind.kind != "null"
