"""Reset the offsets of groups, for `octavo groups --reset-offsets`."""

from __future__ import annotations

import argparse
import csv
import io
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from octavo.cli.tables import Column, print_json, print_table
from octavo.cli.tell import tell
from octavo.errors import ErrorCode, InvalidInput, RequestFailed
from octavo.records.layout import MAX_INT32, MAX_INT64

if TYPE_CHECKING:
    from octavo.client.cluster import Cluster
    from octavo.client.groups import Groups
    from octavo.log.names import TopicPartition

Offsets = Mapping["TopicPartition", int]

_COLUMNS: Final = (
    Column("GROUP", "group"),
    Column("TOPIC", "topic"),
    Column("PARTITION", "partition", 10),
    Column("NEW-OFFSET", "newOffset", 0),
)
_NO_GROUP: Final = 3  # the number of fields in a line of a file: topic, partition, offset
_WITH_GROUP: Final = 4


def reset(cluster: Cluster, groups: Groups, wanted: Iterable[str], arguments: argparse.Namespace) -> None:
    """Print the new offsets of each group, and commit them if the options say so.

    All is planned before anything is done. Groups with members are left out. Raises `RequestFailed` at the end then.
    """
    names = sorted(set(wanted))
    active = {group: state for group in names if (state := _state(groups, group)) not in ("Empty", "Dead")}
    resets = Resets(cluster, groups, arguments)
    plans = {group: resets.plan(group) for group in names if group not in active}
    if arguments.execute:
        for group, offsets in plans.items():
            _commit(groups, group, offsets)
    _print(plans, arguments)
    if not arguments.execute and not arguments.dry_run:
        tell("nothing was changed: --execute does it")
    if active:
        told = ", ".join(f"{group} ({state})" for group, state in active.items())
        raise RequestFailed(
            ErrorCode.NON_EMPTY_GROUP, f"offsets can be reset only while a group has no members, unlike {told}"
        )


def _state(groups: Groups, group: str) -> str:
    try:
        return groups.describe(group).state
    except RequestFailed as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return "Dead"


def _commit(groups: Groups, group: str, offsets: Offsets) -> None:
    from octavo.client.connection import code_name

    for partition, code in groups.commit(group, offsets).items():
        if code:
            raise RequestFailed(code, f"the offset of group {group} in partition {partition}: {code_name(code)}")


def _print(plans: Mapping[str, Offsets], arguments: argparse.Namespace) -> None:
    rows = [
        {"group": group, "topic": topic, "partition": number, "newOffset": offset}
        for group, offsets in plans.items()
        for (topic, number), offset in sorted(offsets.items())
    ]
    if arguments.export:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        skipped = 1 if len(arguments.group) == 1 else 0
        writer.writerows([*row.values()][skipped:] for row in rows)
    elif arguments.json:
        print_json(rows)
    else:
        print()
        print_table(_COLUMNS, rows)


class Resets:
    """Knows by the options which partitions get which offsets."""

    def __init__(self, cluster: Cluster, groups: Groups, arguments: argparse.Namespace) -> None:
        self._cluster: Final = cluster
        self._groups: Final = groups
        self._arguments: Final = arguments
        self._from_file: Final = None if arguments.from_file is None else _read(arguments.from_file, arguments.group)

    def plan(self, group: str) -> Offsets:
        """Return the new offsets of a group. Raises `InvalidInput`, `RequestFailed`."""
        arguments = self._arguments
        if self._from_file is not None:
            if group not in self._from_file:
                raise InvalidInput(f"{arguments.from_file}: there is nothing for group {group}")
            return self._in_range(self._checked(self._from_file[group]))
        partitions = [*self._checked(dict.fromkeys(self._partitions(group), 0))]
        if arguments.to_offset is not None:
            return self._in_range(dict.fromkeys(partitions, arguments.to_offset))
        if arguments.shift_by is not None:
            return self._in_range(self._shifted(group, partitions))
        if arguments.to_current:
            committed = self._groups.committed(group)
            ends = self._at([each for each in partitions if each not in committed], latest=True)
            return {each: committed[each].offset if each in committed else ends[each] for each in partitions}
        if arguments.to_datetime is not None:
            return self._since(partitions, arguments.to_datetime)
        if arguments.by_duration is not None:
            return self._since(partitions, time.time_ns() // 1_000_000 - arguments.by_duration)
        return self._at(partitions, latest=arguments.to_latest)

    def _partitions(self, group: str) -> Collection[TopicPartition]:
        if self._arguments.all_topics:
            return self._groups.committed(group)
        return named_partitions(self._cluster, self._arguments.topic)

    def _checked(self, offsets: Offsets) -> Offsets:
        """Return the same offsets. Raises `RequestFailed` if one of the partitions does not exist, or has no leader."""
        leaders = self._cluster.leaders({each.topic for each in offsets}) if offsets else {}
        for partition in sorted(offsets):
            if partition not in leaders:
                raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
            if leaders[partition] < 0:
                raise RequestFailed(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {partition} has no leader")
        return offsets

    def _at(self, partitions: Collection[TopicPartition], *, latest: bool) -> Offsets:
        from octavo.client.partition_offsets import EARLIEST, LATEST, list_offsets

        return list_offsets(self._cluster, partitions, LATEST if latest else EARLIEST)

    def _since(self, partitions: Collection[TopicPartition], timestamp_ms: int) -> Offsets:
        from octavo.client.partition_offsets import list_offsets

        found = list_offsets(self._cluster, partitions, min(max(timestamp_ms, 0), MAX_INT64))
        without = [each for each, offset in found.items() if offset < 0]
        for partition in sorted(without):
            tell(f"partition {partition} has no record of that time or later: its end is taken")
        return {**found, **self._at(without, latest=True)}

    def _shifted(self, group: str, partitions: Iterable[TopicPartition]) -> Offsets:
        committed, shifted = self._groups.committed(group), {}
        for partition in partitions:
            if partition not in committed:
                raise InvalidInput(f"--shift-by: group {group} has no committed offset in partition {partition}")
            shifted[partition] = committed[partition].offset + self._arguments.shift_by
        return shifted

    def _in_range(self, offsets: Offsets) -> Offsets:
        """Return offsets, with those that a partition does not have replaced by its first one or its end."""
        first, ends = (self._at(offsets, latest=latest) for latest in (False, True))
        ranged = {}
        for partition, offset in sorted(offsets.items()):
            ranged[partition] = min(max(offset, first[partition]), ends[partition])
            if ranged[partition] != offset:
                side = "below the first offset" if ranged[partition] > offset else "beyond the end"
                tell(f"{offset} is {side} of partition {partition}: {ranged[partition]} is taken")
        return ranged


def named_partitions(cluster: Cluster, given: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of `topic` or `topic:0,1`. Raises `InvalidInput`, or `RequestFailed` for unknown topics."""
    from octavo.log.names import TopicPartition

    found: list[TopicPartition] = []
    for each in given:
        topic, separator, numbers = each.partition(":")
        if not separator:
            found += (TopicPartition(topic, number) for number in cluster.topic(topic).leaders)
            continue
        for number in numbers.split(","):
            if not topic or not number.isdecimal() or int(number) > MAX_INT32:
                raise InvalidInput(f"--topic {each}: it must be TOPIC or TOPIC:PARTITION,PARTITION")
            found.append(TopicPartition(topic, int(number)))
    return sorted(set(found))


def _read(path: str, groups: list[str]) -> Mapping[str, Offsets]:
    """Read offsets from a file, by group. Raises `InvalidInput`."""
    from octavo.log.names import TopicPartition

    try:
        text = Path(path).read_text("utf-8")
        lines = [*csv.reader(io.StringIO(text))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} is not CSV in UTF-8: {error}") from None
    plans: dict[str, dict[TopicPartition, int]] = {}
    for number, fields in enumerate(lines, 1):
        if not fields:
            continue
        if len(fields) == _NO_GROUP and len(groups) == 1:
            fields.insert(0, groups[0])
        if len(fields) != _WITH_GROUP or not all(each.strip().isdecimal() for each in fields[2:]):
            what = "" if len(groups) == 1 else "group,"
            raise InvalidInput(f"{path}: line {number} must be {what}topic,partition,offset")
        group, topic, partition, offset = (each.strip() for each in fields)
        plans.setdefault(group, {})[TopicPartition(topic, int(partition))] = int(offset)
    return plans
