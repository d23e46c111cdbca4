"""The one exception tree.

    OctavoError
    ├── FormatError               bytes break a rule of the format; has `position` and `rule`
    │   ├── Truncated             the bytes end before the structure does
    │   ├── Corrupt               the bytes cannot be what a writer wrote
    │   │   ├── ChecksumMismatch  stored and computed checksum differ
    │   │   ├── BadLength         a length, size or count is impossible where it stands
    │   │   ├── BadVarint         a varint does not end where the longest one must
    │   │   ├── BadRecord         a record breaks a rule of its batch
    │   │   └── BadCompression    a compressed stream does not decompress
    │   ├── LimitExceeded         the structure is larger than the caller allows
    │   └── Unsupported           well formed, but of a kind that cannot be handled
    └── InvalidInput              the caller asked for something that the format cannot express

Exceptions carry data in fields; `str()` tells a person what is wrong and where. A torn tail (a
last batch that is not all there) is not an error unless somebody asks for that very batch.
"""

from __future__ import annotations


class OctavoError(Exception):
    """Root of everything that Octavo raises on purpose."""


class FormatError(OctavoError):
    """Bytes at `position` break `rule`.

    `position` counts from the start of the buffer that was handed in. Where the bytes lie inside
    a compressed stream it is the position of the batch that holds the stream.
    """

    def __init__(self, position: int, rule: str) -> None:
        super().__init__(position, rule)
        self.position = position
        self.rule = rule

    def __str__(self) -> str:
        return f"at byte {self.position}: {self.rule}"


class Truncated(FormatError):
    """The bytes end before the structure that starts at `position` does."""


class Corrupt(FormatError):
    """The bytes at `position` cannot be what a writer wrote."""


class ChecksumMismatch(Corrupt):
    """The stored checksum is not that of the bytes it covers."""

    def __init__(self, position: int, stored: int, computed: int) -> None:
        super().__init__(position, f"checksum is {stored:#010x} but the bytes give {computed:#010x}")
        self.args = (position, stored, computed)
        self.stored = stored
        self.computed = computed


class BadLength(Corrupt):
    """A length, size or count is impossible where it stands."""


class BadVarint(Corrupt):
    """A variable-length integer goes on after its last possible byte."""


class BadRecord(Corrupt):
    """A record breaks a rule of its batch."""


class BadCompression(Corrupt):
    """A compressed stream does not decompress."""


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
    """The bytes are of a kind that cannot be handled: an unknown magic, codec or combination."""


class InvalidInput(OctavoError, ValueError):
    """The caller asked for something that the format cannot express."""
