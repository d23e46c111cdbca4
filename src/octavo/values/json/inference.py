"""Infer a schema from some JSON values, as Spark does with its defaults.

Fields are sorted by name. Numbers are BIGINT or DOUBLE, or DECIMAL if they are whole and too large; values that do not
go together are STRING, and so is a field that is always null. Values that are no JSON objects are left out, and so are
fields whose names no column can have.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.values.ddl import MAX_DEPTH, list_of
from octavo.values.json.rows import decoded_text
from octavo.values.json.tokens import Token, TokenReader

_LONG: Final = pa.int64()
_DOUBLE: Final = pa.float64()
_SIMPLE: Final = {Token.TRUE: pa.bool_(), Token.FALSE: pa.bool_(), Token.FLOAT: _DOUBLE, Token.NULL: None}

# A type while it is inferred: None for null, a dict for a struct, a list with one item for an array, or a scalar type.
_Inferred = Any


def infer_schema(values: pa.Array) -> pa.Schema:
    """Return a schema for values. Raises `InvalidInput` if none of them has any fields."""
    fields: dict[str, _Inferred] = {}
    for value in values.drop_null().to_pylist():
        reader = TokenReader(decoded_text(value))
        try:
            found = _infer(reader, 0) if reader.next() is Token.START_OBJECT else None
        except InvalidInput:
            continue
        if isinstance(found, dict):
            fields = _merged(fields, found)
    kind = _column(fields)
    if kind is None:
        raise InvalidInput(f"no schema can be inferred: none of {len(values)} values is a JSON object with fields")
    return pa.schema(list(kind))


def _infer(reader: TokenReader, depth: int) -> _Inferred:
    """Infer the type of the value at the current token, and go to its end."""
    token = reader.token
    if token is Token.NAME:
        token = reader.next()
    if depth == MAX_DEPTH and token in (Token.START_OBJECT, Token.START_ARRAY):
        reader.skip_children()
        return pa.string()
    match token:
        case Token.START_OBJECT:
            fields: dict[str, _Inferred] = {}
            while reader.next() is not Token.END_OBJECT:
                name = reader.name or ""
                found = _infer(reader, depth + 1)
                fields[name] = _merged(fields[name], found) if name in fields else found
            return fields
        case Token.START_ARRAY:
            items: _Inferred = None
            while reader.next() is not Token.END_ARRAY:
                items = _merged(items, _infer(reader, depth + 1))
            return [items]
        case Token.STRING:
            return pa.string() if reader.text() else None
        case Token.INT:
            return _integer(int(reader.text()))
        case None:
            raise InvalidInput("the value ends too early")
        case _:
            return _SIMPLE[token]


def _integer(number: int) -> pa.DataType:
    if -(1 << 63) <= number < 1 << 63:
        return _LONG
    digits = len(str(abs(number)))
    return pa.decimal128(digits, 0) if digits <= 38 else _DOUBLE


def _merged(one: _Inferred, other: _Inferred) -> _Inferred:
    """Return the type of values of which some have one type and some the other."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict) and isinstance(other, dict):
        return {name: _merged(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list) and isinstance(other, list):
        return [_merged(one[0], other[0])]
    if isinstance(one, dict | list) or isinstance(other, dict | list):
        return pa.string()
    if one == other:
        return one
    kinds = (one, other)
    if not all(kind in (_LONG, _DOUBLE) or pa.types.is_decimal(kind) for kind in kinds):
        return pa.string()
    if _DOUBLE in kinds:
        return _DOUBLE
    return pa.decimal128(max(20 if kind == _LONG else kind.precision for kind in kinds), 0)


def _column(kind: _Inferred) -> pa.DataType | None:
    """Return the type of a column; None for an object without fields, which cannot be one."""
    if kind is None:
        return pa.string()
    if isinstance(kind, list):
        items = _column(kind[0])
        return None if items is None else list_of(items)
    if not isinstance(kind, dict):
        return kind
    fields = [(name, _column(kind[name])) for name in sorted(kind) if _can_be_column(name)]
    kept = [pa.field(name, column) for name, column in fields if column is not None]
    return pa.struct(kept) if kept else None


def _can_be_column(name: str) -> bool:
    """Whether columns can have a name: not an empty one, and none with half of a surrogate pair, which no text has."""
    return bool(name) and not any("\ud800" <= letter <= "\udfff" for letter in name)
