"""Open staged files for reading, a few at a time: there may be more of them than a process can open."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

from octavo.errors import CorruptFile, InvalidInput
from octavo.log.staging.area import is_staged_name
from octavo.log.storage import File, Storage

_MOST_OPEN: Final = 64


class StagedFiles:
    """The staged files in one folder. Any thread may open them."""

    def __init__(self, folder: Path, storage: Storage) -> None:
        self._folder: Final = folder
        self._storage: Final = storage
        self._lock: Final = threading.Lock()
        self._open: Final[dict[str, File]] = {}  # the last to be used comes last

    def open(self, name: str) -> File:
        """Return a staged file, open for reading. Raises `CorruptFile` if it is missing.

        Raises `InvalidInput` if no staged file has such a name: that might lead anywhere.
        """
        if not is_staged_name(name):
            raise InvalidInput(f"{name!r} is not the name of a staged file")
        with self._lock:
            file = self._open.pop(name, None)
            if file is None:
                if len(self._open) >= _MOST_OPEN:
                    del self._open[next(iter(self._open))]
                try:
                    file = self._storage.open(self._folder / name)
                except FileNotFoundError:
                    raise CorruptFile(self._folder / name, 0, "the staged file is missing") from None
            self._open[name] = file
            return file
