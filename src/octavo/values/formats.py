"""Which formats there are, and how a decoder of each is made."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from octavo.errors import InvalidInput
from octavo.values.decoder import ValueDecoder

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS: Final = ("json", "avro", "protobuf", "string")  # the formats of values


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
    described = {"schema": schema, "schema_folder": schema_folder, "message": message}
    return _made({"format": format, **{name: value for name, value in described.items() if value is not None}})


def infer_decoder(format: str, values: pa.Array) -> ValueDecoder:  # noqa: A002 - as above
    """Return a decoder with a schema that fits `values`, a sample of the column. Raises `InvalidInput`.

    Only JSON says enough about itself.
    """
    if format == "json":
        from octavo.values.json.decoder import JsonDecoder
        from octavo.values.json.inference import infer_schema

        return JsonDecoder(infer_schema(values))
    if format == "string":
        return value_decoder(format)
    raise InvalidInput(f"a schema cannot be inferred from {format} values: give one")


def schema_text(path: Path, format: str) -> str:  # noqa: A002 - as above
    """Return the schema in a file as text for `value_decoder`: as it is, or in base64. Raises `InvalidInput`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"the schema {path} cannot be read: {error.strerror}") from None
    if format == "protobuf":
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
    return _made(described)


def _made(described: dict[str, Any]) -> ValueDecoder:
    match described.pop("format", None):
        case "json":
            from octavo.values.json.decoder import json_decoder

            return json_decoder(*_taken(described, "json", "schema"))
        case "avro":
            from octavo.values.avro.decoder import AvroDecoder

            schema, folder = described.pop("schema", None), described.pop("schema_folder", None)
            return AvroDecoder(schema, folder, *_taken(described, "avro"))
        case "protobuf":
            from octavo.values.protobuf import ProtobufDecoder

            return ProtobufDecoder(*_taken(described, "protobuf", "schema", "message"))
        case "string":
            from octavo.values.text import StringDecoder

            return StringDecoder(*_taken(described, "string"))
        case other:
            raise InvalidInput(f"there is no format {other!r} of values: there are {', '.join(FORMATS)}")


def _taken(described: dict[str, Any], name: str, *needed: str) -> list[Any]:
    """Return what a format needs, and refuse everything else."""
    missing = [each for each in needed if each not in described]
    if missing:
        raise InvalidInput(f"values of the format {name} need {' and '.join(missing)}")
    superfluous = [each for each in described if each not in needed]
    if superfluous:
        raise InvalidInput(f"values of the format {name} take no {' and no '.join(superfluous)}")
    return [described[each] for each in needed]
