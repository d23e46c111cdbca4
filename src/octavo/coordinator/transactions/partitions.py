"""The partitions of a transaction, as its record has them: `partitions_of`, `by_topic`."""

from __future__ import annotations

from collections.abc import Iterable

from octavo.coordinator.transactions.requests import Partition
from octavo.schemas.transaction_state import PartitionsSchema, TransactionLogValue


def partitions_of(value: TransactionLogValue) -> frozenset[Partition]:
    """Return the partitions of a transaction."""
    return frozenset(
        (each.topic, partition) for each in value.transaction_partitions or () for partition in each.partition_ids
    )


def by_topic(partitions: Iterable[Partition]) -> tuple[PartitionsSchema, ...]:
    """Return partitions as a record has them."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return tuple(PartitionsSchema(topic=topic, partition_ids=tuple(each)) for topic, each in found.items())
