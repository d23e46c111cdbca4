"""The rules of the checkpoints of a data directory: one offset for each partition.

Kafka writes a checkpoint from time to time, and all of them when it shuts down. So they may be behind the logs, but
never ahead of them; and after a clean shutdown they name only partitions that exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from octavo.inspect.verify.batch_columns import Table
from octavo.inspect.verify.directory import DirectoryFolder
from octavo.inspect.verify.log_end import LogEnd
from octavo.inspect.verify.partition import PartitionFolder, SegmentData
from octavo.inspect.verify.problem import Problem, Rule
from octavo.inspect.verify.surroundings import (
    CHECKPOINTS,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
)
from octavo.inspect.verify.text_lines import MAX_SIZE, Line, read_checkpoint
from octavo.log.names import CLEAN_SHUTDOWN, AsideFolder, TopicPartition

KIND: Final = "offset checkpoint"
_MEND: Final = (
    "Stop the broker and mend the lines: a version of 0, the number of entries, and for each partition its topic, "
    "number and offset. Without recovery points Kafka recovers all of a directory that was not shut down cleanly, and "
    "without start offsets it serves records again that were deleted."
)

FORMAT: Final = Rule.declare(
    "checkpoint-format",
    KIND,
    means="Kafka cannot read the checkpoint: it ignores it, or does not start if it is that of high watermarks.",
    repair=_MEND,
)
ENTRY: Final = Rule.declare(
    "checkpoint-entry",
    KIND,
    means="An entry names no partition, or an offset that no log has.",
    repair="Stop the broker, remove the line and lower the count in the second line by one.",
)
DUPLICATE: Final = Rule.declare(
    "checkpoint-duplicate",
    KIND,
    means="A partition has two entries; Kafka believes the last one.",
    repair="Stop the broker, remove the line that is wrong and lower the count in the second line by one.",
)
UNKNOWN_PARTITION: Final = Rule.declare(
    "checkpoint-unknown-partition",
    KIND,
    means="The checkpoint names a partition that is not in the directory: its folder was lost or moved away.",
    repair="Restore the folder; if the partition was deleted, stop the broker, remove the line and lower the count in "
    "the second line by one.",
)
RECOVERY_POINT: Final = Rule.declare(
    "recovery-point-beyond-end",
    KIND,
    means="The log was flushed further than it reaches now: records that were on the disk are missing.",
    repair="Restore the end of the log from another replica; Kafka itself goes on with the shorter log.",
)
HIGH_WATERMARK: Final = Rule.declare(
    "high-watermark-beyond-end",
    KIND,
    means="The log ends before its high watermark: records that were acknowledged and may have been read are missing.",
    repair="Restore the end of the log from another replica; Kafka itself goes on with the shorter log.",
)
LOG_START: Final = Rule.declare(
    "log-start-beyond-end",
    KIND,
    means="The log ends before its start offset: Kafka deletes all of its segments when it starts.",
    repair="Before Kafka starts, remove the partition's line and lower the count in the second line by one, or restore "
    "the end of the log.",
)
CLEANER_OFFSET: Final = Rule.declare(
    "cleaner-offset-beyond-end",
    KIND,
    means="The log was compacted further than it reaches now: records are missing at its end.",
    repair="Restore the end of the log from another replica; otherwise stop the broker, remove the partition's line "
    "and lower the count in the second line by one, so that Kafka compacts the log from its start.",
)

_BEYOND_END: Final = {
    RECOVERY_POINTS: RECOVERY_POINT,
    LOG_STARTS: LOG_START,
    HIGH_WATERMARKS: HIGH_WATERMARK,
    CLEANER_OFFSETS: CLEANER_OFFSET,
}


def check_checkpoints(folder: DirectoryFolder) -> Iterator[Problem]:
    """Check the four checkpoints of a data directory by themselves, and whether their partitions exist."""
    existing = _existing(folder)
    is_recent = False  # whether the checkpoint of recovery points names a partition that exists
    for name in CHECKPOINTS:
        if name not in folder.files:
            continue
        lines, bad = read_checkpoint(folder.read(name, MAX_SIZE), 3)
        if bad is not None:
            yield FORMAT.broken(name, position=bad.position, found=bad.what)
        named = [(line, partition_of(line)) for line in lines]
        # If no partition is left in a directory, Kafka does not write its checkpoints any more.
        is_current = any(partition in existing for _, partition in named)
        if name == RECOVERY_POINTS:
            is_recent = is_current
        elif name == LOG_STARTS:
            is_current |= is_recent  # Kafka writes both together, and this one has few partitions
        yield from _check_lines(name, named, existing, is_current=is_current and CLEAN_SHUTDOWN in folder.files)


def _check_lines(
    name: str,
    named: list[tuple[Line, TopicPartition | None]],
    existing: set[TopicPartition],
    *,
    is_current: bool,
) -> Iterator[Problem]:
    seen: set[TopicPartition] = set()
    for line, partition in named:
        offset = line.number(2)
        if partition is None or offset is None or offset < 0:
            yield ENTRY.broken(name, position=line.position, found=" ".join(line.words)[:300])
        elif partition in seen:
            yield DUPLICATE.broken(name, position=line.position, offset=offset, found=str(partition))
        elif is_current and partition not in existing:
            yield UNKNOWN_PARTITION.broken(name, position=line.position, offset=offset, found=str(partition))
        if partition is not None:
            seen.add(partition)


def _existing(folder: DirectoryFolder) -> set[TopicPartition]:
    """Return the partitions of a directory; a replica that is on its way there counts too."""
    aside = (AsideFolder.parse(name) for name, entry in folder.entries.items() if entry.is_folder)
    return {*folder.partitions, *(each.partition for each in aside if each is not None)}


def partition_of(line: Line) -> TopicPartition | None:
    """Return the partition that a line of a checkpoint is about; None if there can be none of that name."""
    number = line.number(1, 32)
    if number is None:
        return None
    partition = TopicPartition(line.words[0], number)
    return partition if partition.problem is None else None


class LogBounds:
    """Compares the checkpoints of a directory with the end of one log."""

    def __init__(self, folder: PartitionFolder) -> None:
        self._folder = folder
        self._end = LogEnd(folder)

    def begin(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Nothing is known yet."""
        return ()

    def batches(self, table: Table) -> tuple[Problem, ...]:
        """Note the batches."""
        return ()

    def end(self, segment: SegmentData) -> tuple[Problem, ...]:
        """Note the end of a segment."""
        self._end.end(segment)
        return ()

    def finish(self) -> Iterator[Problem]:
        """Compare."""
        beside = self._folder.beside
        offsets = (beside.recovery_point, beside.log_start, beside.high_watermark, beside.cleaner_offset)
        for name, offset in zip(CHECKPOINTS, offsets, strict=True):
            if name == HIGH_WATERMARKS and beside.is_open:
                continue  # after a truncation it is written some seconds later
            if offset is not None and self._end.is_before(offset):
                position = _position_in(self._folder.path.absolute().parent / name, self._folder.partition)
                found = f"{offset}, but the log ends at {self._end.offset}"
                yield _BEYOND_END[name].broken(f"../{name}", position=position, offset=offset, found=found)


def _position_in(path: Path, partition: TopicPartition | None) -> int | None:
    """Return where a checkpoint has the line of a partition."""
    try:
        with path.open("rb") as file:
            lines, _ = read_checkpoint(file.read(MAX_SIZE), 3)
    except OSError:
        return None  # replaced meanwhile
    return next((line.position for line in reversed(lines) if partition_of(line) == partition), None)
