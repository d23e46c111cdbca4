"""The lists of all checks. A module of checks takes part by being named here."""

from __future__ import annotations

from typing import Final

from octavo.inspect.verify.directory import DirectoryCheck
from octavo.inspect.verify.partition import BatchCheck, FolderCheck

# Each is called with a `PartitionFolder` before any batch is read.
FOLDER_CHECKS: Final[list[FolderCheck]] = []

# Each is made once for a partition folder, and is shown the batches of all its segments.
BATCH_CHECKS: Final[list[type[BatchCheck]]] = []

# Each is called with a `DirectoryFolder`: the files of a data directory itself, not those of its partitions.
DIRECTORY_CHECKS: Final[list[DirectoryCheck]] = []
