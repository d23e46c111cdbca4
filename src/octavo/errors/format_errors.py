"""Errors for bytes that break a rule of the format."""

from __future__ import annotations

from pathlib import Path

from octavo.errors.root import OctavoError


class FormatError(OctavoError):
    """The bytes at `position` break the rule `rule`.

    `position` counts from the start of the buffer that the caller passed in. If the bytes are inside
    a compressed stream, it is the position of the batch that holds the stream.
    """

    def __init__(self, position: int, rule: str) -> None:
        super().__init__(position, rule)
        self.position = position
        self.rule = rule

    def __str__(self) -> str:
        return f"at byte {self.position}: {self.rule}"


class Truncated(FormatError):
    """The bytes end before the end of the structure that starts at `position`."""


class Corrupt(FormatError):
    """The bytes at `position` cannot be what a writer wrote."""


class ChecksumMismatch(Corrupt):
    """The stored checksum does not match the bytes that it covers."""

    def __init__(self, position: int, stored: int, computed: int) -> None:
        super().__init__(position, f"checksum is {stored:#010x} but the bytes give {computed:#010x}")
        self.args = (position, stored, computed)
        self.stored = stored
        self.computed = computed


class BadLength(Corrupt):
    """A length, size or count is not possible at its place."""


class BadVarint(Corrupt):
    """A variable-length integer continues after its last possible byte."""


class BadRecord(Corrupt):
    """A record breaks a rule of its batch."""


class BadCompression(Corrupt):
    """A compressed stream does not decompress."""


class CorruptFile(Corrupt):
    """The file at `path` cannot be what Kafka or Octavo wrote."""

    def __init__(self, path: Path, position: int, rule: str) -> None:
        super().__init__(position, rule)
        self.args = (path, position, rule)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: at byte {self.position}: {self.rule}"


class LimitExceeded(FormatError):
    """A structure is larger than the limit that the caller set."""

    def __init__(self, position: int, what: str, size: int | None, limit: int) -> None:
        declared = "more" if size is None else f"{size:,} bytes"
        super().__init__(position, f"{what} would take {declared}, above the limit of {limit:,} bytes")
        self.args = (position, what, size, limit)
        self.what = what
        self.size = size
        self.limit = limit


class Unsupported(FormatError):
    """The bytes are of a kind that Octavo does not handle: an unknown magic, codec or combination."""
