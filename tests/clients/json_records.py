"""Records as programs are given them and give them: `to_json`, `consumed_to_json`, `from_json`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from tests.clients.driver import Record


def to_json(record: Record) -> dict[str, Any]:
    """Return a record as programs are given it."""
    return {
        "key": _encode(record.key),
        "value": _encode(record.value),
        "headers": [[name, _encode(value)] for name, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
        "partition": record.partition,
    }


def consumed_to_json(record: Record) -> dict[str, Any]:
    """Return a record that was consumed as programs give it."""
    return to_json(record) | {"offset": record.offset, "timestamp_type": record.timestamp_type}


def from_json(fields: Mapping[str, Any]) -> Record:
    """Return a record that a program consumed."""
    return Record(
        key=_decode(fields["key"]),
        value=_decode(fields["value"]),
        headers=tuple((name, _decode(value)) for name, value in fields["headers"]),
        timestamp_ms=fields["timestamp_ms"],
        partition=fields["partition"],
        offset=fields["offset"],
        timestamp_type=fields["timestamp_type"],
    )


def _encode(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
