"""From the writer's and the reader's schema to the table that the kernel for Avro follows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.kernels.shredding import avro as kernel
from octavo.values.avro.schema import AvroType, Field
from octavo.values.columns import Bytes, ColumnTree, Longs

_SIMPLE: Final = {
    "null": kernel.NULL,
    "boolean": kernel.BOOLEAN,
    "int": kernel.INT,
    "long": kernel.INT,
    "float": kernel.FLOAT_TYPE,
    "double": kernel.DOUBLE_TYPE,
    "bytes": kernel.BINARY,
    "string": kernel.TEXT,
    "fixed": kernel.FIXED,
    "bytes decimal": kernel.DECIMAL,
    "fixed decimal": kernel.FIXED_DECIMAL,
}
_PROMOTIONS: Final = {
    "int": ("int", "long", "float", "double"),
    "long": ("long", "float", "double"),
    "float": ("float", "double"),
    "string": ("string", "bytes"),
    "bytes": ("bytes", "string"),
}


class Wire:
    """How values of one writer's schema become the columns of the reader's."""

    def __init__(self, writer: AvroType, reader: AvroType, columns: ColumnTree) -> None:
        """Raises `InvalidInput` if values of the one cannot be read as the other."""
        self._columns: Final = columns
        self._rows: list[list[int]] = []
        self._symbols = b""
        self.defaults: Final[list[Field]] = []  # fields of the value that have a default other than null here
        self.longest_symbol: dict[int, int] = {}  # by column
        self.depth: Final = _depth(writer) + 2
        self._reserve(1)
        self._fill(0, writer, reader, 0, "")
        self.table: Final[Longs] = np.array(self._rows, np.int64)
        self.symbols: Final[Bytes] = np.frombuffer(self._symbols or b"\0", np.uint8).copy()

    def _reserve(self, count: int) -> int:
        first = len(self._rows)
        self._rows += [[0] * kernel.WIRE_SIZE for _ in range(count)]
        return first

    def _fill(self, at: int, writer: AvroType, reader: AvroType | None, target: int, path: str) -> None:
        """Describe a type that goes to a column, or to none if there is no `reader`."""
        if reader is not None and reader.kind == "optional" and writer.kind != "optional":
            reader = reader.items
        match writer.kind:
            case "optional":
                inner = reader.items if reader is not None and reader.kind == "optional" else reader
                assert writer.items is not None  # it has
                first = self._reserve(1)
                self._rows[at] = [kernel.UNION, first, writer.null_at, target, 0]
                self._fill(first, writer.items, inner, target, path)
                return
            case "record":
                self._record(at, writer, reader, target, path)
                return
            case "array" | "map":
                self._nested(at, writer, reader, target, path)
                return
            case "enum":
                self._check(writer, reader, path, "enum", "string")
                first = self._reserve(len(writer.symbols))
                for number, symbol in enumerate(writer.symbols):
                    encoded = symbol.encode()
                    self._rows[first + number] = [kernel.SYMBOL, 0, len(encoded), len(self._symbols), 0]
                    self._symbols += encoded
                    self.longest_symbol[target] = max(self.longest_symbol.get(target, 0), len(encoded))
                self._rows[at] = [kernel.ENUM, first, len(writer.symbols), target, 0]
                return
        if writer.kind != "null":
            self._check(writer, reader, path, *_PROMOTIONS.get(writer.kind, (writer.kind,)))
        if reader is not None and "decimal" in writer.kind and reader.column.scale != writer.column.scale:
            raise InvalidInput(f"the Avro field {path} has another scale in the schema that it was written with")
        kind = _SIMPLE[writer.kind]
        if reader is not None and reader.kind == "string" and kind == kernel.BINARY:
            kind = kernel.TEXT
        factor = _factor(writer, reader)
        if reader is not None and "decimal" in writer.kind:
            limit = 10**reader.column.precision
            factor = len(self._symbols)
            self._symbols += limit.to_bytes(16, "big") + (-limit).to_bytes(16, "big", signed=True)
        self._rows[at] = [kind, 0, writer.size, target, factor]

    def _check(self, writer: AvroType, reader: AvroType | None, path: str, *allowed: str) -> None:
        if reader is not None and reader.kind not in allowed:
            raise InvalidInput(
                f"the Avro field {path} cannot be read as {reader.kind}: it was written as {writer.kind}"
            )
        fixed_differs = reader is not None and writer.kind.startswith("fixed") and reader.size != writer.size
        if fixed_differs:
            raise InvalidInput(f"the Avro field {path} has another size in the schema that it was written with")

    def _record(self, at: int, writer: AvroType, reader: AvroType | None, target: int, path: str) -> None:
        self._check(writer, reader, path or "value", "record")
        children = self._columns.nodes[target].children if reader is not None else []
        wanted = list(reader.fields) if reader is not None else []
        found = _matches(writer.fields, wanted)
        absent = [number for number in range(len(wanted)) if number not in found.values()]
        first = self._reserve(len(writer.fields) + len(absent))
        self._rows[at] = [kernel.RECORD, first, len(writer.fields) + len(absent), target, 0]
        for number, field in enumerate(writer.fields):
            match = found.get(field.name)
            inner = None if match is None else wanted[match].type
            child = -1 if match is None else children[match]
            self._fill(first + number, field.type, inner, child, f"{path}.{field.name}".lstrip("."))
        for number, missing in enumerate(absent):
            field = wanted[missing]
            if not field.has_default:
                raise InvalidInput(f"the Avro field {field.name} is missing in a schema, and has no default")
            if field.default is not None:
                if target != 0:
                    raise InvalidInput(
                        f"the Avro field {path}.{field.name} is missing in a schema: it can only be null"
                    )
                self.defaults.append(field)
            self._rows[first + len(writer.fields) + number] = [kernel.ABSENT, 0, 0, children[missing], 0]

    def _nested(self, at: int, writer: AvroType, reader: AvroType | None, target: int, path: str) -> None:
        self._check(writer, reader, path, writer.kind)
        children = self._columns.nodes[target].children if reader is not None else [-1, -1]
        inner = None if reader is None else reader.items
        assert writer.items is not None  # it has
        if writer.kind == "array":
            first = self._reserve(1)
            self._rows[at] = [kernel.ARRAY, first, 1, target, 0]
            self._fill(first, writer.items, inner, children[0], path)
            return
        first = self._reserve(2)
        self._rows[at] = [kernel.MAP, first, 2, target, 0]
        self._rows[first] = [kernel.TEXT, 0, 0, children[0], 0]
        self._fill(first + 1, writer.items, inner, children[1], path)


def _factor(writer: AvroType, reader: AvroType | None) -> int:
    """Return what numbers are multiplied by: the writer knows their unit, or else the reader does."""
    if reader is None or not pa.types.is_timestamp(reader.column):
        return 1
    return writer.factor if pa.types.is_timestamp(writer.column) else reader.factor


def _matches(written: Sequence[Field], wanted: Sequence[Field]) -> dict[str, int]:
    """Return the positions of the reader's fields that the writer's go to: by name, and only then by an alias."""
    places = {field.name: number for number, field in enumerate(wanted)}
    found = {field.name: places[field.name] for field in written if field.name in places}
    free = {field.name for field in written} - set(found)
    for number, field in enumerate(wanted):
        alias = next((name for name in field.aliases if name in free), None)
        if alias is not None and number not in found.values():
            found[alias] = number
            free.remove(alias)
    return found


def _depth(kind: AvroType) -> int:
    inner = [field.type for field in kind.fields] + ([kind.items] if kind.items is not None else [])
    return 1 + max(map(_depth, inner), default=0)
