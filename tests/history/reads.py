"""Searches for anomalies of what consumers were given, one poll after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.history.anomalies import Anomaly, Kind
from tests.history.operations import Assign, Operation, Outcome, Partition, Poll
from tests.history.versions import PartitionVersions


def order_of_polls(history: Iterable[Operation], versions: dict[Partition, PartitionVersions]) -> Iterator[Anomaly]:
    """Follow each consumer from its positions on, and find where it was led backwards or past something."""
    positions: dict[int, dict[Partition, int | None]] = {}  # by process: the next offset, None if it is not known
    for operation in history:
        if isinstance(operation, Assign):
            mine = positions.setdefault(operation.process, {})
            if operation.replaces:
                mine.clear()
            mine.update(operation.positions)
        elif isinstance(operation, Poll) and operation.outcome is Outcome.OK:
            mine = positions.setdefault(operation.process, {})
            for partition, records in operation.records.items():
                position = mine.get(partition)
                for offset, _ in records:
                    if offset != position and position is not None:
                        found = _jump(operation, partition, versions[partition], position, offset)
                        if found is not None:
                            yield found
                    position = offset + 1
                mine[partition] = position


def _jump(poll: Poll, partition: Partition, versions: PartitionVersions, position: int, offset: int) -> Anomaly | None:
    if offset < position:
        what = f"process {poll.process} was at {position}, and was given {offset}"
        return Anomaly(Kind.NONMONOTONIC_POLL, partition, what)
    missed = versions.first_known_from(position)
    if missed is None or missed >= offset:
        return None  # nothing is there: a marker, or what was removed
    what = f"process {poll.process} was at {position}, and was given {offset} next; {missed} was left out"
    return Anomaly(Kind.SKIPPED, partition, what)
