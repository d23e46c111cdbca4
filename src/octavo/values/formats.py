"""Which formats there are, and how a decoder of each is made.

Octavo's own formats are found in the same way as those of plug-ins, see `octavo.values.value_format`. Only their names
are taken: a plug-in cannot replace them.
"""

from __future__ import annotations

import base64
import json
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from octavo.errors import InvalidInput
from octavo.values.decoder import ValueDecoder
from octavo.values.value_format import PARAMETERS, ValueFormat

if TYPE_CHECKING:
    import pyarrow as pa

GROUP: Final = "octavo.values"  # the entry point group of plug-ins
_OWN: Final = {
    name: EntryPoint(name, f"octavo.values.{where}:FORMAT", GROUP)
    for name, where in {
        "json": "json.decoder",
        "avro": "avro.decoder",
        "protobuf": "protobuf",
        "string": "text",
    }.items()
}
FORMATS: Final = tuple(_OWN)  # the formats that Octavo itself has


def value_formats() -> list[str]:
    """Return the names of all formats: Octavo's own, then those of plug-ins."""
    return [*FORMATS, *sorted({point.name for point in entry_points(group=GROUP)} - _OWN.keys())]


def value_decoder(
    format: str,  # noqa: A002 - the name that options and commands have, too
    *,
    schema: str | None = None,
    schema_folder: str | None = None,
    message: str | None = None,
) -> ValueDecoder:
    """Return the decoder of a format.

    schema: json: fields as Spark's DDL (`id BIGINT, tags ARRAY<STRING>`) or Spark's StructType in JSON; avro: the
        schema in JSON, to which values of other schemas are converted; protobuf: a descriptor set (`protoc
        --include_imports --descriptor_set_out`) in base64; string: none
    schema_folder: avro: values begin with a zero byte and the id of their schema, which is the file `<id>.avsc` in
        this folder
    message: protobuf: the full name of the message
    Raises `InvalidInput` if something is missing, superfluous or not well-formed.
    """
    told = {"schema": schema, "schema_folder": schema_folder, "message": message}
    return _made(format, {name: value for name, value in told.items() if value is not None})


def infer_decoder(format: str, values: pa.Array) -> ValueDecoder:  # noqa: A002 - as above
    """Return a decoder with a schema that fits `values`, a sample of the column. Raises `InvalidInput`.

    Of Octavo's own formats only JSON says enough about itself.
    """
    decoder = find_format(format).infer(values)
    if decoder is None:
        raise InvalidInput(f"a schema cannot be inferred from {format} values: give one")
    return decoder


def schema_text(path: Path, format: str) -> str:  # noqa: A002 - as above
    """Return the schema in a file as text for `value_decoder`: as it is, or in base64. Raises `InvalidInput`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"the schema {path} cannot be read: {error.strerror}") from None
    if find_format(format).has_binary_schema:
        return base64.b64encode(content).decode()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"the schema {path} is no text") from None


def decoder_from_text(text: str) -> ValueDecoder:
    """Return the decoder that `ValueDecoder.to_text` has described. Raises `InvalidInput`."""
    try:
        described = json.loads(text)
    except ValueError:
        described = None
    if not isinstance(described, dict) or not all(isinstance(value, str) for value in described.values()):
        raise InvalidInput(f"this does not describe a decoder of values: {text[:100]!r}")
    return _made(described.pop("format", ""), described)


def find_format(name: str) -> ValueFormat:
    """Return a format by its name. Raises `InvalidInput` if there is none, or its plug-in does not work."""
    found = [_OWN[name]] if name in _OWN else list(entry_points(group=GROUP, name=name))
    if not found:
        raise InvalidInput(f"there is no format {name!r} of values: there are {', '.join(value_formats())}")
    if len({point.value for point in found}) > 1:
        raise InvalidInput(f"several packages have a format {name!r}: {' and '.join(map(_package, found))}")
    try:
        format_: Any = found[0].load()
    except Exception as error:  # whatever a plug-in raises while it is imported
        raise InvalidInput(f"the format {name!r} of {_package(found[0])} cannot be loaded: {error}") from error
    if not isinstance(format_, ValueFormat):
        raise InvalidInput(f"{found[0].value} of {_package(found[0])} is no octavo.values.ValueFormat")
    return format_


def _made(name: str, given: dict[str, str]) -> ValueDecoder:
    format_ = find_format(name)
    format_.check(name, given)
    told = {each: given[each] for each in PARAMETERS if each in given}
    if name in _OWN:
        return format_.decoder(**told)
    try:
        decoder: Any = format_.decoder(**told)
    except InvalidInput:
        raise
    except Exception as error:  # whatever a plug-in raises
        raise InvalidInput(f"the plug-in for the format {name!r} makes no decoder: {error!r}") from error
    if not isinstance(decoder, ValueDecoder):
        raise InvalidInput(f"what the plug-in for the format {name!r} makes is no octavo.values.ValueDecoder")
    return decoder


def _package(point: EntryPoint) -> str:
    return "octavo" if point.dist is None else str(point.dist.name)
