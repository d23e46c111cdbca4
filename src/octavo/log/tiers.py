"""Tell which offsets of a tiered partition are in remote storage only (KIP-405), and so out of Octavo's reach.

Kafka copies closed segments of a topic with `remote.storage.enable=true` to remote storage, and deletes them locally.
For such a partition `log-start-offset-checkpoint` names the start of the whole log, which is before the first segment
that is here, and the checkpoint of leader epochs goes back to that start, too. For others neither does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from octavo.log.files.text_checkpoint import EpochEntry
from octavo.log.names import TopicPartition
from octavo.log.recovery_report import in_lines


class RemotePart(NamedTuple):
    """Offsets of a partition that are in remote storage only, from `first` up to but not including `end`."""

    partition: TopicPartition
    first: int
    end: int

    def __str__(self) -> str:
        return (
            f"topic {self.partition.topic} is tiered: the offsets {self.first} to {self.end - 1} of {self.partition} "
            "are in remote storage, which Octavo does not read yet. Only later ones are on this disk."
        )


def remote_part(
    partition: TopicPartition,
    *,
    is_tiered: bool | None,
    recorded: int | None,
    epochs: Sequence[EpochEntry],
    first: int,
) -> RemotePart | None:
    """Return what of a partition is in remote storage only; None if nothing is.

    is_tiered: what the settings of the topic say; None if they are not known. Then both checkpoints have to agree
    recorded: the start of the log in the checkpoint of start offsets; None if it lacks the partition
    epochs: the leader epochs of the partition
    first: the base offset of the first segment that is here
    """
    begin = epochs[0].start_offset if epochs else None
    if is_tiered is None and (recorded is None or begin is None or begin >= first):
        return None
    start = begin if recorded is None else recorded
    if is_tiered is False or start is None or start >= first:
        return None
    return RemotePart(partition, start, first)


def list_parts(parts: Sequence[RemotePart]) -> list[str]:
    """Return lists of partitions with their offsets, for people. None of them is too long for a line of a log."""
    return in_lines(f"{part.partition} (offsets {part.first} to {part.end - 1})" for part in parts)
