"""What must be true of replicated partitions at any time, whatever goes wrong: `Checks`. Each promise has its letter.

    a   what was acknowledged with acks=all, or shown to a consumer, never changes
    b   the same offset and epoch in two logs means equal logs up to there
    c   one broker appends in a leader epoch, and epochs only grow
    d   the high watermark never passes the end of a member of the maximal ISR, never moves below the minimum ISR, and
        never goes back within an epoch
    e   a leader that was elected cleanly holds everything below every high watermark that was shown
    f   nobody joins the ISR behind the high watermark or the start of the epoch, fenced, or with an old broker epoch
    g   a leader that was deposed acknowledges nothing
    h   no log is cut below its own high watermark
    i   when faults stop, the ISRs are full and every request is answered, within bounded time

There is no unclean election here: fewer brokers than `min.insync.replicas` lose something at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from octavo.cluster.messages import TopicIdPartition
from octavo.schemas.metadata.topics import PartitionRecord
from tests.simulation.replication.memory_log import Entry


class Broken(AssertionError):
    """A promise is broken."""


def promise(letter: str, is_kept: bool, what: str) -> None:
    """Raise `Broken` if a promise is not kept."""
    if not is_kept:
        raise Broken(f"({letter}) {what}")


class Replica(Protocol):
    """A log, as the checks see it."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def entries(self) -> Sequence[Entry]: ...


class Checks:
    """What producers of one partition were told, and consumers have seen."""

    def __init__(self, partition: TopicIdPartition) -> None:
        self.partition: Final = partition
        self.known: list[Entry | None] = []  # acknowledged with acks=all, or shown to a consumer, by offset
        self.acknowledged = 0
        self._committed_in: list[int] = []  # the leader epoch, by offset
        self._appender: dict[int, int] = {}  # by leader epoch
        self._high_watermarks: dict[tuple[int, int, int], int] = {}  # of leaders, by broker, its life and epoch
        self._led: dict[tuple[int, int], int] = {}  # the last leader epoch, by broker and its life

    def know(self, first_offset: int, entries: Sequence[Entry], epoch: int) -> None:
        """Somebody relies on these records from now on: they are committed by the leader of an epoch, or before."""
        known = self.known
        missing = first_offset + len(entries) - len(known)
        known += [None] * missing
        self._committed_in += [epoch] * missing
        if known[first_offset : first_offset + len(entries)] == entries:
            return  # nearly always
        for offset, entry in enumerate(entries, first_offset):
            before = known[offset]
            promise("a", before in (None, entry), f"{offset} was {before}, and is {entry}")
            known[offset] = entry

    def took_role(self, broker: int, life: int, epoch: int) -> None:
        """A broker leads or follows in an epoch."""
        before = self._led.get((broker, life), -1)
        promise("c", epoch >= before, f"broker {broker} is in epoch {epoch} after {before}")
        self._led[broker, life] = epoch

    def led(self, broker: int, epoch: int, log: Replica) -> None:
        """A broker leads in an epoch: it has everything that was committed in older ones.

        It may learn of that late, when others have led since.
        """
        entries, start, end = log.entries, log.start_offset, log.end_offset
        for offset, entry in enumerate(self.known):
            if entry is not None and offset >= start and self._committed_in[offset] < epoch:
                promise("e", offset < end, f"broker {broker} leads in epoch {epoch}, and has not {offset}")
                found = entries[offset - start]
                promise("e", found == entry, f"broker {broker} leads, and has {found} at {offset} for {entry}")

    def appended(self, broker: int, epoch: int, log: Replica) -> None:
        """A broker appends as the leader of an epoch."""
        promise("c", self._appender.setdefault(epoch, broker) == broker, f"two brokers append in epoch {epoch}")
        entries = log.entries
        promise("c", not entries or entries[-1].epoch <= epoch, f"epoch {epoch} follows a later one")

    def raised(self, broker: int, life: int, epoch: int, offset: int, *, isr: int, min_isr: int) -> None:
        """A leader raises its high watermark, with so many replicas in sync."""
        before = self._high_watermarks.setdefault((broker, life, epoch), offset)
        promise("d", offset >= before, f"the high watermark of broker {broker} falls from {before} to {offset}")
        promise("d", isr >= min_isr, f"the high watermark of broker {broker} rises with {isr} in sync")
        self._high_watermarks[broker, life, epoch] = offset

    def acknowledge(
        self, broker: int, epoch: int, first_offset: int, entries: Sequence[Entry], record: PartitionRecord | None
    ) -> None:
        """A leader tells a producer that records are committed. `record`: the newest metadata that it has applied.

        They may say that it leads in a later epoch, which is about to begin: what it has, it has.
        """
        is_leader = record is not None and record.leader == broker and record.leader_epoch >= epoch >= 0
        promise("g", is_leader, f"broker {broker} acknowledges in epoch {epoch}, and {record} says who leads")
        self.acknowledged += 1
        self.know(first_offset, entries, epoch)

    def cut(self, broker: int, high_watermark: int, log: Replica) -> None:
        """A follower has changed its log, whose high watermark was another one before."""
        end = log.end_offset
        promise("h", end >= high_watermark, f"broker {broker} cuts at {end}, below its high watermark {high_watermark}")

    def match(self, one: Replica, other: Replica) -> None:
        """Where two logs have the same offset with the same epoch, they are the same up to there."""
        first = max(one.start_offset, other.start_offset)
        mine, theirs = one.entries[first - one.start_offset :], other.entries[first - other.start_offset :]
        for last in range(min(len(mine), len(theirs)) - 1, -1, -1):
            if mine[last].epoch == theirs[last].epoch:
                promise("b", mine[: last + 1] == theirs[: last + 1], f"logs differ before {first + last}")
                return
