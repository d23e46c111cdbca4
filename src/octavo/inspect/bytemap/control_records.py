"""Map the key and value of a control record."""

from __future__ import annotations

from octavo.errors import FormatError
from octavo.inspect import descriptions
from octavo.inspect.bytemap.field import Section
from octavo.inspect.control import control_content
from octavo.records.control import END_MARKER, EndTransactionMarker, read_control
from octavo.records.control_key import CONTROL_KEY, ControlType, read_control_type
from octavo.records.record import Record


def map_control_key(section: Section, start: int, length: int, depth: int) -> None:
    """Map the key of a control record, which contains its type. A negative `length` means a null key."""
    key = _bytes_or_none(section, start, length)
    try:
        type_id = read_control_type(key)
    except FormatError as error:
        section.leaf("key", start, start + max(length, 0), descriptions.content(key or b""), depth, error.rule)
        return
    fields = CONTROL_KEY.read(section.view, start)
    section.group("key", start, start + length, ControlType(type_id).name, depth)
    values = {"version": str(fields.version), "type": f"{type_id} ({ControlType(type_id).name})"}
    at = section.layout(CONTROL_KEY, start, start + length, values, depth + 1, {})
    section.leaf("unread", at, start + length, "bytes behind the type: nobody reads them", depth + 1)


def map_control_value(section: Section, key: bytes | None, start: int, length: int, depth: int) -> None:
    """Map the value of a control record, whose type is in `key`. A negative `length` means a null value."""
    value = _bytes_or_none(section, start, length)
    end = start + max(length, 0)
    try:
        control = read_control(Record(key=key, value=value))
    except FormatError as error:
        section.leaf("value", start, end, descriptions.content(value or b""), depth, error.rule)
        return
    said = ", ".join(f"{name} {_plain(said)}" for name, said in control_content(control).items())
    if not isinstance(control, EndTransactionMarker):
        section.leaf("value", start, end, said, depth)
        return
    section.group("value", start, end, said, depth)
    values = {"version": str(control.version), "coordinator_epoch": str(control.coordinator_epoch)}
    at = section.layout(END_MARKER, start, end, values, depth + 1, {})
    section.leaf("unread", at, end, "bytes behind the marker: nobody reads them", depth + 1)


def _plain(said: object) -> str:
    """Format nested lists and dictionaries as text, without JSON's punctuation."""
    if isinstance(said, dict):
        return "(" + ", ".join(f"{name} {_plain(inner)}" for name, inner in said.items()) + ")"
    if isinstance(said, list):
        return " ".join(map(_plain, said)) or "none"
    return str(said)


def _bytes_or_none(section: Section, start: int, length: int) -> bytes | None:
    return bytes(section.view[start : start + length]) if length >= 0 else None
