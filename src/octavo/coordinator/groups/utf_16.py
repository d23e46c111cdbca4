"""How long texts are for Kafka, which counts units of UTF-16: `utf_16_length`."""

from __future__ import annotations


def utf_16_length(text: str) -> int:
    """Return the number of units that a text has in UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
