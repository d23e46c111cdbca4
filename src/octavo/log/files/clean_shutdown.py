"""The clean shutdown file. If it exists, nothing needs to be recovered.

It is created when all logs are closed and on disk, and removed before the first log is opened. So a directory that is
open, or was left by a crash, does not have it.

The file holds the epoch under which the broker that wrote it was registered (KIP-966); older releases left it empty. A
starting broker reports this epoch. If it differs from the controller's epoch for the broker, or if the broker's folders
disagree, the controller treats the shutdown as unclean: it removes the broker from all in-sync replicas and elects new
leaders. So Octavo writes back the epoch that it found. If it found none, it writes -1. That happens after a crash,
where Kafka itself reports -1, and in a directory on which no broker has run, where nobody compares the epoch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from octavo.errors import CorruptFile
from octavo.log.files.small_file import read_small_file
from octavo.log.names import CLEAN_SHUTDOWN
from octavo.log.storage import Storage

NO_BROKER_EPOCH: Final = -1

_VERSION: Final = 0
_MAX_SIZE: Final = 4096


def was_clean(folder: Path) -> bool:
    """Return whether the last process that wrote to this directory closed it cleanly."""
    return (folder / CLEAN_SHUTDOWN).exists()


def read_broker_epoch(storage: Storage, folder: Path) -> int:
    """Read the broker epoch from the clean shutdown file; `NO_BROKER_EPOCH` if there is no file or no epoch in it."""
    try:
        content = json.loads(read_small_file(storage, folder / CLEAN_SHUTDOWN, _MAX_SIZE))
        epoch = content["brokerEpoch"]
    except (FileNotFoundError, CorruptFile, ValueError, KeyError, TypeError, RecursionError):
        return NO_BROKER_EPOCH  # to open the logs, the file need only exist; Kafka ignores bad content too
    return epoch if type(epoch) is int else NO_BROKER_EPOCH


def write_mark(storage: Storage, folder: Path, broker_epoch: int = NO_BROKER_EPOCH) -> None:
    """Mark the directory as cleanly closed. The mark is on disk when this returns."""
    content = {"version": _VERSION, "brokerEpoch": broker_epoch}
    storage.replace_file(folder / CLEAN_SHUTDOWN, json.dumps(content, separators=(",", ":")).encode())


def remove_mark(storage: Storage, folder: Path) -> bool:
    """Remove the mark. Returns whether there was one. The removal is synced, so that no crash can bring it back."""
    try:
        storage.remove(folder / CLEAN_SHUTDOWN)
    except FileNotFoundError:
        return False
    storage.sync_folder(folder)
    return True
