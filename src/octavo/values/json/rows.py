"""Convert JSON value by value, as Spark's `JacksonParser` does with partial results, which is its default.

A field that does not fit is null, and the others are kept. Which others depends on where the parser is after the error,
so this has the same control flow as Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final, NamedTuple

import pyarrow as pa

from octavo.errors import InvalidInput
from octavo.values.json.times import US_PER_SECOND, read_date, read_local_timestamp, read_timestamp
from octavo.values.json.tokens import Token, TokenReader, as_float, is_finite

_Convert = Callable[[TokenReader], Any]
_INTEGERS: Final = {
    pa.int8(): (-128, 255),  # as Jackson has it; above 127 the number is negative
    pa.int16(): (-(1 << 15), (1 << 15) - 1),
    pa.int32(): (-(1 << 31), (1 << 31) - 1),
    pa.int64(): (-(1 << 63), (1 << 63) - 1),
}
_NOT_FINITE: Final = frozenset({"NaN", "+INF", "+Infinity", "Infinity", "-INF", "-Infinity"})
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")
_WIDE: Final = Context(prec=1200)  # more digits than a number may have
_ENCODED_SURROGATE: Final = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]")  # one malformed character to Java, not three
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')


class _Unfit(Exception):
    """A value does not fit its type."""


class _Partial(Exception):
    """Parts of a value do not fit; `result` has the others."""

    def __init__(self, result: Any, cause: Exception) -> None:
        super().__init__(cause)
        self.result = result
        self.cause = cause


class Row(NamedTuple):
    """What became of one value."""

    fields: dict[str, Any]  # those that are missing are null
    error: str | None


class RowReader:
    """Converts values to rows of a schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self._convert: Final = _object_converter({field.name: converter(field.type) for field in schema})

    def read(self, value: bytes) -> Row:
        """Convert one value. It may be anything."""
        reader = TokenReader(decoded_text(value))
        try:
            match reader.next():
                case None:
                    return Row({}, "the value is empty")
                case Token.START_OBJECT:
                    return Row(self._convert(reader), None)
                case token:
                    return Row({}, f"the value is no JSON object: it begins with {token.value}")
        except _Partial as partial:
            return Row(partial.result, _without_surrogates(str(partial.cause)))
        except InvalidInput as error:
            return Row({}, _without_surrogates(str(error)))


def decoded_text(value: bytes) -> str:
    """Decode UTF-8. Bytes that are none become the same replacement characters as in Java."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", value).decode("utf-8", "replace")


def converter(kind: pa.DataType) -> _Convert:
    """Return the function that converts the current token, or the object or array that it opens, to a type."""
    scalar = _scalar_converter(kind)
    if scalar is not None:
        return _of_token(scalar, kind)
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return _opened_by(
            Token.START_OBJECT, _object_converter({field.name: converter(field.type) for field in fields}), kind
        )
    if pa.types.is_map(kind):
        return _opened_by(Token.START_OBJECT, _map_converter(converter(kind.item_type)), kind)
    return _opened_by(Token.START_ARRAY, _array_converter(converter(kind.value_type)), kind)


def _of_token(convert: Callable[[TokenReader, Token], Any], kind: pa.DataType) -> _Convert:
    """Wrap a function for one token: null is null for all types, and None means that the token does not fit."""

    def converted(reader: TokenReader) -> Any:
        token = _value_token(reader)
        if token is None:
            return None
        result = convert(reader, token)
        if result is None:
            raise _unfit(reader, token, kind)
        return result

    return converted


def _opened_by(start: Token, convert: _Convert, kind: pa.DataType) -> _Convert:
    def converted(reader: TokenReader) -> Any:
        token = _value_token(reader)
        if token is None:
            return None
        if token is not start:
            raise _unfit(reader, token, kind)
        return convert(reader)

    return converted


def _value_token(reader: TokenReader) -> Token | None:
    if reader.token is Token.NAME:
        reader.next()
    return None if reader.token is Token.NULL else reader.token


def _unfit(reader: TokenReader, token: Token, kind: pa.DataType) -> _Unfit:
    text = reader.text()
    shown = f"{text[:40]!r}" if token is Token.STRING else text[:40]
    return _Unfit(f"{_place(reader)} cannot be {shown}: its type is {kind}")


def _place(reader: TokenReader) -> str:
    return "an element" if reader.name is None else f"the field {reader.name}"


# ------------------------------------------------------------------------------------------------- objects and arrays


def _object_converter(converters: dict[str, _Convert]) -> _Convert:
    def convert(reader: TokenReader) -> dict[str, Any]:
        row: dict[str, Any] = {}
        bad: Exception | None = None
        while reader.next() not in (None, Token.END_OBJECT):
            name = reader.name
            convert_field = None if name is None else converters.get(name)
            if convert_field is None or name is None:
                reader.skip_children()
                continue
            try:
                row[name] = convert_field(reader)
            except _Partial as partial:
                bad = bad or partial.cause
                row[name] = partial.result
            except (_Unfit, InvalidInput) as error:
                bad = bad or error
                reader.skip_children()
        if bad is not None:
            raise _Partial(row, bad)
        return row

    return convert


def _map_converter(convert_value: _Convert) -> _Convert:
    def convert(reader: TokenReader) -> list[tuple[str, Any]]:
        entries: list[tuple[str, Any]] = []
        bad: Exception | None = None
        lost: Exception | None = None
        while reader.next() not in (None, Token.END_OBJECT):
            name = _without_surrogates(reader.name or "")
            try:
                entries.append((name, convert_value(reader)))
            except _Partial as partial:
                bad = bad or partial.cause
                entries.append((name, partial.result))
            except (_Unfit, InvalidInput) as error:
                lost = lost or error
                reader.skip_children()
        if lost is not None:  # Spark has a key without a value then, and gives up the whole map
            raise _Unfit(str(bad or lost))
        if bad is not None:
            raise _Partial(entries, bad)
        return entries

    return convert


def _array_converter(convert_element: _Convert) -> _Convert:
    def convert(reader: TokenReader) -> list[Any]:
        elements: list[Any] = []
        bad: Exception | None = None
        while reader.next() not in (None, Token.END_ARRAY):
            try:
                elements.append(convert_element(reader))
            except _Partial as partial:
                bad = bad or partial.cause
                elements.append(partial.result)
        if bad is not None:
            raise _Partial(elements, bad)
        return elements

    return convert


# ------------------------------------------------------------------------------------------------------------ scalars


def _scalar_converter(kind: pa.DataType) -> Callable[[TokenReader, Token], Any] | None:
    if pa.types.is_integer(kind):
        return _integer_converter(kind)
    if pa.types.is_decimal(kind):
        return lambda reader, token: _decimal(reader, token, kind)
    if pa.types.is_floating(kind):
        return _float32 if pa.types.is_float32(kind) else _float64
    if pa.types.is_boolean(kind):
        return lambda _, token: {Token.TRUE: True, Token.FALSE: False}.get(token)
    if pa.types.is_string(kind):
        return _text
    if pa.types.is_binary(kind):
        return lambda reader, token: reader.binary() if token is Token.STRING else None
    if pa.types.is_date(kind):
        return lambda reader, token: _if_text(reader, token, read_date)
    if pa.types.is_timestamp(kind):
        return _timestamp if kind.tz else lambda reader, token: _if_text(reader, token, read_local_timestamp)
    return None


def _if_text(reader: TokenReader, token: Token, read: Callable[[str], int | None]) -> int | None:
    return read(reader.text()) if token is Token.STRING and reader.text() else None


def _integer_converter(kind: pa.DataType) -> Callable[[TokenReader, Token], int | None]:
    smallest, largest = _INTEGERS[kind]

    def convert(reader: TokenReader, token: Token) -> int | None:
        number = _int(reader, token)
        if number is None or not smallest <= number <= largest:
            return None
        return number - 256 if largest == 255 and number > 127 else number

    return convert


def _int(reader: TokenReader, token: Token) -> int | None:
    return int(reader.text()) if token is Token.INT else None


def _timestamp(reader: TokenReader, token: Token) -> int | None:
    seconds = _int(reader, token)
    if seconds is None:
        return _if_text(reader, token, read_timestamp)
    if not -(1 << 63) <= seconds < 1 << 63:
        return None
    us = seconds * US_PER_SECOND
    return ((us + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)  # Spark lets it wrap around


def _float64(reader: TokenReader, token: Token) -> float | None:
    if token in (Token.INT, Token.FLOAT) or (token is Token.STRING and reader.text() in _NOT_FINITE):
        number = as_float(reader.text())
        return 0.0 if token is Token.INT and not number else number  # the integer -0 has no sign
    return None


def _float32(reader: TokenReader, token: Token) -> float | None:
    number = _float64(reader, token)
    if number is None or not is_finite(reader.text()):
        return number
    exact: float = pa.scalar(reader.text()).cast(pa.float32()).as_py()  # rounded once, not twice
    return exact or number


def _decimal(reader: TokenReader, token: Token, kind: pa.DataType) -> Decimal | None:
    if token not in (Token.INT, Token.FLOAT, Token.STRING) or not _DECIMAL.fullmatch(reader.text()):
        return None
    number = Decimal(reader.text())
    if number and number.adjusted() >= kind.precision - kind.scale + 1:
        return None
    if number.adjusted() < -kind.scale - 1:
        return Decimal(0).scaleb(-kind.scale)
    number = number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _WIDE)
    return number if number.adjusted() < kind.precision - kind.scale or not number else None


def _text(reader: TokenReader, token: Token) -> str | None:
    """Return a string, or the JSON of another value, written as Jackson writes it."""
    text = reader.text() if token is Token.STRING else _written(reader, token)
    return _without_surrogates(text)


def _without_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs by question marks, as Java does."""
    return text.encode("utf-8", "replace").decode()


def _written(reader: TokenReader, token: Token) -> str:
    parts: list[str] = []
    depth = 0
    separate = False
    while True:
        if separate and token not in (Token.END_OBJECT, Token.END_ARRAY):
            parts.append(",")
        match token:
            case Token.START_OBJECT | Token.START_ARRAY:
                depth += 1
                parts.append(token.value)
            case Token.END_OBJECT | Token.END_ARRAY:
                depth -= 1
                if depth < 0:
                    raise _Unfit(f"{_place(reader)} cannot be {token.value}: its type is string")
                parts.append(token.value)
            case Token.NAME:
                parts.append(f"{_quoted(reader.name or '')}:")
            case Token.STRING:
                parts.append(_quoted(reader.text()))
            case Token.INT:
                parts.append(str(int(reader.text())))
            case Token.FLOAT:
                parts.append(_java_double(reader.text()))
            case _:
                parts.append(token.value)
        if depth == 0:
            return "".join(parts)
        separate = token not in (Token.START_OBJECT, Token.START_ARRAY, Token.NAME)
        following = reader.next()
        if following is None:
            return "".join(parts)
        token = following


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return _ESCAPES.get(found[0]) or "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _java_double(text: str) -> str:
    """Write a double as Java does."""
    number = as_float(text)
    if number != number or number in (float("inf"), float("-inf")):
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[str(number)]
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        fixed = f"{Decimal(repr(number)):f}"
        return fixed if "." in fixed else f"{fixed}.0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)  # it is finite
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{rest}E{exponent + len(digits) - 1}"
