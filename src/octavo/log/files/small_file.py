"""Small files that are read whole: checkpoints, properties, marks.

They come from a disk and are not trusted. A file larger than any of its kind is not read. A file that breaks its format
raises `CorruptFile` with the file, the byte and the rule.
"""

from __future__ import annotations

from pathlib import Path

from octavo.errors import CorruptFile
from octavo.log.storage import Storage


def read_small_file(storage: Storage, path: Path, limit: int) -> bytes:
    """Read all of a file.

    Raises `FileNotFoundError`, `BadDirectory` if it is not a regular file, and `CorruptFile` if it exceeds `limit`.
    """
    file = storage.open(path)
    size = file.size()
    if size > limit:
        raise CorruptFile(path, limit, f"the file has {size:,} bytes, and none of its kind has more than {limit:,}")
    return file.read_at(size, 0)
