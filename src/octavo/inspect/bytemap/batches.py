"""Map one batch: every field with its name, bytes and meaning.

Names and positions come from the layouts in `records.layout` and from the kernels that walk records; nothing about a
layout is repeated here. Damage does not end the map. Bytes that cannot be read become one field that names the broken
rule, and the map continues after it as far as lengths can be trusted.
"""

from __future__ import annotations

import mmap

from octavo.errors import FormatError, InvalidInput
from octavo.inspect import descriptions
from octavo.inspect.bytemap.control_records import map_control_key, map_control_value
from octavo.inspect.bytemap.field import Field, Section
from octavo.inspect.bytemap.messages import map_message
from octavo.inspect.bytemap.window import LeftOut, RecordWindow
from octavo.records.checksum import crc_of
from octavo.records.compression import DEFAULT_LIMIT, decompress
from octavo.records.kernels import rules
from octavo.records.kernels.machine import wrap64
from octavo.records.kernels.record import MIN_RECORD_SIZE, walk_header, walk_record
from octavo.records.kernels.scan import BROKEN, DONE, MORE, TORN, entry_extent
from octavo.records.kernels.varint import read_varint, read_varlong
from octavo.records.layout import (
    BATCH_HEADER,
    MAGIC_AT,
    Attributes,
    BatchHeader,
    Buffer,
    Codec,
)
from octavo.records.text import read_text


def explain(
    buffer: Buffer | mmap.mmap,
    position: int = 0,
    *,
    max_decompressed: int = DEFAULT_LIMIT,
    max_records: int | None = None,
    offset: int | None = None,
    origin: int = 0,
) -> list[Field]:
    """Return all fields of the batch at `position`, in order; an empty list if `position` is the end of the buffer.

    The first field is a group, the batch itself. Each byte of the batch is in exactly one field that is not a group.
    If the records are compressed, the inflated fields follow, in which each decompressed byte is in exactly one field.

    max_decompressed: decompress at most so many bytes
    max_records: map at most so many records one by one, so that a large batch does not take much memory
    offset: begin with the record that has this offset; records before it are left out
    origin: the position of the buffer's first byte in its file, which is added to all positions

    Raises `InvalidInput` for a position outside the buffer. Damage raises nothing: damaged fields have a `problem`.
    """
    view = memoryview(buffer).cast("B")
    if not 0 <= position <= len(view):
        raise InvalidInput(f"{position} is no position in a buffer of {len(view)} bytes")
    outcome, size, rule = entry_extent(view, position, len(view))
    fields: list[Field] = []
    if outcome == DONE:
        return fields
    section = Section(view, fields, origin=origin)
    window = RecordWindow(max_records, offset)
    end = len(view)
    if outcome == MORE or rule == rules.ENTRY_MAGIC:
        end = min(end, position + size)
    torn = "the bytes end inside it" if outcome == TORN else None
    if outcome == BROKEN:
        _map_broken(section, position, end, rule)
    elif end - position <= MAGIC_AT or view[position + MAGIC_AT] == 2:
        _map_batch(section, position, end, torn, window, max_decompressed)
    else:
        map_message(section, position, end, torn=torn, window=window, max_decompressed=max_decompressed)
    return fields


def _map_broken(section: Section, start: int, end: int, rule: int) -> None:
    """Map bytes whose length or magic is impossible: the fields up to that one, and the rest as unreadable."""
    text = rules.broken(rule, start).rule
    header = _read_as_far_as_there(section.view, start, end)
    broken = "length"
    if rule == rules.ENTRY_MAGIC:
        broken = "magic"
    section.group("batch", start, end, "", 0)
    values = descriptions.batch_values(header)
    at = start
    for name, position, size in BATCH_HEADER.places():
        at = start + position + size
        problem = text if name == broken else None
        section.leaf(name, start + position, at, values[name], 1, problem)
        if problem:
            break
    section.leaf("unreadable", at, end, descriptions.content(section.view[at:end]), 1)


def _map_batch(
    section: Section, start: int, end: int, torn: str | None, window: RecordWindow, max_decompressed: int
) -> None:
    """Map a batch of magic 2."""
    view = section.view
    section.group("batch", start, end, f"magic 2, {end - start} bytes", 0, torn)
    header = _read_as_far_as_there(view, start, end)
    values, problems = descriptions.batch_values(header), {}
    if torn is None:
        values["crc"], problems["crc"] = descriptions.checksum(header.crc, crc_of(view[start:end], 2))
    at = section.layout(BATCH_HEADER, start, end, values, 1, problems)
    if at == end:
        if torn is None and header.record_count != 0:
            section.leaf("records", end, end, "", 1, rules.broken(rules.RECORD_COUNT, start).rule)
        return
    codec = header.attributes & int(Attributes.CODEC)
    if header.record_count == 0:
        section.leaf("unread", at, end, "the batch counts no records: nobody looks here", 1)
    elif codec == Codec.NONE:
        _map_records(section, at, end, header, 1, window)
    else:
        name = descriptions.codec_name(codec)
        try:
            data = decompress(codec, view[at:end], limit=max_decompressed)
        except FormatError as error:
            section.leaf("records", at, end, f"compressed: {name}", 1, error.rule)
            return
        section.leaf("records", at, end, f"compressed: {name}", 1)
        _map_records(section.decompressed(data), 0, len(data), header, 1, window)


def _read_as_far_as_there(view: memoryview, start: int, end: int) -> BatchHeader:
    """Read a batch header that may be cut off. Missing bytes are taken as zeros, which the map does not show."""
    return BATCH_HEADER.read(bytes(view[start : min(end, start + BATCH_HEADER.size)]).ljust(BATCH_HEADER.size, b"\0"))


def _map_records(section: Section, at: int, end: int, header: BatchHeader, depth: int, window: RecordWindow) -> None:
    """Map the records of a batch. Report a record count that does not match the bytes."""
    count = header.record_count
    if count < 0 or count > (end - at) // MIN_RECORD_SIZE:
        section.leaf("records", at, at, "", depth, rules.broken(rules.RECORD_COUNT, 0).rule)
    number = 0
    left_out = LeftOut(section, "more records", depth)
    while at < end and (number < count or count < 0):
        record_end, _, offset_delta, *_ = walk_record(section.view, at, end)
        if window.takes(wrap64(header.base_offset + offset_delta) if record_end >= 0 else None):
            left_out.finish()
            at = _map_record(section, at, end, header, number, depth, window.most)
        elif record_end >= 0:
            left_out.add(at, record_end)
            at = record_end
        else:
            behind = _behind_broken_record(section.view, at, end)
            left_out.add(at, behind, rules.broken(-record_end, at).rule)
            at = behind
        number += 1
    left_out.finish()
    if at < end:
        section.leaf("unreadable", at, end, "", depth, rules.broken(rules.BYTES_LEFT, 0).rule)
    elif number < count:
        section.leaf(f"record {number}", at, at, "", depth, f"the batch counts {count} records and ends here")


def _map_record(
    section: Section, start: int, end: int, header: BatchHeader, number: int, depth: int, most: int | None
) -> int:
    """Map one record, with at most `most` of its headers; return the position where the next begins."""
    data = section.view
    walked = walk_record(data, start, end)
    record_end, timestamp_delta_ms, offset_delta, key_at, key_length, value_at, value_length, headers_at, count = walked
    if record_end < 0:
        return _map_broken_record(section, start, end, -record_end, number, depth)
    offset = wrap64(header.base_offset + offset_delta)
    section.group(f"record {number}", start, record_end, f"offset {offset}", depth)
    depth += 1
    length, at = read_varint(data, start, end)
    section.leaf("length", start, at, str(length), depth)
    section.leaf("attributes", at, at + 1, f"{data[at]:#04x} (unused)", depth)
    _, offset_at = read_varlong(data, at + 1, record_end)
    time = descriptions.time_of(wrap64(header.base_timestamp_ms + timestamp_delta_ms))
    if header.attributes & Attributes.LOG_APPEND_TIME:
        time = "not used"
    section.leaf("timestamp_delta", at + 1, offset_at, f"{timestamp_delta_ms} ({time})", depth)
    _, key_length_at = read_varint(data, offset_at, record_end)
    section.leaf("offset_delta", offset_at, key_length_at, f"{offset_delta} (offset {offset})", depth)
    section.leaf("key_length", key_length_at, key_at, descriptions.length_or_null(key_length), depth)
    key_end, value_end = key_at + max(key_length, 0), value_at + max(value_length, 0)
    if header.attributes & Attributes.CONTROL:
        map_control_key(section, key_at, key_length, depth)
    else:
        section.leaf("key", key_at, key_end, descriptions.content(data[key_at:key_end]), depth)
    section.leaf("value_length", key_end, value_at, descriptions.length_or_null(value_length), depth)
    if header.attributes & Attributes.CONTROL:
        key = bytes(data[key_at:key_end]) if key_length >= 0 else None
        map_control_value(section, key, value_at, value_length, depth)
    else:
        section.leaf("value", value_at, value_end, descriptions.content(data[value_at:value_end]), depth)
    section.leaf("header_count", value_end, headers_at, str(count), depth)
    _map_headers(section, headers_at, record_end, count, depth, RecordWindow(most))
    return record_end


def _map_broken_record(section: Section, start: int, end: int, rule: int, number: int, depth: int) -> int:
    """Map a record that breaks a rule as one field; return the position where the next record begins."""
    next_at = _behind_broken_record(section.view, start, end)
    text = rules.broken(rule, start).rule
    section.leaf(f"record {number}", start, next_at, descriptions.content(section.view[start:next_at]), depth, text)
    return next_at


def _behind_broken_record(view: memoryview, start: int, end: int) -> int:
    """Return where a broken record ends: where its length says if that is possible, else with the batch."""
    length, behind = read_varint(view, start, end)
    is_bounded = behind > 0 and 0 < length <= end - behind
    return behind + length if is_bounded else end


def _map_headers(section: Section, at: int, end: int, count: int, depth: int, window: RecordWindow) -> None:
    """Map the headers of a record, as many as `window` takes. They have to fill the rest of the record."""
    data = section.view
    left_out = LeftOut(section, "more headers", depth)
    for number in range(count):
        next_at, key_at, key_length, value_at, value_length = walk_header(data, at, end)
        if next_at < 0:
            left_out.finish()
            section.leaf(f"header {number}", at, end, "", depth, rules.broken(-next_at, at).rule)
            return
        if window.takes(None):
            key_end = key_at + key_length
            section.group(f"header {number}", at, next_at, "", depth)
            section.leaf("key_length", at, key_at, str(key_length), depth + 1)
            section.leaf("key", key_at, key_end, descriptions.text(read_text(bytes(data[key_at:key_end]))), depth + 1)
            section.leaf("value_length", key_end, value_at, descriptions.length_or_null(value_length), depth + 1)
            section.leaf("value", value_at, next_at, descriptions.content(data[value_at:next_at]), depth + 1)
        else:
            left_out.add(at, next_at)
        at = next_at
    left_out.finish()
    if at < end:
        section.leaf("unreadable", at, end, "", depth, rules.broken(rules.RECORD_NOT_FILLED, at).rule)
