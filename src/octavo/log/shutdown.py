"""The mark of a clean shutdown: that the file is there says that nothing needs to be recovered.

It is made when all logs are closed and on the disk, and removed before the first is opened: while a directory is open,
or was left by a crash, it has none.

Inside stands the epoch under which the broker that wrote it was registered (KIP-966); older releases left the file
empty. A starting broker reports it, and where it is not the epoch that the controller has of the broker, or where the
folders of a broker do not agree, the controller takes the shutdown for unclean: it takes the broker out of all in-sync
replicas and elects leaders anew. So Octavo writes the epoch that it found. Where it found none it writes -1: after a
crash, as Kafka itself reports it then, and in a directory on which no broker has run, where nobody compares it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from octavo.log.names import CLEAN_SHUTDOWN
from octavo.log.small_file import CorruptFile, read_small_file
from octavo.log.storage import Storage

NO_BROKER_EPOCH: Final = -1

_VERSION: Final = 0
_MAX_SIZE: Final = 4096


def was_clean(folder: Path) -> bool:
    """Whether the last to write to this directory closed it in good order."""
    return (folder / CLEAN_SHUTDOWN).exists()


def read_broker_epoch(storage: Storage, folder: Path) -> int:
    """The epoch of the broker that made the mark; `NO_BROKER_EPOCH` where there is no mark, or it does not say."""
    try:
        content = json.loads(read_small_file(storage, folder / CLEAN_SHUTDOWN, _MAX_SIZE))
        epoch = content["brokerEpoch"]
    except (FileNotFoundError, CorruptFile, ValueError, KeyError, TypeError, RecursionError):
        return NO_BROKER_EPOCH  # to open the logs it is enough that the mark exists; Kafka as well reads on from here
    return epoch if type(epoch) is int else NO_BROKER_EPOCH


def write_mark(storage: Storage, folder: Path, broker_epoch: int = NO_BROKER_EPOCH) -> None:
    """Mark the directory as closed in good order; on the disk when this returns."""
    content = {"version": _VERSION, "brokerEpoch": broker_epoch}
    storage.replace_file(folder / CLEAN_SHUTDOWN, json.dumps(content, separators=(",", ":")).encode())


def remove_mark(storage: Storage, folder: Path) -> bool:
    """Remove the mark; whether there was one. On the disk when this returns, so that no crash can bring it back."""
    try:
        storage.remove(folder / CLEAN_SHUTDOWN)
    except FileNotFoundError:
        return False
    storage.sync_folder(folder)
    return True
