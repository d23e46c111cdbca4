"""Make text harmless for a terminal, which obeys some of the characters that it is sent."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return text with every character escaped that is not printable, as Python would escape it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
