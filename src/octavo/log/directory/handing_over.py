"""Hand a data directory over to Apache Kafka, with every commit of staged batches finished: `handover`.

Kafka knows nothing of such commits. If one is pending, its records may be in some of the partitions and not in others,
and consumers would see that until Octavo opens the directory again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from octavo.errors import CommitPending
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata import Handover
from octavo.log.metadata import handover as handover_metadata
from octavo.log.names import COMMIT_JOURNAL
from octavo.log.storage import DISK, Storage


def handover(folders: Sequence[Path], *, storage: Storage = DISK) -> Handover:
    """Prepare the directory in `folders` so that a stock Apache Kafka 4.x starts on it and serves it.

    A commit of staged batches that was interrupted is finished first. Raises `DirectoryLocked`, `BadDirectory`,
    `CorruptFile` and `OSError` if that is not possible, `CommitUnresolved` if a commit cannot be finished, and
    `CommitPending` if there is no room for it on the disk.
    """
    was_pending = _has_pending(folders, storage)
    if was_pending:
        DataDirectory.open(folders, storage=storage).close()
        if _has_pending(folders, storage):
            raise CommitPending("the disk is full")
    return replace(handover_metadata(folders, storage=storage), finished_commit=was_pending)


def _has_pending(folders: Sequence[Path], storage: Storage) -> bool:
    if not any((folder / COMMIT_JOURNAL).exists() for folder in folders):
        return False
    from octavo.log.staging.journal import journal_path, read_journal  # which takes a moment to load

    return read_journal(storage, journal_path(list(folders))).pending is not None
