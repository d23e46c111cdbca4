"""Handle damaged batches: `onCorruption` = fail | skip | quarantine.

    fail         the task fails with an error that names the file, the position and the rule that the bytes break
    skip         the bytes are left out; the task logs each place, and the total. With quarantinePath, it also writes a
                 small JSON file there that describes them
    quarantine   like skip, and a copy of the bytes is written to quarantinePath, too

Files in quarantinePath are named after the partition and the position of the bytes, so a task that is run again writes
the same files.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.errors import CorruptFile, FormatError
from octavo.log.segment.damage import BatchSearch
from octavo.log.storage import DISK, File
from octavo.spark.files import RemoteStorage, Root
from octavo.spark.options import OnCorruption, Options
from octavo.spark.slices import Slice

_log = logging.getLogger("octavo.spark")

_KEPT_AT_ONCE: Final = 8 << 20


class Skipped(NamedTuple):
    """Damaged bytes that were left out, and the rule that they break."""

    piece: Slice
    path: Path
    position: int
    size: int
    rule: str

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the JSON file that describes the damage."""
        return {
            "topic": self.piece.partition.topic,
            "partition": self.piece.partition.partition,
            "file": str(self.path),
            "position": self.position,
            "size": self.size,
            "rule": self.rule,
        }


class Corruption:
    """Handles the damage that a task finds, as `onCorruption` says."""

    def __init__(self, options: Options) -> None:
        self._mode: Final = options.on_corruption
        self._folder: Final = options.quarantine_path
        self._search: Final = BatchSearch()
        self.skipped: Final[list[Skipped]] = []

    def skip(self, file: File, piece: Slice, position: int, error: FormatError) -> int:
        """Skip the damage at `position` and return the position of the next batch.

        Raises `CorruptFile` if `onCorruption` is fail.
        """
        if self._mode is OnCorruption.FAIL:
            raise CorruptFile(file.path, position, error.rule) from None
        behind = self._search.next_batch(file, position, piece.end)
        skipped = Skipped(piece, file.path, position, behind - position, error.rule)
        self.skipped.append(skipped)
        _log.warning("%s: %d bytes at byte %d are left out: %s", file.path, skipped.size, position, error.rule)
        if self._folder:
            self._write_to_quarantine(file, skipped, Root(self._folder))
        return behind

    def log_total(self) -> None:
        """Log the total number of damaged places and bytes that the task left out."""
        if self.skipped:
            size = sum(skipped.size for skipped in self.skipped)
            _log.warning("%d damaged places were left out, %d bytes in all", len(self.skipped), size)

    def _write_to_quarantine(self, file: File, skipped: Skipped, folder: Root) -> None:
        piece = skipped.piece
        name = f"{piece.partition}-{piece.base_offset:020d}-{skipped.position}"
        told = {**skipped.as_json(), "bytes": None}
        if self._mode is OnCorruption.QUARANTINE:
            told["bytes"] = name + ".bin"
            with _create(folder, name + ".bin") as target:
                for at in range(skipped.position, skipped.position + skipped.size, _KEPT_AT_ONCE):
                    target.write(file.read_at(min(_KEPT_AT_ONCE, skipped.position + skipped.size - at), at))
        with _create(folder, name + ".json") as target:
            target.write(json.dumps(told).encode() + b"\n")


def _create(folder: Root, name: str) -> Any:
    """Create a local or remote file and open it for writing."""
    storage = folder.storage()
    if isinstance(storage, RemoteStorage):
        return storage.filesystem.open_output_stream(str(folder.path() / name))
    assert storage is DISK
    folder.path().mkdir(parents=True, exist_ok=True)
    return (folder.path() / name).open("wb")
