"""Check starting and ending limits without opening a log. The error messages are those of Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from octavo.errors import InvalidInput, MissingPartitions
from octavo.log.names import TopicPartition
from octavo.spark.offsets import EARLIEST, partition_list
from octavo.spark.options import Limit, Options

# Given in place of a timestamp: the record with the latest timestamp. -1 and -2 mean the same as for offsets.
MAX_TIMESTAMP: Final = -3


def check_times(options: Options) -> None:
    """Check the timestamps. Raises `InvalidInput` for negative ones that have no meaning in Kafka's ListOffsets."""
    for limit in (options.starting, options.ending):
        if limit is None:
            continue
        given = [limit.timestamp_ms or 0, *(limit.timestamps or {}).values()]
        if min(given) < min(EARLIEST, MAX_TIMESTAMP):
            raise InvalidInput(
                f"{limit.option}: {min(given)} is no timestamp. Use -1 for latest, -2 for earliest, -3 for the record "
                "with the latest timestamp"
            )


def check_named(
    options: Options,
    partitions: Mapping[TopicPartition, object],
    *,
    all_named: bool = True,
    streaming: bool = False,
) -> None:
    """Check the partitions for which a limit gives offsets or timestamps.

    Raises `MissingPartitions` if one of them is not in `partitions`, those that the query reads. With `all_named`, also
    raises it if the limit leaves one of `partitions` out.
    """
    for position, limit in (("start", options.starting), ("end", options.ending)):
        given = None if limit is None else limit.of_each
        if limit is None or given is None or given.keys() == partitions.keys():
            continue
        if all_named or not given.keys() <= partitions.keys():
            names = f"Specified: {partition_list(given)} Assigned: {partition_list(partitions)}"
            raise MissingPartitions(f"{_mismatch(limit, position, streaming)} {names}")


def _mismatch(limit: Limit, position: str, streaming: bool) -> str:
    if limit.timestamps is not None:
        return (
            f"Partitions specified for Kafka timestamp based {position} offsets don't match what are assigned. Maybe "
            "topic partitions are created or deleted while the query is running, or you didn't specify all the "
            "partitions."
        )
    if streaming:
        return (
            "If startingOffsets contains specific offsets, you must specify all TopicPartitions. "
            "Use -1 for latest, -2 for earliest, if you don't care."
        )
    return (  # the connector says "start offsets" for the end, too
        "Partitions specified for Kafka start offsets don't match what are assigned. Maybe topic partitions are "
        "created or deleted while the query is running. Use -1 for latest, -2 for earliest."
    )
