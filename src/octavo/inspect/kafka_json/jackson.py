"""Print JSON as Jackson does, byte for byte: no spaces, and only those characters escaped that have to be."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

_MUST_ESCAPE: Final = re.compile(r'["\\\x00-\x1f]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_LEAST_PLAIN: Final = 1e-3  # smaller numbers, and those from _LEAST_SCIENTIFIC on, have an exponent
_LEAST_SCIENTIFIC: Final = 1e7


def to_text(node: Any) -> str:
    """Return the text of a tree of dictionaries, lists, strings, numbers, booleans and None."""
    if isinstance(node, dict):
        return "{" + ",".join(f"{_string(name)}:{to_text(value)}" for name, value in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(to_text, node)) + "]"
    if isinstance(node, str):
        return _string(node)
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    return java_double(node) if isinstance(node, float) else str(node)


def java_double(number: float) -> str:
    """Return a number as Java prints a double, in the fewest digits; text in quotes for what is no number in JSON.

    Before version 19 Java prints a digit more than needed for some numbers.
    """
    if not math.isfinite(number):
        return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'
    negative, numbers, exponent = Decimal(repr(number)).as_tuple()
    assert isinstance(exponent, int)
    sign = "-" if negative else ""
    if number == 0:
        return sign + "0.0"
    digits = "".join(map(str, numbers))
    point = len(digits) + exponent  # how many digits are before the point
    digits = digits.rstrip("0")
    if _LEAST_PLAIN <= abs(number) < _LEAST_SCIENTIFIC:
        padded = "0" * (1 - point) + digits
        point = max(point, 1)
        return f"{sign}{padded[:point].ljust(point, '0')}.{padded[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _string(text: str) -> str:
    return '"' + _MUST_ESCAPE.sub(_escape, text) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"
