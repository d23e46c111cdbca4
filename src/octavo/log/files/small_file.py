"""Small files that are read whole: checkpoints, properties, marks.

They come from a disk and are not trusted. A file larger than any of its kind is not read. A file that breaks its format
raises `CorruptFile` with the file, the byte and the rule.
"""

from __future__ import annotations

from pathlib import Path

from octavo.errors import Corrupt
from octavo.log.storage import Storage


class CorruptFile(Corrupt):
    """The file at `path` cannot be what Kafka or Octavo wrote."""

    def __init__(self, path: Path, position: int, rule: str) -> None:
        super().__init__(position, rule)
        self.args = (path, position, rule)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: at byte {self.position}: {self.rule}"


def read_small_file(storage: Storage, path: Path, limit: int) -> bytes:
    """Read all of a file.

    Raises `FileNotFoundError`, `BadDirectory` if it is not a regular file, and `CorruptFile` if it exceeds `limit`.
    """
    file = storage.open(path)
    size = file.size()
    if size > limit:
        raise CorruptFile(path, limit, f"the file has {size:,} bytes, and none of its kind has more than {limit:,}")
    return file.read_at(size, 0)
