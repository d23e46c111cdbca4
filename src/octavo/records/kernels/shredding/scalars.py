"""Read numbers, strings and times in JSON, if there is no doubt about what Spark makes of them.

Every function returns the position after what it has read, or `DOUBT`: then the value is left to a slower reader, which
is exact. So these may be strict. They never read at or after `end`.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array
from octavo.records.kernels.shredding.tree import BYTES, TEXT_BASE, Tree

DOUBT = -1
MAX_DIGITS = 18  # decimal digits that fit into 64 bits, whatever they are

_QUOTE = 34
_BACKSLASH = 92
_MINUS = 45
_POINT = 46
_ZERO = 48
_NINE = 57


def skip_space(data: Array, at: int, end: int) -> int:
    """Return the position of the next byte that is no space; `end` if there is none."""
    while at < end:
        byte = data[at] & 0xFF
        if byte > 32 or (byte != 32 and byte != 10 and byte != 13 and byte != 9):
            return at
        at += 1
    return at


def has_word(data: Array, at: int, end: int, first: int, second: int, third: int, fourth: int) -> bool:
    """Return whether four given bytes are at a position."""
    return (
        end - at >= 4
        and data[at] & 0xFF == first
        and data[at + 1] & 0xFF == second
        and data[at + 2] & 0xFF == third
        and data[at + 3] & 0xFF == fourth
    )


def is_null(data: Array, at: int, end: int) -> bool:
    """Return whether `null` is at a position."""
    return has_word(data, at, end, 110, 117, 108, 108)


def is_true(data: Array, at: int, end: int) -> bool:
    """Return whether `true` is at a position."""
    return has_word(data, at, end, 116, 114, 117, 101)


def is_false(data: Array, at: int, end: int) -> bool:
    """Return whether `false` is at a position."""
    return has_word(data, at, end, 102, 97, 108, 115) and end - at > 4 and data[at + 4] & 0xFF == 101


def read_number(data: Array, at: int, end: int) -> tuple[int, int, int, int, int]:
    """Read a number. Returns the position after it, its digits as an integer, their count, decimals, and exponent.

    Leading zeros do not count. If there are more than `MAX_DIGITS`, the integer is not right. The exponent is 1000 if
    there is none: then, and if there are no decimals (-1), the number is an integer for JSON.
    """
    negative = at < end and data[at] & 0xFF == _MINUS
    if negative:
        at += 1
    start = at
    at, number, digits = read_digits(data, at, end, 0, 0)
    if at == start or (at - start > 1 and data[start] & 0xFF == _ZERO):
        return DOUBT, 0, 0, 0, 0
    decimals = -1
    if at < end and data[at] & 0xFF == _POINT:
        start = at + 1
        at, number, digits = read_digits(data, start, end, number, digits)
        decimals = at - start
        if decimals == 0:
            return DOUBT, 0, 0, 0, 0
    exponent = 1000
    if at < end and data[at] & 0xDF == 69:
        at, exponent = read_exponent(data, at + 1, end)
    if negative:
        number = -number
    return at, number, digits, decimals, exponent


def read_digits(data: Array, at: int, end: int, number: int, digits: int) -> tuple[int, int, int]:
    """Append digits to a number that has so many already. Returns the position after them, the number, their count."""
    while at < end and _ZERO <= data[at] & 0xFF <= _NINE:
        digit = (data[at] & 0xFF) - _ZERO
        if digits > 0 or digit > 0:
            digits += 1
            if digits <= MAX_DIGITS:
                number = number * 10 + digit
        at += 1
    return at, number, digits


def read_exponent(data: Array, at: int, end: int) -> tuple[int, int]:
    """Read the exponent of a number, of at most three digits, after its letter."""
    negative = at < end and data[at] & 0xFF == _MINUS
    if at < end and (negative or data[at] & 0xFF == 43):
        at += 1
    start = at
    exponent = 0
    while at < end and _ZERO <= data[at] & 0xFF <= _NINE:
        exponent = exponent * 10 + (data[at] & 0xFF) - _ZERO
        at += 1
        if at - start > 3:
            return DOUBT, 0
    if at == start:
        return DOUBT, 0
    return at, -exponent if negative else exponent


def read_string(tree: Tree, node: int, data: Array, at: int, end: int) -> int:
    """Read a string, from after its quote, into the text of a node. The caller appends its end."""
    target = tree.nodes[node, TEXT_BASE] + tree.state[node, BYTES]
    begin = target
    while at < end:
        byte = data[at] & 0xFF
        if byte == _QUOTE:
            tree.state[node, BYTES] += target - begin
            return at + 1
        if byte < 32:
            return DOUBT
        if byte == _BACKSLASH:
            at, size = read_escape(tree.text, target, data, at + 1, end)
            if at < 0:
                return DOUBT
            target += size
            continue
        if byte < 0x80:
            tree.text[target] = byte
            target += 1
            at += 1
            continue
        size = utf8_size(data, at, end)
        if size == 0:
            return DOUBT
        for number in range(size):
            tree.text[target + number] = data[at + number]
        target += size
        at += size
    return DOUBT


def utf8_size(data: Array, at: int, end: int) -> int:
    """Return how many bytes the character at a position has that is not ASCII; 0 if it is not UTF-8."""
    first = data[at] & 0xFF
    size = 2
    low = 0x80
    high = 0xBF
    if first < 0xC2 or first > 0xF4:
        return 0
    if first >= 0xF0:
        size = 4
        if first == 0xF0:
            low = 0x90
        if first == 0xF4:
            high = 0x8F
    elif first >= 0xE0:
        size = 3
        if first == 0xE0:
            low = 0xA0
        if first == 0xED:
            high = 0x9F
    if end - at < size or data[at + 1] & 0xFF < low or data[at + 1] & 0xFF > high:
        return 0
    for number in range(2, size):
        if data[at + number] & 0xC0 != 0x80:
            return 0
    return size


def read_escape(text: Array, target: int, data: Array, at: int, end: int) -> tuple[int, int]:
    """Read what follows a backslash, and write it as UTF-8. Returns the position after it, and the bytes written."""
    if at >= end:
        return DOUBT, 0
    byte = data[at] & 0xFF
    code = 0
    if byte == 117:
        code = read_hex(data, at + 1, end)
        at += 5
        if 0xD800 <= code < 0xDC00 and end - at >= 2 and data[at] & 0xFF == _BACKSLASH and data[at + 1] & 0xFF == 117:
            low = read_hex(data, at + 2, end)
            if not 0xDC00 <= low < 0xE000:
                return DOUBT, 0
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
            at += 6
        if code < 0 or 0xD800 <= code < 0xE000:
            return DOUBT, 0
        return at, put_utf8(text, target, code)
    if byte == 110:
        code = 10
    elif byte == 116:
        code = 9
    elif byte == 114:
        code = 13
    elif byte == 98:
        code = 8
    elif byte == 102:
        code = 12
    elif byte == _QUOTE or byte == _BACKSLASH or byte == 47:
        code = byte
    else:
        return DOUBT, 0
    text[target] = code
    return at + 1, 1


def read_hex(data: Array, at: int, end: int) -> int:
    """Read four hexadecimal digits; returns `DOUBT` if these are none."""
    if end - at < 4:
        return DOUBT
    code = 0
    for number in range(4):
        byte = data[at + number] & 0xFF
        if _ZERO <= byte <= _NINE:
            digit = byte - _ZERO
        elif 65 <= byte & 0xDF <= 70:
            digit = (byte & 0xDF) - 55
        else:
            return DOUBT
        code = code * 16 + digit
    return code


def put_utf8(text: Array, target: int, code: int) -> int:
    """Write a character as UTF-8. Returns how many bytes it has."""
    if code < 0x80:
        text[target] = code
        return 1
    if code < 0x800:
        text[target] = 0xC0 | code >> 6
        text[target + 1] = 0x80 | code & 0x3F
        return 2
    if code < 0x10000:
        text[target] = 0xE0 | code >> 12
        text[target + 1] = 0x80 | code >> 6 & 0x3F
        text[target + 2] = 0x80 | code & 0x3F
        return 3
    text[target] = 0xF0 | code >> 18
    text[target + 1] = 0x80 | code >> 12 & 0x3F
    text[target + 2] = 0x80 | code >> 6 & 0x3F
    text[target + 3] = 0x80 | code & 0x3F
    return 4


def read_pair(data: Array, at: int) -> int:
    """Read two digits; returns 100 if these are none. The caller checks the bounds."""
    high: int = (data[at] & 0xFF) - _ZERO
    low: int = (data[at + 1] & 0xFF) - _ZERO
    if high < 0 or high > 9 or low < 0 or low > 9:
        return 100
    return high * 10 + low


def read_day(data: Array, at: int, end: int) -> tuple[int, int]:
    """Read a date as `2026-11-05`. Returns the position after it, and the days since 1970."""
    if end - at < 10 or data[at + 4] & 0xFF != _MINUS or data[at + 7] & 0xFF != _MINUS:
        return DOUBT, 0
    century = read_pair(data, at)
    of_century = read_pair(data, at + 2)
    month = read_pair(data, at + 5)
    day = read_pair(data, at + 8)
    if century > 99 or of_century > 99 or month < 1 or month > 12 or day < 1 or day > 31:
        return DOUBT, 0
    year = century * 100 + of_century
    if day > 28:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        if (month == 2 and (day > 29 or not leap)) or (
            day == 31 and (month == 4 or month == 6 or month == 9 or month == 11)
        ):
            return DOUBT, 0
    if month <= 2:
        year -= 1
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    era = year // 400
    of_era = year - era * 400
    return at + 10, era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def read_time(data: Array, at: int, end: int, local: bool) -> tuple[int, int]:
    """Read a timestamp as `2026-11-05T07:30:01.5+01:00`, up to its closing quote, in microseconds since 1970.

    If it is `local`, it has no zone. The time may be missing, the `T` may be a space.
    """
    at, days = read_day(data, at, end)
    if at < 0 or at >= end:
        return DOUBT, 0
    if data[at] & 0xFF == _QUOTE:
        return at + 1, days * 86_400_000_000
    if end - at < 10 or data[at + 3] & 0xFF != 58 or data[at + 6] & 0xFF != 58:
        return DOUBT, 0
    hour = read_pair(data, at + 1)
    minute = read_pair(data, at + 4)
    second = read_pair(data, at + 7)
    if (data[at] & 0xFF != 84 and data[at] & 0xFF != 32) or hour > 23 or minute > 59 or second > 59:
        return DOUBT, 0
    us = (days * 86_400 + hour * 3600 + minute * 60 + second) * 1_000_000
    at += 9
    if data[at] & 0xFF == _POINT:
        at += 1
        unit = 100_000
        while at < end and _ZERO <= data[at] & 0xFF <= _NINE:
            us += ((data[at] & 0xFF) - _ZERO) * unit
            unit //= 10
            at += 1
    at, offset = read_zone(data, at, end)
    if at < 0 or at >= end or data[at] & 0xFF != _QUOTE or (local and offset >= 0):
        return DOUBT, 0
    if offset >= 0:
        us -= (offset - 1440) * 60_000_000
    return at + 1, us


def read_zone(data: Array, at: int, end: int) -> tuple[int, int]:
    """Read `Z` or `+01:00`. Returns the position after it, and its minutes from UTC plus 1,440; -1 if there is none."""
    if at >= end or data[at] & 0xFF == _QUOTE:
        return at, -1
    if data[at] & 0xFF == 90:
        return at + 1, 1440
    sign = data[at] & 0xFF
    if (sign != 43 and sign != _MINUS) or end - at < 6 or data[at + 3] & 0xFF != 58:
        return DOUBT, 0
    hour = read_pair(data, at + 1)
    minute = read_pair(data, at + 4)
    if hour > 17 or minute > 59:
        return DOUBT, 0
    offset = hour * 60 + minute
    return at + 6, 1440 - offset if sign == _MINUS else 1440 + offset
