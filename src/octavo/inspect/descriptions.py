"""Describe the fields of a batch for people: flags, timestamps, lengths, checksums."""

from __future__ import annotations

import codecs
from datetime import datetime, timedelta
from typing import Final

from octavo.records.kernels.machine import wrap64
from octavo.records.layout import (
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    Attributes,
    BatchHeader,
    Buffer,
    Codec,
    MessageV0,
    MessageV1,
    TimestampType,
)

TIMESTAMP_TYPES: Final = {  # as Kafka prints them
    TimestampType.NONE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}

_EPOCH: Final = datetime(1970, 1, 1)
_TO_MILLISECONDS: Final = len("1970-01-01 00:00:00.000")
_UTF_8: Final = codecs.getincrementaldecoder("utf-8")
_LONGEST_TEXT: Final = 60  # the most characters of a key or value that are shown
_LONGEST_NAME: Final = 200  # the same for the name of a header


def time_of(timestamp_ms: int) -> str:
    """Format a timestamp as date and time in UTC, with milliseconds if they are not zero."""
    if timestamp_ms == NO_TIMESTAMP:
        return "none"
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return "out of the calendar"
    return str(time)[:_TO_MILLISECONDS]


def timestamp(timestamp_ms: int, what: str = "") -> str:
    """Format a timestamp as the stored number, followed by date and time; `what` is put before these."""
    return f"{timestamp_ms} ({what}{time_of(timestamp_ms)})"


def number_or_none(number: int) -> str:
    """Format the number of a field in which -1 means that there is no value."""
    return "-1 (none)" if number == -1 else str(number)


def length_or_null(length: int) -> str:
    """Format the length of a key or value. Every negative length means null."""
    return f"{length} (null)" if length < 0 else str(length)


def codec_name(attributes: int) -> str:
    """Return the name of the codec in the attributes. If there is no such codec, the text says so with its number."""
    number = attributes & int(Attributes.CODEC)
    return Codec(number).name.lower() if number < len(Codec) else f"codec {number}, which does not exist"


def content(data: Buffer) -> str:
    """Format bytes as quoted text if they are printable UTF-8, else in hex. Long ones are shortened."""
    head = bytes(data[: 4 * _LONGEST_TEXT])
    try:
        # If the cut is inside a character, the bytes before it are still text.
        text = _UTF_8().decode(head, final=len(head) == len(data))
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable():
        shown = head[: _LONGEST_TEXT // 3]
        return shown.hex(" ") + (" …" if len(shown) < len(data) else "")
    is_whole = len(head) == len(data) and len(text) <= _LONGEST_TEXT
    return f'"{text}"' if is_whole else f'"{text[: _LONGEST_TEXT - 1]}…"'


def text(said: str) -> str:
    """Format text in quotes. What a terminal would obey instead of showing is escaped; long text is shortened."""
    return f'"{plain(said if len(said) <= _LONGEST_NAME else said[: _LONGEST_NAME - 1] + "…")}"'


def plain(said: str) -> str:
    """Escape what a terminal would obey instead of showing."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in said)


def attributes_of(attributes: int, magic: int) -> str:
    """Describe the flags in the attributes. Magic 2 has two bytes of attributes, and flags only in the low one."""
    width = 4 if magic == 2 else 2
    number = attributes & (0xFFFF if magic == 2 else 0xFF)
    said = [codec_name(attributes) if attributes & Attributes.CODEC else "uncompressed"]
    if magic > 0:
        said.append(TIMESTAMP_TYPES[TimestampType(attributes >> 3 & 1)])
    if magic == 2:
        flags = (Attributes.TRANSACTIONAL, Attributes.CONTROL, Attributes.DELETE_HORIZON)
        said += [(flag.name or "").lower().replace("_", " ") for flag in flags if attributes & flag]
    return f"{number:#0{width + 2}x} ({', '.join(said)})"


def checksum(stored: int, computed: int) -> tuple[str, str | None]:
    """Format a stored checksum. Also return the problem, if it is not the computed one."""
    if stored == computed:
        return f"{stored:#010x} (right)", None
    return f"{stored:#010x}", f"wrong: the bytes give {computed:#010x}"


def _size(length: int) -> str:
    return f"{length} (and {LOG_OVERHEAD} before)"


def batch_values(header: BatchHeader) -> dict[str, str]:
    """Describe each field of a batch header."""
    is_horizon = header.attributes & Attributes.DELETE_HORIZON
    is_append_time = header.attributes & Attributes.LOG_APPEND_TIME
    last_offset = wrap64(header.base_offset + header.last_offset_delta)
    return {
        "base_offset": str(header.base_offset),
        "length": _size(header.length),
        "leader_epoch": number_or_none(header.leader_epoch),
        "magic": str(header.magic),
        "crc": f"{header.crc:#010x}",
        "attributes": attributes_of(header.attributes, 2),
        "last_offset_delta": f"{header.last_offset_delta} (last offset {last_offset})",
        "base_timestamp_ms": timestamp(header.base_timestamp_ms, "delete horizon " if is_horizon else ""),
        "max_timestamp_ms": timestamp(header.max_timestamp_ms, "all records: " if is_append_time else ""),
        "producer_id": number_or_none(header.producer_id),
        "producer_epoch": number_or_none(header.producer_epoch),
        "base_sequence": number_or_none(header.base_sequence),
        "record_count": str(header.record_count),
    }


def message_values(header: MessageV0 | MessageV1, offset: int) -> dict[str, str]:
    """Describe each field in the header of a message of magic 0 or 1. `offset` is its absolute offset."""
    values = {
        "offset": str(offset) if offset == header.offset else f"{header.offset} (offset {offset})",
        "length": _size(header.length),
        "crc": f"{header.crc:#010x}",
        "magic": str(header.magic),
        "attributes": attributes_of(header.attributes, header.magic),
    }
    if isinstance(header, MessageV1):
        values["timestamp_ms"] = timestamp(header.timestamp_ms)
    return values
