"""Map messages of magic 0 and 1: single messages, and wrappers of compressed messages."""

from __future__ import annotations

from octavo.errors import FormatError
from octavo.inspect import descriptions
from octavo.inspect.bytemap.field import Section
from octavo.inspect.bytemap.window import LeftOut, RecordWindow
from octavo.records.checksum import crc_of
from octavo.records.compression import decompress
from octavo.records.kernels import rules
from octavo.records.kernels.machine import wrap64
from octavo.records.kernels.message import measure_wrapper, walk_message
from octavo.records.layout import MAGIC_AT, MESSAGE_V0, MESSAGE_V1, Attributes, MessageV0, MessageV1


def map_message(
    section: Section, start: int, end: int, *, torn: str | None, window: RecordWindow, max_decompressed: int
) -> None:
    """Map the message from `start` to `end`. If it is a wrapper, also map the messages in it."""
    value = _map_fields(section, start, end, 0, torn, 0)
    header = _header(section.view, start, end)
    codec = header.attributes & Attributes.CODEC
    if value is None or not codec:
        return
    try:
        data = decompress(codec, value, limit=max_decompressed, magic=header.magic)
    except FormatError as error:
        section.leaf("messages", end, end, "", 1, error.rule)
        return
    _map_inner(section.decompressed(data), header.magic, header.offset, window)


def _map_fields(section: Section, start: int, end: int, depth: int, torn: str | None, to_add: int) -> memoryview | None:
    """Map one message; return its value, or None if it is null or unreadable.

    `to_add` is added to the stored offset to get the absolute one.
    """
    view = section.view
    header = _header(view, start, end)
    offset = wrap64(header.offset + to_add)
    codec = header.attributes & Attributes.CODEC
    name = "wrapper" if codec else "message"
    section.group(name, start, end, f"magic {header.magic}, {end - start} bytes, offset {offset}", depth, torn)
    depth += 1
    values, problems = descriptions.message_values(header, offset), {}
    if torn is None:
        computed = crc_of(view[start:end], header.magic)
        values["crc"], problems["crc"] = descriptions.checksum(header.crc, computed)
    layout = MESSAGE_V1 if header.magic else MESSAGE_V0
    at = section.layout(layout, start, end, values, depth, problems)
    message_end, _, _, key_at, key_length, value_at, value_length = walk_message(view, start, end)
    if message_end < 0:
        text = rules.broken(-message_end, 0).rule
        section.leaf("unreadable", at, end, descriptions.content(view[at:end]), depth, text)
        return None
    key_end, value_end = key_at + max(key_length, 0), value_at + max(value_length, 0)
    section.leaf("key_length", at, key_at, descriptions.length_or_null(key_length), depth)
    section.leaf("key", key_at, key_end, descriptions.content(view[key_at:key_end]), depth)
    section.leaf("value_length", key_end, value_at, descriptions.length_or_null(value_length), depth)
    said = f"compressed: {descriptions.codec_name(codec)}" if codec else descriptions.content(view[value_at:value_end])
    null = rules.broken(rules.WRAPPER_NULL, 0).rule if codec and value_length < 0 else None
    section.leaf("value", value_at, value_end, said, depth, null)
    section.leaf("unread", value_end, end, "bytes behind the value: nobody reads them", depth)
    return view[value_at:value_end] if value_length >= 0 else None


def _map_inner(section: Section, magic: int, offset: int, window: RecordWindow) -> None:
    """Map all messages of a wrapper; `section` has the decompressed bytes. `magic` and `offset` are the wrapper's."""
    view = section.view
    end = len(view)
    _, to_add, rule = measure_wrapper(view, 0, end, magic, offset)
    if rule != rules.OK:
        section.leaf("messages", 0, 0, "", 1, rules.broken(rule, 0).rule)
    at = 0
    left_out = LeftOut(section, "more messages", 1)
    while at < end:
        next_at, stored_offset, *_ = walk_message(view, at, end)
        if next_at < 0:
            break
        if window.takes(wrap64(stored_offset + to_add)):
            left_out.finish()
            _map_fields(section, at, next_at, 1, None, to_add)
        else:
            left_out.add(at, next_at)
        at = next_at
    left_out.finish()
    if at < end:
        # A wrapper may end with an incomplete message, which is no error; any other problem was reported above.
        section.leaf("unread", at, end, descriptions.content(view[at:end]), 1)


def _header(view: memoryview, start: int, end: int) -> MessageV0 | MessageV1:
    """Read a message header that may be cut off. Missing bytes are taken as zeros, which the map does not show."""
    layout = MESSAGE_V1 if view[start + MAGIC_AT] else MESSAGE_V0
    return layout.read(bytes(view[start : min(end, start + layout.size)]).ljust(layout.size, b"\0"))
