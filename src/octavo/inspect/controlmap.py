"""Map the key and value of a control record."""

from __future__ import annotations

from octavo.errors import FormatError
from octavo.inspect import descriptions
from octavo.inspect.control import control_content
from octavo.inspect.field import Section
from octavo.records.control import read_control
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
        content = control_content(read_control(Record(key=key, value=value)))
    except FormatError as error:
        section.leaf("value", start, end, descriptions.content(value or b""), depth, error.rule)
        return
    section.leaf("value", start, end, ", ".join(f"{name} {_plain(said)}" for name, said in content.items()), depth)


def _plain(said: object) -> str:
    """Format nested lists and dictionaries as text, without JSON's punctuation."""
    if isinstance(said, dict):
        return "(" + ", ".join(f"{name} {_plain(inner)}" for name, inner in said.items()) + ")"
    if isinstance(said, list):
        return " ".join(map(_plain, said)) or "none"
    return str(said)


def _bytes_or_none(section: Section, start: int, length: int) -> bytes | None:
    return bytes(section.view[start : start + length]) if length >= 0 else None
