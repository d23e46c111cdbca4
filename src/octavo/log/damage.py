"""What becomes of who walks through a segment file and meets bytes that are no batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from octavo.errors import FormatError
from octavo.log.small_file import CorruptFile
from octavo.log.storage import File

# Is told what is wrong at the error's position of a file, and up to where the walk goes. It raises, or says where to go
# on: at a batch, or at that end.
OnDamage = Callable[[File, FormatError, int], int]


def refuse(file: File, error: FormatError, end: int) -> NoReturn:
    """For who has to see everything up to `end`. Raises `CorruptFile`."""
    raise CorruptFile(file.path, error.position, error.rule) from None
