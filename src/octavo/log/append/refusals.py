"""Errors for batches that are not appended: Kafka's error code, and a sentence that says why.

The codes are those of the exceptions that Kafka's log throws (`UnifiedLog`, `LogValidator`). Kafka does not expect some
of these, such as an unknown codec or a stream that does not decompress; they become `UNKNOWN_SERVER_ERROR`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from octavo.errors import (
    AppendRefused,
    BadCompression,
    BadLength,
    ErrorCode,
    FormatError,
    LimitExceeded,
    RecordError,
    Truncated,
)
from octavo.records.kernels import rules, validate

_UNEXPECTED: Final = ErrorCode.UNKNOWN_SERVER_ERROR
_CORRUPT: Final = ErrorCode.CORRUPT_MESSAGE
_INVALID: Final = ErrorCode.INVALID_RECORD

# Rules that are checked outside the kernels.
WRONG_EPOCH: Final = 200
MIXED: Final = 201
SEVERAL: Final = 202
JUMPING: Final = 203
NO_EPOCH: Final = 204
OFFSET_TOO_HIGH: Final = 205

MAX_LISTED: Final = 1000  # maximum number of refused records that an error lists

_WHY: Final[dict[int, tuple[ErrorCode, str]]] = {
    rules.ENTRY_LENGTH: (_CORRUPT, "its length is below that of the smallest message"),
    rules.ENTRY_MAGIC: (_CORRUPT, "its magic byte is none of 0, 1 and 2"),
    rules.BATCH_LENGTH: (_CORRUPT, "it is shorter than the header of a batch"),
    rules.CHECKSUM: (_CORRUPT, "its checksum is not that of its bytes"),
    validate.UNREADABLE: (_UNEXPECTED, "no batch can have its size"),
    WRONG_EPOCH: (_INVALID, "its leader epoch is not that of the leader who appends it"),
    validate.FIRST_OFFSET: (_INVALID, "its base offset is not 0, and the broker assigns offsets"),
    validate.TOO_LARGE: (ErrorCode.MESSAGE_TOO_LARGE, "it is larger than max.message.bytes allows"),
    validate.NO_SUCH_CODEC: (_UNEXPECTED, "its codec does not exist"),
    validate.OFFSET_RANGE: (_INVALID, "its last offset is below its base offset"),
    validate.NO_RECORDS: (_INVALID, "it says that it holds no records"),
    validate.OFFSETS_AND_COUNT: (_INVALID, "it does not say that it holds one record for each of its offsets"),
    validate.CONTROL_BATCH: (_INVALID, "it is a control batch, which clients cannot write"),
    validate.SEQUENCE_MISSING: (_INVALID, "it has a producer id and no sequence number"),
    NO_EPOCH: (_UNEXPECTED, "it has no leader epoch"),
    OFFSET_TOO_HIGH: (_INVALID, f"its last offset is above {validate.MAX_OFFSET}, the highest there is"),
    validate.OFFSETS_USED_UP: (
        _INVALID,
        f"there are not enough offsets left for its records: {validate.MAX_OFFSET} is the highest there is",
    ),
    MIXED: (_INVALID, "its magic is not that of the batch before it"),
    SEVERAL: (_INVALID, "it stands beside others, where a compressed message has to be alone"),
    JUMPING: (
        _UNEXPECTED,
        "the offsets of its compressed records do not count from 0, and Kafka cannot write them anew",
    ),
}

_INNER_LENGTH: Final = rules.broken(rules.INNER_LENGTH, 0).rule

WHY_RECORD: Final = {
    validate.NO_KEY: "the topic is compacted, and the record has no key",
    validate.APPEND_TIME_CLAIMED: "its timestamp is said to be that of the append, which only the broker can say",
    validate.OTHER_MAGIC: "its magic is not that of the message which holds it",
}
OF_TIME: Final = (validate.TIME_OUTSIDE, validate.APPEND_TIME_CLAIMED)


def refused(rule: int, position: int) -> AppendRefused:
    """Return the error for the batch at byte `position` of the input, which breaks `rule`."""
    if rule in _WHY:
        code, why = _WHY[rule]
    else:
        code, why = _INVALID, rules.broken(rule, position).rule
    return AppendRefused(code, f"the batch at byte {position} is refused: {why}")


def undecodable(error: FormatError, position: int) -> AppendRefused:
    """Return the error for a batch whose records cannot be read: a broken stream, or a broken old message."""
    if isinstance(error, LimitExceeded):
        code = ErrorCode.MESSAGE_TOO_LARGE
    elif error.rule == _INNER_LENGTH:
        code = _CORRUPT
    elif isinstance(error, BadCompression | Truncated | BadLength):
        code = _UNEXPECTED
    else:
        code = _INVALID
    return AppendRefused(code, f"the batch at byte {position} is refused: {error.rule}")


def builder_refused(why: str, position: int) -> AppendRefused:
    """Return the error for a batch that must be rewritten but cannot be. Kafka fails on it as well."""
    return AppendRefused(_UNEXPECTED, f"the batch at byte {position} is refused: {why}")


def records_refused(
    records: Sequence[Sequence[int]],
    position: int,
    limits: Sequence[int],
    now_ms: int,
    *,
    count: int,
    of_time: bool,
) -> AppendRefused:
    """Return the error for a batch with `count` bad records. `of_time`: the timestamp of at least one is refused.

    `records`: the first `MAX_LISTED` bad records, each as its index, the reason and its timestamp.
    """
    earliest_ms, latest_ms = now_ms - limits[validate.BEFORE_MAX_MS], now_ms + limits[validate.AFTER_MAX_MS]
    errors = []
    for index, reason, timestamp_ms in records:
        if reason == validate.TIME_OUTSIDE:
            why = f"its timestamp {timestamp_ms} is not between {earliest_ms} and {latest_ms}"
        else:
            why = WHY_RECORD[reason]
        errors.append(RecordError(index, why))
    code = ErrorCode.INVALID_TIMESTAMP if of_time else _INVALID
    shown = "; ".join(f"record {index}: {why}" for index, why in errors[:3])
    more = f" and {count - 3} more" if count > 3 else ""
    which = "one of its records" if count == 1 else f"{count} of its records"
    return AppendRefused(code, f"the batch at byte {position} is refused for {which}: {shown}{more}", tuple(errors))


def out_of_order(position: int, offset: int, expected: int) -> AppendRefused:
    """Return the error for a batch whose offset is too low. Kafka has no code for it: a follower answers no client."""
    return AppendRefused(
        _UNEXPECTED, f"the batch at byte {position} is refused: its offset {offset} is below {expected}, the next one"
    )


def ends_before_it_begins(position: int, base_offset: int, last_offset: int) -> AppendRefused:
    """Return the error for a batch whose last offset is below its base offset."""
    return AppendRefused(
        _UNEXPECTED,
        f"the batch at byte {position} is refused: its last offset {last_offset} is below its first, {base_offset}",
    )
