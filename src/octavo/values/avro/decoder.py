"""The decoder of Avro values."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.records.kernels import kernels
from octavo.records.kernels.shredding import avro as kernel
from octavo.records.kernels.shredding import tree
from octavo.values.avro.defaults import value_of_default
from octavo.values.avro.schema import AvroType, Field, read_avro_schema
from octavo.values.avro.wire import Wire
from octavo.values.columns import TOO_LARGE, Bytes, ColumnTree, Input, Longs, Node, chunks, input_of
from octavo.values.decoder import Decoded, ValueDecoder, joined
from octavo.values.value_format import ValueFormat

_PREFIX: Final = 5  # bytes of a registry's wire format: zero, and the id
_REASONS: Final = {
    kernel.CUT: "the value ends too early for its Avro schema",
    kernel.LEFT: "the value goes on after what its Avro schema says",
    kernel.BAD_CHOICE: "the value has a choice that its Avro schema does not offer",
    kernel.BAD_TEXT: "the value has a string that is not UTF-8",
    kernel.BAD_NUMBER: "the value has a number that its Avro schema does not allow",
    kernel.BAD_COUNT: "the value has a list that is longer than its bytes",
}


class AvroDecoder(ValueDecoder):
    """Decodes Avro records, all of one schema, or each with the id of its schema before it."""

    format: ClassVar[str] = "avro"

    def __init__(self, schema: str | None, folder: str | None) -> None:
        """Raises `InvalidInput`, also if a schema in the folder cannot be read as the one that is given."""
        if schema is None and folder is None:
            raise InvalidInput("values of the format avro need schema or schema_folder")
        # Workers, and exports that go on with a table, may run in other folders.
        self._folder: Final = None if folder is None else str(Path(folder).absolute())
        self._schemas = {} if self._folder is None else _schemas_in(Path(self._folder))
        self._text: Final = schema if schema is not None else self._schemas[max(self._schemas)]
        self._reader: Final = read_avro_schema(self._text)
        self.schema = pa.schema(list(self._reader.column))
        self._tree: Final = _AvroTree(self.schema)
        self._wires: dict[int, Wire | str] = {}  # by id; or why values with it cannot be read

    @cached_property
    def _wire(self) -> Wire:
        return self._made(self._reader)

    def _made(self, writer: AvroType) -> Wire:
        wire = Wire(writer, self._reader, self._tree)
        for node, size in wire.longest_symbol.items():
            self._tree.symbols[node] = max(size, self._tree.symbols.get(node, 0))
        return wire

    def decode(self, values: pa.Array) -> Decoded:
        """Decode a column of values."""
        return joined([self._decode(part) for part in chunks(values)], self.schema)

    def to_text(self) -> str:
        """Return the decoder as text. It has the path of the folder, not the schemas in it, because these may grow."""
        folder = {} if self._folder is None else {"schema_folder": self._folder}
        return json.dumps({"format": self.format, "schema": self._text, **folder})

    def _decode(self, values: pa.Array) -> Decoded:
        given = input_of(values)
        wanted = given.is_valid & (np.diff(given.ends) <= TOO_LARGE)
        errors = np.full(len(values), None, object)
        errors[given.is_valid & ~wanted] = f"the value is larger than {TOO_LARGE >> 20} MiB"
        if self._folder is None:
            columns = self._shred(given, wanted, self._wire, 0, errors)
            return Decoded(pa.RecordBatch.from_arrays(columns, schema=self.schema), pa.array(errors, pa.string()))
        return self._by_schema(given, wanted, errors)

    def _by_schema(self, given: Input, wanted: npt.NDArray[np.bool_], errors: npt.NDArray[Any]) -> Decoded:
        """Decode values that begin with the id of their schema."""
        ids = _ids(given, wanted)
        errors[wanted & (ids < 0)] = "the value does not begin with a zero byte and the id of a schema"
        parts: list[list[pa.Array]] = []
        order = np.zeros(len(ids), np.int64)
        for number, found in enumerate(np.unique(ids[wanted & (ids >= 0)]).tolist()):
            rows = wanted & (ids == found)
            wire = self._wire_of(found)
            if isinstance(wire, str):
                errors[rows] = wire
                rows[:] = False
            order[rows] = number
            used = wire if isinstance(wire, Wire) else self._wire
            parts.append(self._shred(given, rows, used, _PREFIX, errors))
        if not parts:
            parts.append(self._shred(given, np.zeros(len(ids), bool), self._wire, _PREFIX, errors))
        if len(parts) == 1:
            columns = parts[0]
        else:  # each part has all rows; those of other schemas are null in it
            places = pa.array(order * len(ids) + np.arange(len(ids)))
            columns = [pa.concat_arrays(list(each)).take(places) for each in zip(*parts, strict=True)]
        return Decoded(pa.RecordBatch.from_arrays(columns, schema=self.schema), pa.array(errors, pa.string()))

    def _wire_of(self, found: int) -> Wire | str:
        if found not in self._wires:
            text = self._schemas.get(found)
            if text is None:
                return f"there is no schema with the id {found} in {self._folder}"
            try:
                self._wires[found] = self._made(read_avro_schema(text))
            except InvalidInput as error:
                self._wires[found] = f"the schema with the id {found}: {error}"
        return self._wires[found]

    def _shred(
        self, given: Input, rows: npt.NDArray[np.bool_], wire: Wire, skipped: int, errors: npt.NDArray[Any]
    ) -> list[pa.Array]:
        """Decode some rows, and leave the others null. Reasons go to `errors`."""
        filled = self._tree.room_for(len(rows), given.size if rows.any() else 0)._replace(names=wire.symbols)
        stack = np.empty((wire.depth, kernel.FRAME_SIZE), np.int64)
        outcomes = np.full(len(rows), kernel.FITS, np.uint8)
        wanted = rows.astype(np.uint8)
        kernels(given.size).shred_avro(given.data, given.ends, wanted, skipped, wire.table, filled, stack, outcomes)
        for row in np.flatnonzero(outcomes != kernel.FITS).tolist():
            errors[row] = _REASONS[int(outcomes[row])]
        columns = self._tree.columns(filled, given.data)
        for field in wire.defaults:
            position = self.schema.get_field_index(field.name)
            columns[position] = _with_default(field, self.schema.field(position).type, rows, outcomes)
        return columns


class AvroFormat(ValueFormat):
    """Avro, with one schema or the folder with those of a registry."""

    takes = ("schema", "schema_folder")

    def decoder(
        self, *, schema: str | None = None, schema_folder: str | None = None, message: str | None = None
    ) -> AvroDecoder:
        """Return the decoder for a schema, a folder of schemas, or both. Raises `InvalidInput`."""
        return AvroDecoder(schema, schema_folder)

    def infer(self, values: pa.Array) -> None:
        """Return None: values do not have their schema."""
        return


FORMAT: Final = AvroFormat()


class _AvroTree(ColumnTree):
    binary = tree.STRING
    bytes_per_element = 1

    def __init__(self, schema: pa.Schema) -> None:
        self.symbols: dict[int, int] = {}  # the longest symbol of columns of enums
        super().__init__(schema)

    def _node(self, kind: pa.DataType, name: str, is_repeated: bool) -> Node:
        node = super()._node(kind, name, is_repeated)
        return node._replace(kind=tree.STRING) if node.kind == tree.DECIMAL else node

    def text_size(self, node: int, values: int, size: int) -> int:
        if pa.types.is_decimal(self.nodes[node].type):
            return 16 * values
        return size + 4 + self.symbols.get(node, 0) * values

    def numbers(self, node: Node, valid: Bytes, slots: Longs, data: Bytes) -> Any:
        numbers: npt.NDArray[Any]
        if node.kind == tree.FLOAT:
            numbers = slots.astype(np.uint32).view(np.float32).copy()
        else:
            numbers = slots.view(np.float64).copy()
            widened = valid == kernel.FLOAT_BITS
            numbers[widened] = slots[widened].astype(np.uint32).view(np.float32)
        integers = valid == kernel.INTEGER_VALUE
        numbers[integers] = slots[integers]
        return numbers


def _ids(given: Input, wanted: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the ids of schemas that values begin with; -1 where there is none."""
    starts = given.ends[:-1].astype(np.int64)
    has_prefix = wanted & (np.diff(given.ends) >= _PREFIX)
    has_prefix[has_prefix] = given.data[starts[has_prefix]] == 0
    ids = np.full(len(wanted), -1, np.int64)
    first = starts[has_prefix]
    ids[has_prefix] = sum(given.data[first + 1 + byte].astype(np.int64) << (24 - 8 * byte) for byte in range(4))
    return ids


def _with_default(field: Field, kind: pa.DataType, rows: npt.NDArray[np.bool_], outcomes: Bytes) -> pa.Array:
    """Return a column that has the default of its field in all rows that fit."""
    try:
        choices = pa.array([value_of_default(field.default, field.type), None], kind)
    except (pa.ArrowException, LookupError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"the Avro schema has a default that is no {kind}: {error}") from None
    fits = pa.array(rows & (outcomes == kernel.FITS))
    return choices.take(pa.compute.if_else(fits, 0, 1))


def _schemas_in(folder: Path) -> dict[int, str]:
    """Return the schemas in a folder by their ids, which are the names of the files."""
    try:
        files = sorted(folder.glob("*.avsc"))
        schemas = {int(file.stem): file.read_text("utf-8-sig") for file in files if file.stem.isdecimal()}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the schemas in {folder} cannot be read: {error}") from None
    if not schemas:
        raise InvalidInput(f"there are no schemas in {folder}: no file such as 17.avsc, with an id as its name")
    return schemas
