"""Records and their headers as Python objects. Code that handles whole segments uses Arrow columns instead."""

from __future__ import annotations

from typing import NamedTuple

from octavo.records.layout import NO_OFFSET, NO_SEQUENCE, NO_TIMESTAMP


class Header(NamedTuple):
    """One header of a record. Keys may repeat and may be empty; a value of `None` is not the same as `b""`."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One record. `None` is not the same as `b""`: a record whose value is `None` is a tombstone."""

    offset: int = NO_OFFSET
    timestamp_ms: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    sequence: int = NO_SEQUENCE
