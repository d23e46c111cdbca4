"""Turn columns of raw values into typed Arrow columns.

    value_decoder       the decoder of a format, by its schema
    infer_decoder       the decoder of a format that needs no schema, by some values
    decoder_from_text   a decoder that was stored as text
    schema_text         a schema in a file, as text for `value_decoder`
    ValueDecoder        its schema, and `decode`
    FORMATS             the formats that Octavo has: json, avro, protobuf, string
    value_formats       the names of all formats, also of those that other packages add
    ValueFormat         what such a package provides, see `octavo.values.value_format`

Values are parsed in columns. One that does not fit the schema spoils no other: it has a reason in `Decoded.errors`.
Importing the package imports neither pyarrow nor any library of a format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.on_demand import on_demand

if TYPE_CHECKING:
    from octavo.values.decoder import Decoded, ValueDecoder
    from octavo.values.formats import (
        FORMATS,
        decoder_from_text,
        infer_decoder,
        schema_text,
        value_decoder,
        value_formats,
    )
    from octavo.values.value_format import ValueFormat

__all__ = [
    "value_decoder",
    "infer_decoder",
    "decoder_from_text",
    "schema_text",
    "ValueDecoder",
    "Decoded",
    "FORMATS",
    "value_formats",
    "ValueFormat",
]

__getattr__, __dir__ = on_demand(
    globals(),
    {
        "decoder": ("Decoded", "ValueDecoder"),
        "formats": (
            "FORMATS",
            "decoder_from_text",
            "infer_decoder",
            "schema_text",
            "value_decoder",
            "value_formats",
        ),
        "value_format": ("ValueFormat",),
    },
)
