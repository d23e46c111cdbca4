"""Warn readers of a directory about problems that they would not notice. The logger is `octavo.log`."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.log.files.text_checkpoint import REPLICATION
from octavo.log.names import META_PROPERTIES
from octavo.log.partition_folders import find_partitions

if TYPE_CHECKING:
    from octavo.log.tiers import RemotePart
    from octavo.log.watched.watched_log import WatchedLog

_log: Final = logging.getLogger("octavo.log")
_SHOWN: Final = 5  # maximum number of names in a warning


def warn_of_unreadable_metadata(error: Exception) -> None:
    """Warn that the metadata are damaged or incomplete. Logs can be read without them."""
    _log.warning("%s. Logs are read all the same, with Kafka's defaults for what their topics set", error)


def warn_of_hidden_records(log: WatchedLog) -> None:
    """Warn if the checkpoint of high watermarks lacks the partition: readers then see no records, as in Kafka."""
    if log.lacks_high_watermark and log.end_offset > log.start_offset:
        _log.warning(
            "%s: %s does not name this partition, so none of its %d offsets is shown; Isolation.LOG_END shows them",
            log.folder,
            REPLICATION,
            log.end_offset - log.start_offset,
        )


def warn_of_remote_part(part: RemotePart | None) -> None:
    """Warn that a part of a tiered partition is not here, if there is one."""
    if part is not None:
        _log.warning("%s", part)


def warn_of_directories_inside(folders: Iterable[Path]) -> None:
    """Warn about folders that hold no partitions but data directories, such as those of several brokers."""
    for folder in folders:
        if find_partitions(folder):
            continue
        inside = [path.name for path in sorted(folder.iterdir()) if (path / META_PROPERTIES).exists()]
        if inside:
            names = ", ".join(inside[:_SHOWN]) + (", ..." if len(inside) > _SHOWN else "")
            _log.warning("%s has no partitions, but data directories in it: open one of them (%s)", folder, names)
