"""Find the fields of a message of magic 0 or 1, single or inside a compressed wrapper (Kafka's `LegacyRecord`).

    message => offset:int64 length:int32 crc:uint32 magic:int8 attributes:int8 [timestamp:int64] key value
    key, value => length:int32 bytes

Every negative length of a key or value means null. As in Kafka, bytes after the value are not an error: the checksum
covers them, and nobody reads them.
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.machine import Array, read_i32, read_i64, wrap64
from octavo.records.layout import (
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_V0,
    MESSAGE_V1,
    MIN_LENGTH,
    Attributes,
    Codec,
)

_ATTRIBUTES = MESSAGE_V0.at("attributes")
_TIMESTAMP = MESSAGE_V1.at("timestamp_ms")
_SIZE_V0 = MESSAGE_V0.size
_SIZE_V1 = MESSAGE_V1.size
_CODEC = int(Attributes.CODEC)
_NONE = int(Codec.NONE)

# The result of `walk_message`: the start of the next message, the offset, the timestamp, position and length of the
# key, position and length of the value. If a rule is broken, the first number is minus the rule.
WalkedMessage = tuple[int, int, int, int, int, int, int]


def _broken(rule: int) -> WalkedMessage:
    return (-rule, 0, 0, 0, 0, 0, 0)


def walk_message(data: Array, start: int, end: int) -> WalkedMessage:
    """Find the fields of the message at `start` of `data[:end]`.

    If the bytes end inside it, the broken rule is `INNER_CUT`. In a wrapper, Kafka silently ignores such a message.
    """
    if end - start < LOG_OVERHEAD:
        return _broken(rules.INNER_CUT)
    length = read_i32(data, start + LENGTH_AT)
    if length < MIN_LENGTH:
        return _broken(rules.INNER_LENGTH)
    message_end = start + LOG_OVERHEAD + length
    if message_end > end:
        return _broken(rules.INNER_CUT)
    magic = data[start + MAGIC_AT]
    if magic > 1:
        return _broken(rules.INNER_MAGIC)
    timestamp = -1
    at = start + _SIZE_V0
    if magic == 1:
        at = start + _SIZE_V1
        if at + 8 > message_end:
            return _broken(rules.INNER_LENGTH)
        timestamp = read_i64(data, start + _TIMESTAMP)
    key_length = read_i32(data, at)
    key_at = at + 4
    at = key_at + key_length if key_length > 0 else key_at
    if at + 4 > message_end:
        return _broken(rules.MESSAGE_KEY_LENGTH)
    value_length = read_i32(data, at)
    value_at = at + 4
    if value_length > message_end - value_at:
        return _broken(rules.MESSAGE_VALUE_LENGTH)
    return message_end, read_i64(data, start), timestamp, key_at, key_length, value_at, value_length


def measure_wrapper(data: Array, start: int, end: int, magic: int, offset: int) -> tuple[int, int, int]:
    """Walk the messages of a compressed wrapper of `magic` and `offset`, decompressed in `data[start:end]`.

    Returns the number of messages, the number to add to each inner offset, and the broken rule. In magic 1, inner
    offsets are relative, and the wrapper has the offset of its last message. A wrapper at offset 0 comes from a
    producer that did not set its offset (as some do); then the inner offsets count from 0.
    """
    count = 0
    at = start
    last = 0
    while True:
        next_at, inner_offset, _, _, _, _, _ = walk_message(data, at, end)
        if next_at < 0:
            if -next_at == rules.INNER_CUT:
                break
            return count, 0, -next_at
        if data[at + _ATTRIBUTES] & _CODEC != _NONE:
            return count, 0, rules.WRAPPER_NESTED
        last = inner_offset
        at = next_at
        count += 1
    if count == 0:
        return 0, 0, rules.WRAPPER_EMPTY
    if magic == 0 or offset == 0:
        return count, 0, rules.OK
    if offset < last:
        return count, 0, rules.WRAPPER_OFFSET
    return count, wrap64(offset - last), rules.OK
