"""What a history tells about each partition: which values stand at which offsets (`PartitionVersions`)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.history.operations import Operation, Outcome, Partition, Poll, Send, Value


class Removals(NamedTuple):
    """Where values may be gone on purpose."""

    starts: Mapping[Partition, int] = {}  # log start offsets at the end: retention may have removed what is before
    compacted: frozenset[str] = frozenset()  # topics whose older values of a key may be gone


class _Latest(NamedTuple):
    offset: int
    value: Value


@dataclass(slots=True)
class PartitionVersions:
    """All that is known about one partition."""

    sends: dict[Value, Send] = field(default_factory=dict)
    acknowledged: dict[int, Send] = field(default_factory=dict)  # by the offset that the producer was told
    read: dict[int, Value] = field(default_factory=dict)  # the value that was first read at an offset
    offsets_of: dict[Value, set[int]] = field(default_factory=dict)  # as producers were told, and as was read
    conflicts: list[tuple[int, Value, Value]] = field(default_factory=list)  # offsets with two values
    start: int = 0
    is_compacted: bool = False
    known: list[int] = field(default_factory=list)  # all offsets at which a value must be, in order
    rank: dict[int, int] = field(default_factory=dict)  # the place of each in `known`
    _latest_of: dict[Hashable, int] = field(default_factory=dict)  # the last offset of each key

    def note_send(self, send: Send) -> None:
        """Take in a send and its acknowledgement."""
        assert send.value not in self.sends, f"{send.value!r} is sent twice to one partition"
        self.sends[send.value] = send
        offset = send.offset
        if offset is not None:
            before = self.acknowledged.setdefault(offset, send)
            if before is not send:
                self.conflicts.append((offset, before.value, send.value))
            self.offsets_of.setdefault(send.value, set()).add(offset)

    def note_read(self, offset: int, value: Value) -> None:
        """Take in a record that a consumer was given."""
        before = self.read.setdefault(offset, value)
        if before != value:
            self.conflicts.append((offset, before, value))
        self.offsets_of.setdefault(value, set()).add(offset)

    def finish(self, start: int, *, is_compacted: bool) -> None:
        """Work out what follows from all that was noted."""
        self.start, self.is_compacted = start, is_compacted
        for offset, send in self.acknowledged.items():
            value = self.read.get(offset, send.value)
            if value != send.value:
                self.conflicts.append((offset, send.value, value))
        lasting = [offset for offset, send in self.acknowledged.items() if send.must_be_there]
        known = sorted(self.read.keys() | lasting)
        if is_compacted:
            for offset in known:
                key = self._key_at(offset)
                if key is not None:
                    self._latest_of[key] = offset
        self.known = [offset for offset in known if not self.may_be_gone(offset)]
        self.rank = {offset: rank for rank, offset in enumerate(self.known)}

    def _key_at(self, offset: int) -> Hashable:
        send = self.acknowledged.get(offset) or self.sends.get(self.read.get(offset))
        return None if send is None else send.key

    def may_be_gone(self, offset: int) -> bool:
        """Return whether retention or compaction may have removed what is at this offset."""
        if offset < self.start:
            return True
        if not self.is_compacted:
            return False
        return self._latest_of.get(self._key_at(offset), offset) > offset

    def was_read(self, value: Value) -> bool:
        """Return whether a consumer was given this value."""
        return any(self.read.get(offset) == value for offset in self.offsets_of.get(value, ()))

    def first_known_from(self, position: int) -> int | None:
        """Return the first offset at or after `position` at which a value must be."""
        at = self.rank.get(position)
        if at is None:
            at = bisect_left(self.known, position)
        return self.known[at] if at < len(self.known) else None


def collect(history: Iterable[Operation], removals: Removals) -> dict[Partition, PartitionVersions]:
    """Gather what the sends and polls of a history tell about each partition."""
    versions: dict[Partition, PartitionVersions] = defaultdict(PartitionVersions)
    for operation in history:
        if isinstance(operation, Send):
            versions[operation.partition].note_send(operation)
        elif isinstance(operation, Poll) and operation.outcome is Outcome.OK:
            for partition, records in operation.records.items():
                of_partition = versions[partition]
                for offset, value in records:
                    of_partition.note_read(offset, value)
    for partition, each in versions.items():
        each.finish(removals.starts.get(partition, 0), is_compacted=partition[0] in removals.compacted)
    return dict(versions)
