"""The options that say of which format keys and values are, for the commands that decode them."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.errors import InvalidInput, NoSuchFile

if TYPE_CHECKING:
    from octavo.inspect.decoding.record_decoding import RecordDecoding

_WITH_SCHEMAS: Final = ("json", "avro", "protobuf")
_SCHEMA_TEXT: Final = re.compile(
    r'[{"\[;\s]|^(true|false|null)?$'
)  # what a schema of these has, and hardly a file name
_FORMATS: Final = "json, avro, protobuf, string or the format of a plug-in"
_OPTIONS: Final = ("value_format", "schema", "schema_folder", "message")
_KEY_OPTIONS: Final = ("key_format", "key_schema", "key_schema_folder", "key_message")


def add_decoding_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `octavo dump`."""
    group = parser.add_argument_group(
        "decoding", "keys and values are decoded, besides their bytes;\nwithout --value-format those of internal topics"
    )
    group.add_argument("--value-format", metavar="NAME", help=f"what values are: {_FORMATS}")
    group.add_argument("--schema", metavar="TEXT", help="their schema, or the file with it; JSON needs none")
    group.add_argument("--schema-folder", metavar="DIR", help="Avro: schemas by their ids, as a registry has them")
    group.add_argument("--message", metavar="NAME", help="Protobuf: the full name of the message")
    group.add_argument("--key-format", metavar="NAME", help="what keys are")
    group.add_argument("--key-schema", metavar="TEXT", help="the same for keys")
    group.add_argument("--key-schema-folder", metavar="DIR", help="the same for keys")
    group.add_argument("--key-message", metavar="NAME", help="the same for keys")
    group.add_argument("--no-decode", action="store_true", help="do not decode the records of internal topics")


def given_decoding_options(arguments: argparse.Namespace) -> dict[str, bool]:
    """Return all options of `add_decoding_options`, and whether each was given."""
    names = (*_OPTIONS, *_KEY_OPTIONS)
    given = {f"--{name.replace('_', '-')}": getattr(arguments, name) is not None for name in names}
    return {**given, "--no-decode": arguments.no_decode}


def chosen_decoding(arguments: argparse.Namespace) -> RecordDecoding | None:
    """Return how records are decoded, if the options say so. Raises `InvalidInput`."""
    if not any(name != "--no-decode" and is_given for name, is_given in given_decoding_options(arguments).items()):
        return None
    from octavo.inspect.decoding.record_decoding import RecordDecoding
    from octavo.inspect.decoding.value_formats import Decode, format_decoder

    def decoder(names: tuple[str, ...]) -> Decode | None:
        format_, schema, folder, message = (getattr(arguments, name) for name in names)
        if format_ is None:
            superfluous = [name for name in names if getattr(arguments, name) is not None]
            if superfluous:
                option, needed = (f"--{name.replace('_', '-')}" for name in (superfluous[0], names[0]))
                raise InvalidInput(f"{option} says how a format is decoded: give {needed} as well")
            return None
        if format_ == "avro" and schema is None and folder is None:
            needed = " or ".join(f"--{name.replace('_', '-')}" for name in names[1:3])
            raise InvalidInput(f"--{names[0].replace('_', '-')} avro needs {needed}")
        return format_decoder(format_, schema=given_schema(schema, format_), schema_folder=folder, message=message)

    return RecordDecoding(decoder(_KEY_OPTIONS), decoder(_OPTIONS))


def given_schema(given: str | None, value_format: str) -> str | None:
    """Return a schema that was given as text, or as the name of the file with it. Raises `InvalidInput`."""
    if given is None:
        return None
    if not os.path.isfile(given):  # noqa: PTH113 - a text that is too long for a name is no file
        if value_format in _WITH_SCHEMAS and not _SCHEMA_TEXT.search(given):
            raise NoSuchFile(given, "there is no such file, and it is no schema either")
        return given
    from octavo.values import schema_text

    return schema_text(Path(given), value_format)
