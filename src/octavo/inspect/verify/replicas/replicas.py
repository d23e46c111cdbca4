"""Find the replicas of each partition, and report where they differ."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from octavo.errors import InvalidInput
from octavo.inspect.verify.directory import DirectoryFolder
from octavo.inspect.verify.folder import Gone
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.replicas.cursor import Cursor
from octavo.inspect.verify.replicas.difference import CONTENT, DIVERGED, MISSING, TOPIC, Difference
from octavo.inspect.verify.replicas.replica_log import BASE_OFFSET, LEADER_EPOCH, Place, ReplicaLog
from octavo.inspect.verify.topic_ids import read_topic_id
from octavo.log.files.meta_properties import write_uuid
from octavo.log.names import LOG, TopicPartition, file_name

_LOOKS: Final = 4
_PAUSE_S: Final = 0.1


def compare_replicas(paths: Sequence[Path | str]) -> Iterator[Problem]:
    """Yield the first difference of each replica from the one that leads.

    paths: data directories of several nodes, or folders of one partition

    Raises `InvalidInput` if they have no partition in common.
    """
    found: dict[TopicPartition, list[Path]] = {}
    for path in map(Path, paths):
        for partition, folder in _partitions(path).items():
            found.setdefault(partition, []).append(folder)
    shared = {partition: folders for partition, folders in sorted(found.items()) if len(folders) > 1}
    if not shared:
        raise InvalidInput("the paths have no partition in common, so that there is nothing to compare")
    for folders in shared.values():
        yield from _certain(folders)


def _partitions(path: Path) -> dict[TopicPartition, Path]:
    """Return the partitions at a path: those of a data directory, or the one whose folder it is."""
    partition = TopicPartition.parse(path.absolute().name)
    directory = DirectoryFolder(path)
    if partition is not None and directory.segments:
        return {partition: path}
    return {each: path / name for each, name in directory.partitions.items()}


def _certain(folders: Sequence[Path]) -> list[Problem]:
    """Return what is still found when one looks again, for brokers may be at work."""
    suspects: list[Problem] | None = None
    for number in range(_LOOKS):
        if number:
            time.sleep(_PAUSE_S)
        try:
            found = list(_compare_partition(folders))
        except (Gone, FileNotFoundError):
            continue
        suspects = found if suspects is None else [problem for problem in suspects if problem in found]
        if not suspects or number:
            break
    return suspects or []


def _compare_partition(folders: Sequence[Path]) -> Iterator[Problem]:
    from octavo.inspect.verify.replicas.compare import (
        first_difference,
    )  # imports pyarrow, which not every command needs

    logs = [ReplicaLog(folder) for folder in folders]
    lead = max(logs, key=lambda log: (log.last_epoch, log.end_offset))
    lead_id = read_topic_id(lead.path)
    for log in logs:
        if log is lead:
            continue
        other_id = read_topic_id(log.path)
        if lead_id is not None and other_id is not None and lead_id != other_id:
            yield _other_topic(lead, log, lead_id, other_id)
            continue
        found = first_difference(lead, log) or _surplus(lead, log)
        if found is not None:
            yield _problem(lead, log, found)


def _other_topic(lead: ReplicaLog, log: ReplicaLog, lead_id: UUID, other_id: UUID) -> Problem:
    found = f"{write_uuid(other_id)}, but {write_uuid(lead_id)} in {lead.path}"
    return TOPIC.broken(str(log.path / "partition.metadata"), found=found)


def _surplus(lead: ReplicaLog, log: ReplicaLog) -> Difference | None:
    """Return the first offset behind the leading log's end that another has from an older leader."""
    if log.end_offset <= lead.end_offset:
        return None
    cursor = Cursor(log, lead.end_offset)
    if not cursor.fill() or not lead.segments:
        return None
    row = cursor.rows[0]
    if row[LEADER_EPOCH] >= lead.last_epoch:
        return None
    end = lead.path / file_name(lead.segments[-1], LOG)
    offset = max(lead.end_offset, int(row[BASE_OFFSET]))
    return Difference(
        offset, "leaderEpoch", Place(end, end.stat().st_size), log.place(row), lead.last_epoch, int(row[LEADER_EPOCH])
    )


def _problem(lead: ReplicaLog, log: ReplicaLog, found: Difference) -> Problem:
    epochs = f"epoch {found.right_epoch}, but epoch {found.left_epoch}"
    where = found.left or lead.path
    if found.left_epoch is not None and found.right_epoch is not None and found.left_epoch != found.right_epoch:
        rule, text = DIVERGED, f"{epochs} in {where}"
        if log.high_watermark is not None and log.high_watermark > found.offset:
            text += f"; this replica's high watermark is {log.high_watermark}, so that acknowledged records are lost"
    elif found.what == "missing":
        lacking = log if found.right is None else lead
        rule, text = MISSING, f"{lacking.path} has no such offset; the other has it in {found.left or found.right}"
    else:
        rule, text = CONTENT, f"{found.what} differs from {where}, both of epoch {found.left_epoch}"
    here = found.right
    return rule.broken(
        str(log.path if here is None else here.path),
        position=None if here is None else here.position,
        offset=found.offset,
        found=text,
    )
