"""Decode Protobuf values.

There is no library that parses Protobuf into columns, so each value becomes an object first. Columns are those of
Spark's `from_protobuf`: fields that are not there are null (also numbers that are zero, in proto3), lists are empty.
Unsigned numbers have a type that is wide enough. A `google.protobuf.Timestamp` is a timestamp.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, Final

import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.values.ddl import list_of
from octavo.values.decoder import Decoded, ValueDecoder
from octavo.values.value_format import ValueFormat

_Convert = Callable[[Any], Any]
_US_PER_SECOND: Final = 1_000_000
_MAX_SECONDS: Final = (1 << 63) // _US_PER_SECOND - 1
_TIMESTAMP: Final = "google.protobuf.Timestamp"


class ProtobufDecoder(ValueDecoder):
    """Decodes messages of one type."""

    format: ClassVar[str] = "protobuf"

    def __init__(self, schema: str, message: str) -> None:
        """schema: a descriptor set in base64. Raises `InvalidInput`."""
        self._text: Final = schema
        self._message: Final = message
        self._class, self._error = _message_class(schema, message)
        self._fields: Final = [_Field(field, ()) for field in self._class.DESCRIPTOR.fields]
        if not self._fields:
            raise InvalidInput(f"the Protobuf message {message} has no fields")
        self.schema = pa.schema([pa.field(field.name, field.column) for field in self._fields])

    def decode(self, values: pa.Array) -> Decoded:
        """Decode a column of values."""
        rows: list[list[Any]] = []
        errors: list[str | None] = []
        nothing = [None] * len(self._fields)
        for value in values.to_pylist():
            row, error = nothing, None
            if value is not None:
                try:
                    message = self._class.FromString(value)
                    row = [field.value_in(message) for field in self._fields]
                except (self._error, OverflowError, UnicodeDecodeError) as reason:
                    error = f"the value is no Protobuf message {self._message}: {reason}"
            rows.append(row)
            errors.append(error)
        columns = [pa.array([row[number] for row in rows], field.column) for number, field in enumerate(self._fields)]
        return Decoded(pa.RecordBatch.from_arrays(columns, schema=self.schema), pa.array(errors, pa.string()))

    def to_text(self) -> str:
        """Return the decoder as text."""
        return json.dumps({"format": self.format, "schema": self._text, "message": self._message})


class ProtobufFormat(ValueFormat):
    """Protobuf, with a descriptor set and the name of a message."""

    needs = ("schema", "message")
    has_binary_schema = True

    def decoder(
        self, *, schema: str | None = None, schema_folder: str | None = None, message: str | None = None
    ) -> ProtobufDecoder:
        """Return the decoder for a message. Raises `InvalidInput`."""
        assert schema is not None
        assert message is not None
        return ProtobufDecoder(schema, message)


FORMAT: Final = ProtobufFormat()


class _Field:
    """A field of a message: its column, and how its value is converted."""

    def __init__(self, field: Any, inside: tuple[str, ...]) -> None:
        self.name: Final[str] = field.name
        self._is_always: Final = field.is_repeated or field.has_default_value
        self._has_presence: Final = field.has_presence
        self._zero: Final = field.default_value
        kind, convert = _converter(field, inside)
        self._convert: _Convert = convert
        if field.is_repeated and not _is_map(field):
            kind = list_of(kind)
            self._convert = lambda values: [convert(value) for value in values]
        self.column: Final[pa.DataType] = kind

    def value_in(self, message: Any) -> Any:
        value = getattr(message, self.name)
        if not self._is_always and (not message.HasField(self.name) if self._has_presence else value == self._zero):
            return None
        return self._convert(value)


def _converter(field: Any, inside: tuple[str, ...]) -> tuple[pa.DataType, _Convert]:
    """Return the type of one value of a field, and a function that converts it."""
    if field.message_type is not None:
        return _map_converter(field, inside) if _is_map(field) else _message_converter(field.message_type, inside)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return pa.string(), lambda number: names.get(number) or str(number)
    match field.cpp_type:
        case field.CPPTYPE_INT32:
            return pa.int32(), int
        case field.CPPTYPE_UINT32 | field.CPPTYPE_INT64:
            return pa.int64(), int
        case field.CPPTYPE_UINT64:
            return pa.decimal128(20, 0), Decimal
        case field.CPPTYPE_DOUBLE:
            return pa.float64(), float
        case field.CPPTYPE_FLOAT:
            return pa.float32(), float
        case field.CPPTYPE_BOOL:
            return pa.bool_(), bool
        case _:
            return (pa.binary(), bytes) if field.type == field.TYPE_BYTES else (pa.string(), _text)


def _message_converter(descriptor: Any, inside: tuple[str, ...]) -> tuple[pa.DataType, _Convert]:
    if descriptor.full_name == _TIMESTAMP:
        return pa.timestamp("us", "UTC"), _timestamp_us
    if descriptor.full_name in inside:
        raise InvalidInput(f"the Protobuf message {descriptor.full_name} contains itself, so it cannot be columns")
    fields = [_Field(field, (*inside, descriptor.full_name)) for field in descriptor.fields]
    kind = pa.struct([pa.field(field.name, field.column) for field in fields])
    return kind, lambda message: {field.name: field.value_in(message) for field in fields}


def _map_converter(field: Any, inside: tuple[str, ...]) -> tuple[pa.DataType, _Convert]:
    keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    key_kind, convert_key = _converter(keys, inside)
    kind, convert = _converter(values, inside)
    return pa.map_(key_kind, kind), lambda entries: [(convert_key(key), convert(entries[key])) for key in entries]


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def _text(value: str | bytes) -> str:
    """Return a string. In proto2 the library does not check strings, and gives those that are not UTF-8 as bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _timestamp_us(timestamp: Any) -> int:
    if not -_MAX_SECONDS < timestamp.seconds < _MAX_SECONDS:
        raise OverflowError("a timestamp is out of range")
    us: int = timestamp.seconds * _US_PER_SECOND + timestamp.nanos // 1000
    return us


def _message_class(schema: str, message: str) -> tuple[Any, type[Exception]]:
    """Return the class of a message, and the error that it raises."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        from google.protobuf.message import DecodeError
    except ImportError:
        raise InvalidInput("values of the format protobuf need its library: pip install 'octavo[protobuf]'") from None
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(base64.b64decode(schema, validate=True))
    except (DecodeError, ValueError, binascii.Error):
        raise InvalidInput(
            "the Protobuf schema is no descriptor set: write one by protoc --include_imports --descriptor_set_out"
        ) from None
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files.file:
            pool.Add(file)
        descriptor = pool.FindMessageTypeByName(message)
    except KeyError:
        names = [f"{file.package}.{each.name}".lstrip(".") for file in files.file for each in file.message_type]
        raise InvalidInput(f"the descriptor set has no message {message!r}: it has {', '.join(names[:20])}") from None
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the descriptor set is not whole: {str(error).splitlines()[0]}") from None
    return message_factory.GetMessageClass(descriptor), DecodeError
