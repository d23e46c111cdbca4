"""Divide the rows of a table among the tasks of an import: `plan_pieces`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from octavo.log.names import TopicPartition
from octavo.spark.tables.restore.runs import Run
from octavo.spark.tables.restore.staging import Piece

TASK_SIZE: Final = 256 << 20  # bytes of rows that a task should read


def plan_pieces(
    runs: Iterable[Run], ends: Mapping[TopicPartition, int], *, batch_info: bool, task_size: int = TASK_SIZE
) -> list[list[Piece]]:
    """Return the pieces of each task. `ends`: where logs end, as far as that is known.

    The offsets of a large partition are divided, and small partitions share a task.
    """
    by_partition: dict[TopicPartition, list[Run]] = {}
    for run in runs:
        by_partition.setdefault(run.partition, []).append(run)
    tasks: list[list[Piece]] = []
    room = 0
    for partition, own in sorted(by_partition.items()):
        size = sum(run.size for run in own)
        count = max(1, -(-size // task_size))
        for offsets in _divided(own, count):
            if size // count > room:
                tasks.append([])
                room = task_size
            held = tuple(run for run in own if run.first_offset < offsets.stop and run.last_offset >= offsets.start)
            is_last = offsets.stop > max(run.last_offset for run in own)
            tasks[-1].append(Piece(partition, offsets, held, batch_info, ends.get(partition) if is_last else None))
            room -= size // count
    return tasks


def _divided(runs: Sequence[Run], count: int) -> Iterator[range]:
    """Divide the offsets of a partition so that about the same number of bytes is read for each part.

    The bytes of a run are taken to be spread evenly over its offsets.
    """
    first = np.array([run.first_offset for run in runs], np.float64)
    stop = np.array([run.last_offset + 1 for run in runs], np.float64)
    density = np.array([run.size for run in runs], np.float64) / (stop - first)
    offsets = np.concatenate((first, stop))
    order = offsets.argsort(kind="stable")
    offsets = offsets[order]
    densities = np.concatenate((density, -density))[order].cumsum()  # from each of these offsets to the next
    sizes = np.concatenate(([0.0], (densities[:-1] * np.diff(offsets)).cumsum()))
    cuts = np.interp(np.arange(1, count) * sizes[-1] / count, sizes, offsets).astype(np.int64).tolist()
    begin, end = min(run.first_offset for run in runs), max(run.last_offset for run in runs) + 1
    limits = [begin, *sorted({cut for cut in cuts if begin < cut < end}), end]
    for part in pairwise(limits):
        yield range(*part)
