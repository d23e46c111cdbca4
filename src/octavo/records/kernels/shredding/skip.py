"""Skip JSON that nobody asked for. It has to be sound, nevertheless: otherwise the whole value is in doubt."""

from __future__ import annotations

from octavo.records.kernels.machine import Array
from octavo.records.kernels.shredding.scalars import (
    DOUBT,
    is_false,
    is_null,
    is_true,
    read_hex,
    read_number,
    skip_space,
)

_MAX_DEPTH = 60  # one bit each, in 64


def skip_string(data: Array, at: int, end: int) -> int:
    """Return the position after a string, from after its quote, or `DOUBT`."""
    while at < end:
        byte = data[at] & 0xFF
        if byte == 34:
            return at + 1
        if byte < 32:
            return DOUBT
        at += 1
        if byte == 92:
            if at >= end:
                return DOUBT
            byte = data[at] & 0xFF
            at += 1
            if byte == 117:
                if read_hex(data, at, end) < 0:
                    return DOUBT
                at += 4
            elif not (
                byte == 34
                or byte == 92
                or byte == 47
                or byte == 98
                or byte == 102
                or byte == 110
                or byte == 114
                or byte == 116
            ):
                return DOUBT
    return DOUBT


def skip_scalar(data: Array, at: int, end: int) -> int:
    """Return the position after a value that is no object and no array, or `DOUBT`."""
    if at >= end:
        return DOUBT
    byte = data[at] & 0xFF
    if byte == 34:
        return skip_string(data, at + 1, end)
    if byte == 45 or 48 <= byte <= 57:
        after, _, _, _, _ = read_number(data, at, end)
        return after if after - at < 500 else DOUBT
    if is_null(data, at, end) or is_true(data, at, end):
        return at + 4
    return at + 5 if is_false(data, at, end) else DOUBT


def skip_name(data: Array, at: int, end: int) -> int:
    """Return the position of the value after a name and a colon, or `DOUBT`."""
    if at >= end or data[at] & 0xFF != 34:
        return DOUBT
    after = skip_string(data, at + 1, end)
    if after < 0 or after - at > 10_000:  # there is a limit to names
        return DOUBT
    at = skip_space(data, after, end)
    if at >= end or data[at] & 0xFF != 58:
        return DOUBT
    return skip_space(data, at + 1, end)


def skip_value(data: Array, at: int, end: int) -> int:
    """Return the position after any value, or `DOUBT`."""
    depth = 0
    objects = 0  # a bit for each level: whether it is an object
    while True:
        if at >= end:
            return DOUBT
        byte = data[at] & 0xFF
        if byte == 123 or byte == 91:
            if depth == _MAX_DEPTH:
                return DOUBT
            depth += 1
            objects = objects * 2 + (1 if byte == 123 else 0)
            at = skip_space(data, at + 1, end)
            if at >= end:
                return DOUBT
            if data[at] & 0xFF != byte + 2:
                if byte == 123:
                    at = skip_name(data, at, end)
                    if at < 0:
                        return DOUBT
                continue
        else:
            at = skip_scalar(data, at, end)
            if at < 0 or depth == 0:
                return at
            at = skip_space(data, at, end)
        while True:  # after a value, or at the end of an empty object or array
            if at >= end:
                return DOUBT
            byte = data[at] & 0xFF
            if byte == 44:
                break
            if byte != (125 if objects & 1 else 93):
                return DOUBT
            objects >>= 1
            depth -= 1
            at += 1
            if depth == 0:
                return at
            at = skip_space(data, at, end)
        at = skip_space(data, at + 1, end)
        if objects & 1:
            at = skip_name(data, at, end)
            if at < 0:
                return DOUBT
