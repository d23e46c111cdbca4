"""Print numbers and bytes as JSON.

Every function writes to `out` from `at` on, and returns the position after what it has written. The caller has checked
that there is room (see `LARGEST_NUMBER` and `ROOM_A_BYTE`).
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, copy, copy16, read_u8, write_le32

HEX = 0  # the ways to print bytes
BASE64 = 1
TEXT = 2

LARGEST_NUMBER = 20  # bytes that a number takes at most: a sign and 19 digits
ROOM_A_BYTE = 6  # bytes that a byte takes at most: \u001f
ROOM_AROUND = 32  # bytes that quotes, braces and null take at most, and what `copy16` may write too much

_QUOTE = 34
_BACKSLASH = 92
_NOT_UTF_8 = -1


def put_number(out: Array, at: int, number: int) -> int:
    """Print a number of 64 bits."""
    if number < 0:
        out[at] = 45
        at += 1
        # The smallest number has no positive counterpart, so the last digit is printed from the complement.
        rest = -(number + 1)
        last = rest % 10 + 1
        rest //= 10
        if last == 10:
            last = 0
            rest += 1
        if rest:
            at = put_digits(out, at, rest)
        out[at] = 48 + last
        return at + 1
    return put_digits(out, at, number)


def put_digits(out: Array, at: int, number: int) -> int:
    """Print a number that is not negative."""
    digits = 1
    above = 10
    while digits < 19 and number >= above:
        digits += 1
        if digits < 19:
            above *= 10
    end = at + digits
    for place in range(end - 1, at - 1, -1):
        rest = number // 10
        out[place] = 48 + number - rest * 10
        number = rest
    return end


def put_bytes(out: Array, at: int, data: Array, start: int, length: int, form: int) -> int:
    """Print a byte string in one of the forms `HEX`, `BASE64` and `TEXT`, or null if its length is negative."""
    if length < 0:
        out[at] = 110
        out[at + 1] = 117
        out[at + 2] = 108
        out[at + 3] = 108
        return at + 4
    if form == TEXT:
        end = put_text(out, at, data, start, length)
        return end if end != _NOT_UTF_8 else put_hex_object(out, at, data, start, length)
    out[at] = _QUOTE
    if form == HEX:
        at = put_hex(out, at + 1, data, start, length)
    else:
        at = put_base64(out, at + 1, data, start, length)
    out[at] = _QUOTE
    return at + 1


def put_hex(out: Array, at: int, data: Array, start: int, length: int) -> int:
    """Print hexadecimal digits, two for each byte."""
    end = start + length
    while start + 2 <= end:
        first = read_u8(data, start)
        second = read_u8(data, start + 1)
        # Four digits at once, each in a byte of its own. Adding 6 carries into the next half only for those above 9.
        digits = first >> 4 | (first & 15) << 8 | (second >> 4) << 16 | (second & 15) << 24
        letters = (digits + 0x06060606) >> 4 & 0x01010101
        write_le32(out, at, digits + 0x30303030 + letters * 39)
        at += 4
        start += 2
    if start < end:
        byte = read_u8(data, start)
        out[at] = hex_digit(byte >> 4)
        out[at + 1] = hex_digit(byte & 15)
        at += 2
    return at


def hex_digit(number: int) -> int:
    """Return the character for a number of four bits."""
    return number + 48 if number < 10 else number + 87


def put_hex_object(out: Array, at: int, data: Array, start: int, length: int) -> int:
    """Print `{"hex":"ff00"}`, for bytes that are not UTF-8."""
    out[at] = 123
    out[at + 1] = _QUOTE
    out[at + 2] = 104
    out[at + 3] = 101
    out[at + 4] = 120
    out[at + 5] = _QUOTE
    out[at + 6] = 58
    out[at + 7] = _QUOTE
    at = put_hex(out, at + 8, data, start, length)
    out[at] = _QUOTE
    out[at + 1] = 125
    return at + 2


def base64_digit(number: int) -> int:
    """Return the character for a number of six bits."""
    if number < 26:
        return number + 65
    if number < 52:
        return number + 71
    if number < 62:
        return number - 4
    return 43 if number == 62 else 47


def put_base64(out: Array, at: int, data: Array, start: int, length: int) -> int:
    """Print base64, with padding."""
    end = start + length
    while start + 3 <= end:
        bits = read_u8(data, start) << 16 | read_u8(data, start + 1) << 8 | read_u8(data, start + 2)
        out[at] = base64_digit(bits >> 18)
        out[at + 1] = base64_digit(bits >> 12 & 63)
        out[at + 2] = base64_digit(bits >> 6 & 63)
        out[at + 3] = base64_digit(bits & 63)
        at += 4
        start += 3
    if start == end:
        return at
    bits = read_u8(data, start) << 16
    if start + 1 < end:
        bits |= read_u8(data, start + 1) << 8
    out[at] = base64_digit(bits >> 18)
    out[at + 1] = base64_digit(bits >> 12 & 63)
    out[at + 2] = base64_digit(bits >> 6 & 63) if start + 1 < end else 61
    out[at + 3] = 61
    return at + 4


def put_text(out: Array, at: int, data: Array, start: int, length: int) -> int:
    """Print UTF-8 as a JSON string; returns `_NOT_UTF_8` if it is none, and then what is in `out` means nothing."""
    end = start + length
    out[at] = _QUOTE
    at += 1
    while start < end:
        run = plain_run(data, start, end)
        if run <= 16 and start + 16 <= len(data):
            copy16(out, at, data, start)
        else:
            copy(out, at, data, start, run)
        at += run
        start += run
        if start == end:
            break
        byte = read_u8(data, start)
        if byte < 0x80:
            at = put_escape(out, at, byte)
            start += 1
        else:
            size = sequence_size(data, start, end)
            if size == 0:
                return _NOT_UTF_8
            for index in range(size):
                out[at + index] = read_u8(data, start + index)
            at += size
            start += size
    out[at] = _QUOTE
    return at + 1


def plain_run(data: Array, start: int, end: int) -> int:
    """Return the number of ASCII characters from `start` on that JSON has as they are."""
    at = start
    while at < end:
        byte = read_u8(data, at)
        if byte < 0x20 or byte >= 0x80 or byte == _QUOTE or byte == _BACKSLASH:
            break
        at += 1
    return at - start


def put_escape(out: Array, at: int, byte: int) -> int:
    """Print an ASCII character that JSON escapes, in the shortest way."""
    out[at] = _BACKSLASH
    short = 0
    if byte == _QUOTE or byte == _BACKSLASH:
        short = byte
    elif byte == 8:
        short = 98
    elif byte == 9:
        short = 116
    elif byte == 10:
        short = 110
    elif byte == 12:
        short = 102
    elif byte == 13:
        short = 114
    if short:
        out[at + 1] = short
        return at + 2
    out[at + 1] = 117
    out[at + 2] = 48
    out[at + 3] = 48
    out[at + 4] = 48 + (byte >> 4)
    out[at + 5] = hex_digit(byte & 15)
    return at + 6


def sequence_size(data: Array, at: int, end: int) -> int:
    """Return the size of the character of several bytes at `at`; 0 if it is no UTF-8, as Unicode defines it."""
    first = read_u8(data, at)
    left = end - at
    if first < 0xC2 or first > 0xF4 or left < 2:
        return 0
    second = read_u8(data, at + 1)
    if second & 0xC0 != 0x80:
        return 0
    if first < 0xE0:
        return 2
    if left < 3 or read_u8(data, at + 2) & 0xC0 != 0x80:
        return 0
    if first < 0xF0:
        is_overlong = first == 0xE0 and second < 0xA0
        is_surrogate = first == 0xED and second > 0x9F
        return 0 if is_overlong or is_surrogate else 3
    if left < 4 or read_u8(data, at + 3) & 0xC0 != 0x80:
        return 0
    is_outside = (first == 0xF0 and second < 0x90) or (first == 0xF4 and second > 0x8F)
    return 0 if is_outside else 4
