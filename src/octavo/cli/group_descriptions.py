"""Describe groups for `octavo groups`: their offsets with the lag, their members, their state."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from octavo.cli.tables import Column, Row, print_json, print_table
from octavo.cli.tell import tell

if TYPE_CHECKING:
    from octavo.client.cluster import Cluster
    from octavo.client.described_groups import DescribedGroup
    from octavo.client.groups import Groups
    from octavo.log.names import TopicPartition

_REBALANCING: Final = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}

_GROUP: Final = Column("GROUP", "group")
_ASSIGNED: Final = (Column("CONSUMER-ID", "consumerId"), Column("HOST", "host"), Column("CLIENT-ID", "clientId", 0))
_INSTANCE: Final = Column("GROUP-INSTANCE-ID", "groupInstanceId", 17)
_EPOCHS: Final = (
    Column("CURRENT-EPOCH", "currentEpoch"),
    Column("CURRENT-ASSIGNMENT", "currentAssignment", 20),
    Column("TARGET-EPOCH", "targetEpoch"),
    Column("TARGET-ASSIGNMENT", "targetAssignment", 20),
)
_UPGRADED: Final = Column("UPGRADED", "upgraded", 0)


def describe(cluster: Cluster, groups: Groups, wanted: Iterable[str], arguments: argparse.Namespace) -> None:
    """Print what the options ask for, of one group after the other. Raises `RequestFailed`."""
    for described in [groups.describe(each) for each in sorted(set(wanted))]:
        rows: Sequence[Row]
        if arguments.members:
            rows = list(_members(described))
            columns = _member_columns(rows, verbose=arguments.verbose)
        elif arguments.state is not None:
            rows, columns = [_state(described)], _state_columns(verbose=arguments.verbose)
        else:
            rows = _offsets(cluster, groups, described)
            columns = _offset_columns(verbose=arguments.verbose)
        if described.state == "Empty":
            tell(f"group {described.id} has no active members")
        elif described.state in _REBALANCING:
            tell(f"group {described.id} is rebalancing")
        if arguments.json:
            print_json(rows)
        elif rows or arguments.members:
            print()
            print_table(columns, rows)


def _offsets(cluster: Cluster, groups: Groups, described: DescribedGroup) -> Sequence[Row]:
    """Return a row for each partition that is assigned to somebody, and then for each other that has an offset."""
    from octavo.client.partition_offsets import LATEST, list_offsets

    committed = groups.committed(described.id)
    owners: list[tuple[TopicPartition, str | None, str | None, str | None]] = []
    for member in sorted(described.members, key=lambda each: -len(each.partitions)):
        owners += ((partition, member.id, member.host, member.client_id) for partition in member.partitions)
    owned = {partition for partition, *_ in owners}
    owners += ((partition, None, None, None) for partition in sorted(committed) if partition not in owned)
    ends = list_offsets(cluster, [partition for partition, *_ in owners], LATEST)
    rows = []
    for partition, consumer_id, host, client_id in owners:
        offset, end = committed.get(partition), ends.get(partition)
        row = {
            "group": described.id,
            "topic": partition.topic,
            "partition": partition.partition,
            "leaderEpoch": None if offset is None else offset.leader_epoch,
            "currentOffset": None if offset is None else offset.offset,
            "logEndOffset": end,
            "lag": None if offset is None or end is None else end - offset.offset,
            "consumerId": consumer_id,
            "host": host,
            "clientId": client_id,
        }
        rows.append(row)
    return rows


def _offset_columns(*, verbose: bool) -> list[Column]:
    return [
        _GROUP,
        Column("TOPIC", "topic"),
        Column("PARTITION", "partition", 10),
        *([Column("LEADER-EPOCH", "leaderEpoch")] if verbose else []),
        Column("CURRENT-OFFSET", "currentOffset"),
        Column("LOG-END-OFFSET", "logEndOffset"),
        Column("LAG", "lag"),
        *_ASSIGNED,
    ]


def _members(described: DescribedGroup) -> Iterator[Row]:
    for member in described.members:
        yield {
            "group": described.id,
            "consumerId": member.id,
            "groupInstanceId": member.instance_id,
            "host": member.host,
            "clientId": member.client_id,
            "partitions": len(member.partitions),
            "currentEpoch": member.epoch,
            "currentAssignment": _assignment(member.partitions),
            "targetEpoch": described.assignment_epoch,
            "targetAssignment": _assignment(member.target or []),
            "upgraded": member.is_upgraded,
        }


def _member_columns(rows: Sequence[Row], *, verbose: bool) -> list[Column]:
    columns = [_GROUP, *_ASSIGNED[:2], Column("CLIENT-ID", "clientId"), Column("#PARTITIONS", "partitions")]
    if any(row["groupInstanceId"] for row in rows):
        columns.insert(2, _INSTANCE)
    if verbose:
        columns += _EPOCHS
        if len({row["upgraded"] for row in rows} - {None}) > 1:  # the group is moving from one protocol to the other
            columns.append(_UPGRADED)
    return columns


def _assignment(partitions: Iterable[TopicPartition]) -> str | None:
    """Return partitions as `topic:0,1;another:0`."""
    topics: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(str(number))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items()) or None


def _state(described: DescribedGroup) -> Row:
    node, host, port = described.coordinator
    return {
        "group": described.id,
        "coordinator": f"{host}:{port}  ({node})",
        "assignmentStrategy": described.assignor or None,
        "state": described.state,
        "groupEpoch": described.epoch,
        "targetAssignmentEpoch": described.assignment_epoch,
        "members": len(described.members),
    }


def _state_columns(*, verbose: bool) -> list[Column]:
    epochs = [Column("GROUP-EPOCH", "groupEpoch"), Column("TARGET-ASSIGNMENT-EPOCH", "targetAssignmentEpoch", 25)]
    return [
        _GROUP,
        Column("COORDINATOR (ID)", "coordinator", 25),
        Column("ASSIGNMENT-STRATEGY", "assignmentStrategy", 20),
        Column("STATE", "state", 20),
        *(epochs if verbose else []),
        Column("#MEMBERS", "members", 0),
    ]
