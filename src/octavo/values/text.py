"""Values that are text: one column of strings."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

import pyarrow as pa

from octavo.values.decoder import Decoded, ValueDecoder
from octavo.values.value_format import ValueFormat

_COLUMN: Final = "text"


class StringDecoder(ValueDecoder):
    """Decodes UTF-8. A value that is something else is null, with an error."""

    format: ClassVar[str] = "string"

    def __init__(self) -> None:
        self.schema = pa.schema([(_COLUMN, pa.string())])

    def decode(self, values: pa.Array) -> Decoded:
        """Decode a column of values: one that is not UTF-8 has an error that says where."""
        errors = pa.nulls(len(values), pa.string())
        try:
            texts = values.cast(pa.string())
        except pa.ArrowInvalid:
            texts, errors = _one_by_one(values)
        return Decoded(pa.RecordBatch.from_arrays([texts], schema=self.schema), errors)

    def to_text(self) -> str:
        """Return the decoder as text."""
        return json.dumps({"format": self.format})


class StringFormat(ValueFormat):
    """Text in UTF-8."""

    def decoder(
        self, *, schema: str | None = None, schema_folder: str | None = None, message: str | None = None
    ) -> StringDecoder:
        """Return the decoder."""
        return StringDecoder()


FORMAT: Final = StringFormat()


def _one_by_one(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Decode a column in which some values are not UTF-8."""
    texts: list[Any] = []
    errors: list[str | None] = []
    for value in values.to_pylist():
        try:
            texts.append(None if value is None else value.decode())
            errors.append(None)
        except UnicodeDecodeError as error:
            texts.append(None)
            errors.append(f"the value is not UTF-8: {error.reason} at byte {error.start}")
    return pa.array(texts, pa.string()), pa.array(errors, pa.string())
