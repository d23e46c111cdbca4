"""Separators of keys and records on the command line."""

from __future__ import annotations

import argparse
import re
from typing import Final

_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)


def delimiter(text: str) -> bytes:
    """Return a separator, in which \\n, \\t, \\r, \\0, \\\\ and \\xFF stand for a byte. An argument of argparse."""
    found = unescape(text)
    if not found:
        raise argparse.ArgumentTypeError("it must not be empty")
    return found


def unescape(text: str) -> bytes:
    """Return text as bytes, with escapes replaced by the bytes that they stand for."""

    def replaced(escape: re.Match[bytes]) -> bytes:
        name = escape[1].decode("utf-8", "surrogateescape")
        return bytes.fromhex(name[1:]) if len(name) == 3 else _ESCAPES.get(name, escape[0])

    return _ESCAPE.sub(replaced, text.encode("utf-8", "surrogateescape"))
