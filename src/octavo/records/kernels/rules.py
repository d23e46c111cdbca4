"""The rules that records can break, as numbers that a kernel can return.

A kernel cannot raise. It stops, and returns the number of the broken rule and the position. `broken` turns these into
the typed error.
"""

from __future__ import annotations

from typing import Final

from octavo import errors

OK: Final = 0
VARINT_CUT: Final = 1
VARINT_UNENDING: Final = 2
RECORD_LENGTH: Final = 3
KEY_LENGTH: Final = 4
VALUE_LENGTH: Final = 5
HEADER_COUNT: Final = 6
HEADER_KEY_LENGTH: Final = 7
HEADER_VALUE_LENGTH: Final = 8
RECORD_NOT_FILLED: Final = 9
BYTES_LEFT: Final = 10
RECORD_COUNT: Final = 11
ENTRY_LENGTH: Final = 12
ENTRY_MAGIC: Final = 13
BATCH_LENGTH: Final = 14
MESSAGE_KEY_LENGTH: Final = 15
MESSAGE_VALUE_LENGTH: Final = 16
INNER_CUT: Final = 17
WRAPPER_EMPTY: Final = 18
WRAPPER_NESTED: Final = 19
WRAPPER_OFFSET: Final = 20
INNER_LENGTH: Final = 21
INNER_MAGIC: Final = 22
WRAPPER_NULL: Final = 23
CHECKSUM: Final = 24  # no text: the caller that knows both checksums creates the error
OFFSET_ORDER: Final = 25
NEGATIVE_TIME: Final = 26

_TEXT: Final[dict[int, tuple[type[errors.FormatError], str]]] = {
    VARINT_CUT: (errors.BadVarint, "the record ends inside a varint"),
    VARINT_UNENDING: (errors.BadVarint, "a varint goes on after its last possible byte"),
    RECORD_LENGTH: (errors.BadLength, "a record's length is negative or passes the end of its batch"),
    KEY_LENGTH: (errors.BadLength, "a key's length passes the end of its record"),
    VALUE_LENGTH: (errors.BadLength, "a value's length passes the end of its record"),
    HEADER_COUNT: (errors.BadLength, "a count of headers is negative or more than the record has room for"),
    HEADER_KEY_LENGTH: (errors.BadLength, "a header key's length is negative or passes the end of its record"),
    HEADER_VALUE_LENGTH: (errors.BadLength, "a header value's length passes the end of its record"),
    RECORD_NOT_FILLED: (errors.BadRecord, "a record's fields end before its length says"),
    BYTES_LEFT: (errors.BadRecord, "bytes are left after the last record that the batch counts"),
    RECORD_COUNT: (errors.BadLength, "the count of records is negative or more than the batch has room for"),
    ENTRY_LENGTH: (errors.BadLength, "a length field is smaller than the smallest message (14)"),
    ENTRY_MAGIC: (errors.Unsupported, "the magic byte is none of 0, 1 and 2"),
    BATCH_LENGTH: (errors.BadLength, "a batch of magic 2 is shorter than its header (61 bytes)"),
    MESSAGE_KEY_LENGTH: (errors.BadLength, "a message's key length passes its end"),
    MESSAGE_VALUE_LENGTH: (errors.BadLength, "a message's value length passes its end"),
    INNER_CUT: (errors.Truncated, "the bytes end inside a message"),
    WRAPPER_EMPTY: (errors.BadRecord, "a compressed wrapper holds no message"),
    WRAPPER_NESTED: (errors.BadRecord, "a message inside a compressed wrapper is itself compressed"),
    WRAPPER_OFFSET: (errors.BadRecord, "a wrapper's offset is below that of its last inner message"),
    INNER_LENGTH: (errors.BadLength, "an inner message's length is smaller than the smallest message"),
    INNER_MAGIC: (errors.BadRecord, "an inner message's magic byte is neither 0 nor 1"),
    WRAPPER_NULL: (errors.BadRecord, "a compressed wrapper has no value"),
    OFFSET_ORDER: (errors.BadRecord, "a record's offset does not go forward from the one before it"),
    NEGATIVE_TIME: (errors.BadRecord, "a record's timestamp is before the year 1970"),
}


def broken(rule: int, position: int) -> errors.FormatError:
    """Return the typed error for `rule`, broken at `position`."""
    kind, text = _TEXT[rule]
    return kind(position, text)
