"""Read and write the key of a control record, which gives its type.

key => version:int16 type:int16
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from octavo.errors import BadLength, BadRecord
from octavo.records.layout import Buffer, Int16, Layout


class ControlType(IntEnum):
    """The type of a control record. The numbers are those on disk; readers skip numbers that have no name here."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6

    @classmethod
    def _missing_(cls, value: object) -> ControlType:
        return cls.UNKNOWN


class ControlKey(NamedTuple):
    """The key of a control record; versions above 0 are read as version 0."""

    version: Int16
    type: Int16


CONTROL_KEY: Final = Layout(ControlKey)
assert CONTROL_KEY.size == 4


def read_control_type(key: Buffer | None, *, position: int = 0) -> int:
    """Return the number of a control record's type, from its key; see `ControlType`.

    Raises `BadLength` for a key shorter than 4 bytes and `BadRecord` for a negative version; both name `position`.
    """
    if key is None or len(key) < CONTROL_KEY.size:
        found = "none" if key is None else f"{len(key)} bytes"
        raise BadLength(position, f"a control record's key takes {CONTROL_KEY.size} bytes, there are {found}")
    version, type_id = CONTROL_KEY.read(key)
    if version < 0:
        raise BadRecord(position, f"a control record's key has version {version}")
    return type_id


def write_control_key(type_id: int) -> bytes:
    """Return the key of a control record of type `type_id`."""
    return CONTROL_KEY.write(ControlKey(0, type_id))
