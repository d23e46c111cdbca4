"""Frames around fetch results in Kafka's first wire protocol, for one log or for several.

    MessageSetSend         length: int32, error code: int16, messages
    MultiMessageSetSend    length: int32, error code: int16, one MessageSetSend after the other

A length counts the bytes after it. Today's clients use the Fetch API instead; these are plain frames around any result.
Nothing in Octavo sends them: this module is for programs that serve logs (docs/log.md has an example).

Nothing is copied. A writer returns parts to be sent one after the other, or only the head if the rest comes from a
file. A reader returns views of the buffer. The messages themselves are not inspected.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from octavo.errors import BadLength, InvalidInput, Truncated
from octavo.records.layout import MAX_INT32, Buffer, Int16, Int32, Layout

_NO_ERROR: Final = 0
_ERROR_CODES: Final = range(-(1 << 15), 1 << 15)


class _Head(NamedTuple):
    """The head of a frame."""

    length: Int32  # number of bytes after this field
    error_code: Int16


HEAD: Final = Layout(_Head)
assert HEAD.size == 6
_LENGTH_SIZE: Final = HEAD.at("error_code")
_ERROR_CODE_SIZE: Final = HEAD.size - _LENGTH_SIZE


class MessageSetSend(NamedTuple):
    """The result of reading one log."""

    error_code: int
    records: memoryview


class MultiMessageSetSend(NamedTuple):
    """The results of reading several logs, with an error code for the whole."""

    error_code: int
    results: tuple[MessageSetSend, ...]


def write_head(error_code: int, size: int) -> bytes:
    """Return the head of a frame whose `size` bytes of messages are sent separately.

    Raises `InvalidInput` for values that do not fit.
    """
    if not 0 <= size <= MAX_INT32 - _ERROR_CODE_SIZE:
        raise InvalidInput(f"a frame holds at most {MAX_INT32 - _ERROR_CODE_SIZE:,} bytes, not {size:,}")
    if error_code not in _ERROR_CODES:
        raise InvalidInput(f"error code {error_code} does not fit into 16 bits")
    return HEAD.write(_Head(_ERROR_CODE_SIZE + size, error_code))


def write_message_set_send(error_code: int, records: Buffer) -> list[Buffer]:
    """Return the parts of a frame around `records`."""
    return [write_head(error_code, len(records)), records]


def write_multi(results: Iterable[tuple[int, Buffer]], error_code: int = _NO_ERROR) -> list[Buffer]:
    """Return the parts of an outer frame that holds one frame for each (error code, records)."""
    parts = [part for code, records in results for part in write_message_set_send(code, records)]
    return [write_head(error_code, sum(map(len, parts))), *parts]


def read_message_set_send(buffer: Buffer) -> MessageSetSend:
    """Read a buffer that is exactly one frame. Raises `Truncated` if it ends early, `BadLength` if bytes follow."""
    view = memoryview(buffer)
    result, end = _read_frame(view, 0, len(view))
    _check_end(view, end)
    return result


def read_multi(buffer: Buffer) -> MultiMessageSetSend:
    """Read a buffer that is exactly one outer frame. Raises like `read_message_set_send`."""
    view = memoryview(buffer)
    whole, end = _read_frame(view, 0, len(view))
    _check_end(view, end)
    results: list[MessageSetSend] = []
    position = HEAD.size
    while position < end:
        result, position = _read_frame(view, position, end)
        results.append(result)
    return MultiMessageSetSend(whole.error_code, tuple(results))


def _read_frame(view: memoryview, position: int, limit: int) -> tuple[MessageSetSend, int]:
    """Return the frame at `position` and its end, which must not be beyond `limit`."""
    if limit - position < HEAD.size:
        raise Truncated(position, f"a frame begins with {HEAD.size} bytes, {limit - position} are left")
    length, error_code = HEAD.read(view, position)
    if length < _ERROR_CODE_SIZE:
        raise BadLength(position, f"a frame's length is {length}, and its error code alone takes {_ERROR_CODE_SIZE}")
    end = position + _LENGTH_SIZE + length
    if end > limit:
        raise Truncated(position, f"a frame has {length:,} bytes, {limit - position - _LENGTH_SIZE:,} are left")
    return MessageSetSend(error_code, view[position + HEAD.size : end]), end


def _check_end(view: memoryview, end: int) -> None:
    if end != len(view):
        raise BadLength(end, f"{len(view) - end:,} bytes follow the frame")
