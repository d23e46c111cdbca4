"""Find all anomalies of a history: `check`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from tests.history import reads, transactions, writes
from tests.history.anomalies import Anomaly, Report
from tests.history.operations import Operation, Partition
from tests.history.versions import PartitionVersions, Removals, collect

Search = Callable[[list[Operation], dict[Partition, PartitionVersions]], Iterable[Anomaly]]


def _of_log(search: Callable[[dict[Partition, PartitionVersions]], Iterator[Anomaly]]) -> Search:
    return lambda _, versions: search(versions)


SEARCHES: Final[tuple[Search, ...]] = (
    _of_log(writes.lost_and_unseen),
    _of_log(writes.duplicates),
    _of_log(writes.inconsistent),
    _of_log(writes.phantoms),
    _of_log(writes.order_of_sends),
    _of_log(writes.out_of_time),
    reads.order_of_polls,
    transactions.search,
)


def check(history: Iterable[Operation], removals: Removals | None = None) -> Report:
    """Find all anomalies. The history has to end with reading everything, or what is left is reported as unseen."""
    operations = list(history)
    versions = collect(operations, Removals() if removals is None else removals)
    return Report([anomaly for search in SEARCHES for anomaly in search(operations, versions)])
