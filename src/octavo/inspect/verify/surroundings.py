"""What the files of a data directory say about one of its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from octavo.log.names import CLEAN_SHUTDOWN, META_PROPERTIES, TopicPartition
from octavo.log.ownership.lock import is_locked

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
CHECKPOINTS: Final = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS, CLEANER_OFFSETS)

_MAX_SIZE: Final = 64 << 20  # of a checkpoint; one with a million partitions has less


@dataclass(frozen=True)
class Surroundings:
    """What is known of a partition from the files beside its folder; None for what they do not say."""

    is_known: bool = False  # whether the partition lies in a data directory at all
    is_clean: bool = False  # whether a clean shutdown was the last that happened: nobody writes, nothing is torn
    recovery_point: int | None = None
    log_start: int | None = None
    high_watermark: int | None = None
    cleaner_offset: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether a broker is at work in the directory, or has crashed there: what it was writing may be unfinished."""
        return self.is_known and not self.is_clean


NOWHERE: Final = Surroundings()


class DirectoryNotes:
    """The checkpoints and the mark of a clean shutdown of one data directory, read once for all its partitions.

    A checkpoint that is missing or damaged says nothing here; whether it is damaged is checked elsewhere.
    """

    def __init__(self, path: Path) -> None:
        files = (META_PROPERTIES, CLEAN_SHUTDOWN, *CHECKPOINTS)
        self._is_known = any((path / name).exists() for name in files)
        # Brokers before 2.8 open all logs, and preallocate their indexes, before they remove the mark at a start.
        self._is_clean = (path / CLEAN_SHUTDOWN).exists() and not is_locked(path)
        self._checkpoints = [dict(_entries(path / name)) for name in CHECKPOINTS]

    def of(self, partition: TopicPartition | None) -> Surroundings:
        """Return what is known of one partition. A folder without the name of one is in no checkpoint."""
        offsets = [None if partition is None else each.get(partition) for each in self._checkpoints]
        return Surroundings(self._is_known, self._is_clean, *offsets)


def surroundings(folder: Path) -> Surroundings:
    """Return what the data directory in which a partition's folder lies says about it."""
    folder = folder.absolute()
    return DirectoryNotes(folder.parent).of(TopicPartition.parse(folder.name))


def _entries(path: Path) -> Iterator[tuple[TopicPartition, int]]:
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            lines = file.read(_MAX_SIZE).decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines[2:]:
        words = line.split()
        if len(words) == 3 and words[1].isascii() and words[1].isdigit() and words[2].lstrip("-").isdecimal():
            yield TopicPartition(words[0], int(words[1])), int(words[2])
