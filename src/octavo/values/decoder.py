"""What every decoder of values has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa


class Decoded(NamedTuple):
    """The typed columns of some values."""

    columns: pa.RecordBatch  # with the decoder's schema, and a row for each value
    errors: pa.Array  # strings: why a value does not fit; null where it does, and where it is null itself


class ValueDecoder(ABC):
    """Decodes values of one format. It can be pickled, and stored as text."""

    format: ClassVar[str]
    schema: pa.Schema  # the fields of a value; all of them are nullable

    @abstractmethod
    def decode(self, values: pa.Array) -> Decoded:
        """Decode a column of values (`pa.binary()`).

        A null value has nulls in all columns, and no error. So has a value that cannot be read at all, but with an
        error. If only some of its fields do not fit, the others are kept where the format allows it.
        """

    @abstractmethod
    def to_text(self) -> str:
        """Return a text from which `decoder_from_text` makes the same decoder: a JSON object with `format`."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueDecoder) and self.to_text() == other.to_text()

    def __hash__(self) -> int:
        return hash(self.to_text())

    def __reduce__(self) -> tuple[Any, ...]:
        from octavo.values.formats import decoder_from_text

        return decoder_from_text, (self.to_text(),)


def joined(parts: list[Decoded], schema: pa.Schema) -> Decoded:
    """Put the parts of a column together again."""
    if len(parts) == 1:
        return parts[0]
    table = pa.Table.from_batches([part.columns for part in parts], schema).combine_chunks()
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    errors = pa.concat_arrays([part.errors for part in parts]) if parts else pa.array([], pa.string())
    return Decoded(batches[0], errors)
