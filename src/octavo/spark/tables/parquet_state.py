"""What an export notes beside plain Parquet files: `_octavo/table.json` and `_octavo/round.json`.

`table.json` is the table: its columns, our notes, and how far it has come. Its `version` is the number of rounds that
are in it.

`round.json` is there while a round is under way. It begins as a plan, before any task runs. The commit replaces it by a
decision, which lists the files to be removed and those to be published. Whoever finds a decision carries it out, and
whoever finds a plan drops it. If its version is that of the table or a lower one, it was carried out before.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from octavo.errors import BadTable, TableError
from octavo.log.files.small_file import read_small_file
from octavo.log.storage import Storage
from octavo.spark.tables.progress import Progress
from octavo.spark.tables.written import WrittenFile, parse_path

FOLDER: Final = "_octavo"
TABLE: Final = "table.json"
ROUND: Final = "round.json"
STAGING: Final = "staging"

_FORM: Final = 1  # the version of the form of these files
_MAX_SIZE: Final = 1 << 30


@dataclass(frozen=True, kw_only=True)
class TableState:
    """What `table.json` holds."""

    version: int
    schema: pa.Schema
    properties: dict[str, str]
    progress: Progress

    def to_json(self) -> bytes:
        """Return the state as JSON."""
        return _to_json(
            version=self.version,
            columns={each.name: str(each.type) for each in self.schema},  # for people; the next line has all of it
            schema=base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            properties=self.properties,
            progress=self.progress.to_fields(),
        )


@dataclass(frozen=True, kw_only=True)
class Round:
    """What `round.json` holds: a plan, or a decision."""

    version: int  # of the table after this round
    staging: str  # the name of the folder with the files
    is_decided: bool
    before: Progress
    after: Progress
    removed: list[str] = field(default_factory=list)
    added: list[WrittenFile] = field(default_factory=list)

    def to_json(self) -> bytes:
        """Return the round as JSON."""
        return _to_json(
            version=self.version,
            staging=self.staging,
            is_decided=self.is_decided,
            before=self.before.to_fields(),
            after=self.after.to_fields(),
            removed=self.removed,
            added=[each._asdict() for each in self.added],
        )


def read_table(storage: Storage, path: Path) -> TableState | None:
    """Read `table.json`; None if it is missing. Raises `BadTable`."""
    fields = _read(storage, path)
    if fields is None:
        return None
    try:
        properties = fields["properties"]
        if not all(isinstance(each, str) for pair in properties.items() for each in pair):
            raise ValueError("properties are text")
        return TableState(
            version=_count(fields["version"]),
            schema=_schema(base64.b64decode(fields["schema"], validate=True)),
            properties=properties,
            progress=Progress.from_fields(fields["progress"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError, TableError, pa.ArrowException) as error:
        raise BadTable(path, f"this is not what an export notes about a table: {error!r:.200}") from None


def read_round(storage: Storage, path: Path) -> Round | None:
    """Read `round.json`; None if it is missing. Raises `BadTable`."""
    fields = _read(storage, path)
    if fields is None:
        return None
    try:
        removed, staging = fields["removed"], fields["staging"]
        if not all(isinstance(each, str) and parse_path(each) is not None for each in removed):
            raise ValueError("only data files are removed")
        if not isinstance(staging, str) or len(staging) != 32 or not staging.isalnum():
            raise ValueError(f"{staging!r} is not the name of a staging folder")
        return Round(
            version=_count(fields["version"]),
            staging=staging,
            is_decided=fields["is_decided"] is True,
            before=Progress.from_fields(fields["before"]),
            after=Progress.from_fields(fields["after"]),
            removed=removed,
            added=[WrittenFile.from_fields(each) for each in fields["added"]],
        )
    except (AttributeError, KeyError, TypeError, ValueError, TableError) as error:
        raise BadTable(path, f"this is not what an export notes about a round: {error!r:.200}") from None


def _to_json(**fields: Any) -> bytes:
    return json.dumps({"octavo": _FORM, **fields}, indent=1).encode()


def _read(storage: Storage, path: Path) -> dict[str, Any] | None:
    try:
        data = read_small_file(storage, path, _MAX_SIZE)
    except FileNotFoundError:
        return None
    try:
        fields = json.loads(data)
    except ValueError:
        raise BadTable(path, "this should be JSON, and is not") from None
    if not isinstance(fields, dict) or fields.get("octavo") != _FORM:
        raise BadTable(path, "this was not written by an export, or by that of a later Octavo")
    return fields


def _schema(data: bytes) -> pa.Schema:
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except OSError as error:  # pyarrow's, for bytes that are no schema
        raise ValueError(str(error)) from None


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of rounds")
    return value
