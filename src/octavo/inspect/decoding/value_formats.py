"""Decode keys or values of one format to JSON.

A format is one of `octavo.values`, also that of a plug-in. JSON without a schema is taken as it is.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.errors import InvalidInput

if TYPE_CHECKING:
    from octavo.values import ValueDecoder


_LINE_BREAKS: Final = re.compile(r"[\r\n]+")

to_json: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Decoded(NamedTuple):
    """The JSON of some keys or values; None where there is none, with a reason unless there were no bytes."""

    texts: list[str | None]
    errors: list[str | None]


Decode = Callable[[Sequence[bytes | None]], Decoded]


def format_decoder(
    format: str,  # noqa: A002 - the name that options and commands have, too
    *,
    schema: str | None = None,
    schema_folder: str | None = None,
    message: str | None = None,
) -> Decode:
    """Return what decodes keys or values of a format. Raises `InvalidInput`, as `value_decoder` does."""
    if format == "json" and schema is schema_folder is message is None:
        return _plain_json
    from octavo.values import value_decoder

    decoder = value_decoder(format, schema=schema, schema_folder=schema_folder, message=message)
    return _Columns(decoder).decode


class _Columns:
    """Decodes with the decoder of columns that exports use."""

    def __init__(self, decoder: ValueDecoder) -> None:
        self._decoder = decoder
        self._is_text = decoder.format == "string"

    def decode(self, contents: Sequence[bytes | None]) -> Decoded:
        import pyarrow as pa

        from octavo.values import FORMATS

        column = pa.array(contents, pa.binary())
        try:
            decoded = self._decoder.decode(column)
            rows, errors = decoded.columns.to_pylist(), decoded.errors.to_pylist()
        except Exception as error:
            if self._decoder.format in FORMATS:
                raise
            raise InvalidInput(f"the plug-in for the format {self._decoder.format!r} fails: {error!r}") from error
        if not len(rows) == len(errors) == len(contents):
            raise InvalidInput(f"the plug-in for the format {self._decoder.format!r} loses values, or adds some")
        texts = [
            None
            if content is None or (error is not None and all(item is None for item in row.values()))
            else self._text(row)
            for content, row, error in zip(contents, rows, errors, strict=True)
        ]
        return Decoded(texts, errors)

    def _text(self, row: dict[str, Any]) -> str:
        return to_json(row["text"] if self._is_text else _plain(row))


def _plain_json(contents: Sequence[bytes | None]) -> Decoded:
    texts: list[str | None] = []
    errors: list[str | None] = []
    for content in contents:
        text, error = None, None
        if content is not None:
            try:
                text = content.decode("utf-8-sig").strip()
                json.loads(text, parse_constant=_refuse)
                text = _LINE_BREAKS.sub(" ", text)  # which are never inside a string
            except (ValueError, RecursionError) as reason:
                text, error = None, f"no JSON: {reason}"
        texts.append(text)
        errors.append(error)
    return Decoded(texts, errors)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def _plain(value: Any) -> Any:
    """Return a value of an Arrow column in the types that JSON has."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | timedelta):
        return str(value)
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value
