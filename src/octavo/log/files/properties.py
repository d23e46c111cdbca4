r"""Read and write Java's properties files, as `java.util.Properties` does.

    # a comment; ! starts one too
    key = value          # '=', ':' or blanks separate key and value; blanks around them belong to neither
    long = one \
           value         # a backslash at the end of a line joins the next line, without its leading blanks

Bytes are Latin-1. Other characters and control characters are written as `\uXXXX`. Comments are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from octavo.errors import Corrupt

_LINE: Final = re.compile(
    r"""
    (?: [ \t\f\r\n]                            # blanks, and lines of nothing else
      | \\ (?: \r\n | [\r\n] (?!\Z) )          # or of a backslash alone
    )*
    (?: (?P<comment> [#!] [^\r\n]* )           # never continued
      | (?P<text> (?: \\ (?: \r\n | [\s\S] | \Z ) | [^\\\r\n] )* )
    )
    (?: \r\n | [\r\n] | \Z )
    """,
    re.VERBOSE,
)
_JOIN: Final = re.compile(
    r"(\\[^\r\n])|\\(?:\r\n|[\r\n]|\Z)[ \t\f]*"
)  # group 1: an escaped character, which does not join lines
_SPLIT: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_MARKS: Final = {letter: f"\\{name}" for name, letter in _LETTERS.items()} | {mark: f"\\{mark}" for mark in "\\=:#!"}


def read_properties(data: bytes) -> dict[str, str]:
    """Parse a properties file. If a name occurs several times, the last counts. Raises `Corrupt` for a bad escape."""
    text = data.decode("latin-1")
    properties: dict[str, str] = {}
    position = 0
    while position < len(text):
        line = _LINE.match(text, position)
        assert line is not None  # the pattern matches at any position
        if line["text"]:
            joined = _JOIN.sub(r"\1", line["text"])
            key = _SPLIT.match(joined)
            assert key is not None
            properties[_plain(key[1], position)] = _plain(joined[key.end() :], position)
        position = line.end()
    return properties


def write_properties(properties: Mapping[str, str], comments: Iterable[str] = ()) -> bytes:
    """Return the bytes of a file with comments (one line each, without the `#`) and the properties sorted by name."""
    lines = [f"#{comment}" for comment in comments]
    lines += [
        f"{_escaped(key, blanks=True)}={_escaped(value, blanks=False)}" for key, value in sorted(properties.items())
    ]
    return "".join(f"{line}\n" for line in lines).encode("latin-1", "backslashreplace")


def _plain(text: str, position: int) -> str:
    def character(escape: re.Match[str]) -> str:
        name = escape[1]
        if len(name) > 1:
            return chr(int(name[1:], 16))
        if name == "u":
            raise Corrupt(position, r"\u must be followed by four hexadecimal digits")
        return _LETTERS.get(name, name)

    if "\\" not in text:
        return text
    units = _ESCAPE.sub(character, text)
    # Java's characters are UTF-16 units: a character that needs two of them is written as two escapes.
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _escaped(text: str, *, blanks: bool) -> str:
    """Escape a key or a value. `blanks`: escape every space, as keys need; a value would lose only a leading one."""
    units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    parts = []
    for index, unit in enumerate(units):
        character = chr(unit)
        if character == " ":
            parts.append("\\ " if blanks or index == 0 else " ")
        elif character in _MARKS:
            parts.append(_MARKS[character])
        else:
            parts.append(character if 0x20 <= unit <= 0x7E else f"\\u{unit:04X}")
    return "".join(parts)
