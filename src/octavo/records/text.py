"""Header keys, and names in control records: UTF-8, and where it is not UTF-8, the text that Java makes of it.

Java's `new String(bytes, UTF_8)` replaces what is malformed by U+FFFD as Python's `errors="replace"` does, with one
exception: the three bytes of a UTF-16 surrogate (ED A0..BF 80..BF), and what is left of them where they are cut,
are one mistake to Java and one a byte to Python.
"""

from __future__ import annotations

import re
from typing import Final

from octavo.errors import InvalidInput

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()


def read_text(data: bytes) -> str:
    """`data` as the string that Java makes of it; no input is refused."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub(_REPLACEMENT, data).decode(errors="replace")


def write_text(text: str) -> bytes:
    """`text` in UTF-8; raises `InvalidInput` for a lone surrogate, which has no UTF-8."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"text with a lone surrogate at character {error.start} has no UTF-8: {text!r}") from None
