"""Clear away what will not be committed: staged files, and a pending commit that cannot be finished."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress

from octavo.log.ownership.lock import DirectoryLock
from octavo.log.ownership.owned_storage import OwnedStorage
from octavo.log.partition_folders import Paths, folder_paths
from octavo.log.staging.area import StagingArea, is_staged_name
from octavo.log.staging.writer import StagedFile
from octavo.log.storage import DISK, Storage


def discard_staged(paths: Paths, area: StagingArea, files: Iterable[StagedFile], *, storage: Storage = DISK) -> None:
    """Remove staged files that will not be committed, but for those that a pending commit needs. Takes no lock.

    Raises `CorruptFile` or `BadDirectory` if the journal of the directory cannot be read.
    """
    from octavo.log.staging.journal import journal_path, read_journal  # which takes a moment to load

    pending = read_journal(storage, journal_path(folder_paths(paths))).pending
    needed = () if pending is None else pending.files
    for file in files:
        if file.name not in needed and is_staged_name(file.name):
            with suppress(OSError):
                storage.remove(area.folder / file.name)


def give_up_commit(paths: Paths, *, storage: Storage = DISK) -> bool:
    """Forget a pending commit that cannot be finished; returns whether there was one. The logs stay as they are.

    Some of its records may be in the logs. If it is repeated, all of them are appended. Raises `DirectoryLocked`,
    `CorruptFile`, `BadDirectory` and `OSError`.
    """
    from octavo.log.staging.journal import journal_path, read_journal, write_journal

    folders = folder_paths(paths)
    with ExitStack() as locks:
        held = [locks.enter_context(DirectoryLock.acquire(folder, storage)) for folder in folders]
        path = journal_path(folders)
        journal = read_journal(storage, path)
        if journal.pending is None:
            return False
        write_journal(OwnedStorage(storage, held[0]), path, journal.with_pending(None))
        return True
