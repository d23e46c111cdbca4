"""Find the transactions that are open in the files of a partition, without a lock and without changing anything.

Readers of committed data stop before the first of them. What a producer did is read from its newest usable snapshot and
the batches after it, as a broker does when it opens the log.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from octavo.errors import CorruptFile, FormatError, LogError
from octavo.log.config.log_config import LogConfig
from octavo.log.names import TopicPartition
from octavo.log.producer_state.replay import Replay, snapshots_of
from octavo.log.producer_state.snapshot import read_snapshot
from octavo.log.storage import DISK
from octavo.log.watched.watched_log import WatchedLog

_NEVER: Final = 1 << 62  # milliseconds after which a producer is forgotten
_MS: Final = 1000


class OpenTransaction(NamedTuple):
    """A transaction without a marker."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int  # of the producer's last marker; -1 if it has none
    start_offset: int
    last_timestamp_ms: int
    end_offset: int  # of the log


def open_transactions(folder: Path, partition: TopicPartition | None = None) -> list[OpenTransaction]:
    """Return the open transactions of a partition's folder, the first ones first.

    Raises `FormatError` and `LogError` if the log is damaged or has no segments, and `OSError`.
    """
    named = partition or TopicPartition.parse(folder.absolute().name) or TopicPartition("unknown", 0)
    log = WatchedLog(DISK, folder, named, LogConfig())
    try:
        view = log.view
        replay = Replay(DISK, folder)
        _load(replay, view.start_offset, view.end_offset)
        replay.run(view.segments, view.end_offset)
    finally:
        log.close()
    found = []
    for start_offset, producer_id in sorted(replay.states.open_transactions.items()):
        entry = replay.states.entries[producer_id]
        found.append(
            OpenTransaction(
                named,
                producer_id,
                entry.epoch,
                entry.coordinator_epoch,
                start_offset,
                entry.last_timestamp_ms,
                view.end_offset,
            )
        )
    return found


def _load(replay: Replay, start_offset: int, end_offset: int) -> None:
    """Begin with the newest snapshot that can be read. None is removed."""
    replay.offset = start_offset
    for offset in reversed(snapshots_of(replay.path(0).parent)):
        if not start_offset < offset <= end_offset:
            continue
        try:
            entries = read_snapshot(DISK, replay.path(offset))
        except (CorruptFile, FileNotFoundError):
            continue
        replay.states.load(entries, time.time_ns() // (_MS * _MS), _NEVER)
        replay.offset = offset
        return


def notes(folder: Path) -> Iterator[str]:
    """Yield a sentence if readers of committed data do not get to the end of a partition that can be read."""
    try:
        found = open_transactions(folder)
    except (FormatError, LogError, OSError):
        return  # what is wrong with it is told as a problem
    if found:
        first, more = found[0], len(found) - 1
        others = f", and {more:,} more" if more else ""
        yield (
            f"{folder}: a transaction of producer {first.producer_id} is open since offset {first.start_offset}{others}"
            f": readers of committed data stop there, and the log ends at {first.end_offset}"
        )
