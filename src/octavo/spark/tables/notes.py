"""What a table notes about its columns, so that the next export needs not be told again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from octavo.errors import BadTable, InvalidInput
from octavo.spark.tables.columns import TableColumns
from octavo.spark.tables.target import Target

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.values import ValueDecoder

_FORM: Final = "octavo.table"  # the version of these notes
_RAW: Final = "octavo.raw"
_BATCH_INFO: Final = "octavo.batch_info"
_DECODER: Final = "octavo.decoder"
_PREFIX: Final = "octavo.prefix"


class ColumnChoice(NamedTuple):
    """What was asked for. None means: as the table has noted it."""

    raw: bool | None = None
    batch_info: bool | None = None
    decoder: ValueDecoder | None = None
    infer: str | None = None  # the format of values, if there is no decoder and the table has none
    prefix: str | None = None

    def chosen_decoder(self, known: ValueDecoder | None, sample: Callable[[], pa.Array]) -> ValueDecoder | None:
        """Return the decoder that was given, that of the table, or one that fits a sample of values."""
        if self.decoder is not None or known is not None or self.infer is None:
            return self.decoder or known
        from octavo.values import infer_decoder

        return infer_decoder(self.infer, sample())


AS_BEFORE: Final = ColumnChoice()


def to_notes(columns: TableColumns) -> dict[str, str]:
    """Return what a table notes about its columns."""
    notes = {_FORM: "1", _RAW: str(columns.raw).lower(), _BATCH_INFO: str(columns.batch_info).lower()}
    if columns.decoder is not None:
        notes |= {_DECODER: columns.decoder.to_text(), _PREFIX: columns.prefix}
    return notes


def from_notes(notes: dict[str, str]) -> TableColumns:
    """Read what `to_notes` wrote. Raises `BadTable`."""
    if notes.get(_FORM) != "1":
        raise BadTable("", "the table was not created by an export, or by that of a later Octavo")
    text = notes.get(_DECODER)
    decoder = None
    if text is not None:
        from octavo.values import decoder_from_text

        decoder = decoder_from_text(text)
    return TableColumns(
        raw=notes.get(_RAW) == "true",
        batch_info=notes.get(_BATCH_INFO) == "true",
        decoder=decoder,
        prefix=notes.get(_PREFIX, ""),
    )


def agree(target: Target, choice: ColumnChoice, sample: Callable[[], pa.Array]) -> tuple[TableColumns, dict[str, str]]:
    """Return the columns to export, and the notes about them. Adds columns that the table does not have yet.

    A new decoder for the columns that there are is noted, too, so that later exports use it.

    `sample` gives some values, by which a schema can be inferred.

    Raises `InvalidInput` if columns of the table would be missing, or would have another type.
    """
    schema = target.schema()
    if schema is None:
        columns = TableColumns(
            raw=choice.raw is not False,
            batch_info=choice.batch_info is True,
            decoder=choice.chosen_decoder(None, sample),
            prefix=choice.prefix or "",
        )
        _check_raw(columns)
        return columns, to_notes(columns)
    known = from_notes(target.properties())
    columns = TableColumns(
        raw=known.raw if choice.raw is None else choice.raw,
        batch_info=known.batch_info if choice.batch_info is None else choice.batch_info,
        decoder=choice.chosen_decoder(known.decoder, sample),
        prefix=known.prefix if choice.prefix is None else choice.prefix,
    )
    _check_raw(columns)
    for field in known.table:
        if field.name not in columns.table.names:
            raise InvalidInput(f"the table has a column {field.name}, which this export would leave out")
        if columns.table.field(field.name).type != field.type:
            new = columns.table.field(field.name).type
            raise InvalidInput(
                f"the column {field.name} of the table has the type {field.type}, and cannot become {new}"
            )
    notes = to_notes(columns)
    if columns.raw and not known.raw:
        raise InvalidInput("the table was created without raw keys and values, and cannot get them later")
    if notes != to_notes(known):
        notes = {**target.properties(), **notes}
        target.add_columns(columns.table, notes)
    return columns, notes


def _check_raw(columns: TableColumns) -> None:
    if not columns.raw and columns.decoder is None:
        raise InvalidInput("without raw keys and values, and without a format for values, nothing would be exported")
