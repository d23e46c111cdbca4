"""Convert header keys, and names in control records, between UTF-8 and text; malformed bytes read as in Java.

Like Python's `errors="replace"`, Java's `new String(bytes, UTF_8)` replaces malformed bytes by U+FFFD, with one
exception. The three bytes of a UTF-16 surrogate (ED A0..BF 80..BF), or the rest of them if they are cut off, become
one replacement character in Java and one for each byte in Python.
"""

from __future__ import annotations

import re
from typing import Final

from octavo.errors import InvalidInput

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()


def read_text(data: bytes) -> str:
    """Decode `data` as Java does; no input is refused."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, data).decode(errors="replace")


def write_text(text: str) -> bytes:
    """Encode `text` in UTF-8; raises `InvalidInput` for a lone surrogate, which UTF-8 cannot encode."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"text with a lone surrogate at character {error.start} has no UTF-8: {text!r}") from None
