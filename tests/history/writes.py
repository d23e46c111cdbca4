"""Searches for anomalies of what is in the log."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from tests.history.anomalies import Anomaly, Kind
from tests.history.operations import Operation, Outcome, Partition, Promises, Send
from tests.history.versions import PartitionVersions

Versions = dict[Partition, PartitionVersions]


def lost_and_unseen(versions: Versions) -> Iterator[Anomaly]:
    """Find acknowledged values that nobody was ever given."""
    for partition, each in versions.items():
        last_read = max(each.read, default=-1)
        for send in each.sends.values():
            if not send.must_be_there:
                continue
            offset = send.offset
            if offset is None:  # the producer was not told: it is somewhere or lost
                if send.value not in each.offsets_of and not (each.start or each.is_compacted):
                    yield Anomaly(Kind.LOST, partition, f"{send!r}, and nobody has read it")
            elif offset not in each.read and not each.may_be_gone(offset):
                if offset < last_read:
                    yield Anomaly(Kind.LOST, partition, f"{send!r}; offset {last_read} was read, and this one never")
                else:
                    yield Anomaly(Kind.UNSEEN, partition, f"{send!r}, and nothing was read from there on")


def duplicates(versions: Versions) -> Iterator[Anomaly]:
    """Find values at two offsets, unless their producer does not promise otherwise."""
    for partition, each in versions.items():
        for value, offsets in each.offsets_of.items():
            if len(offsets) > 1:
                send = each.sends.get(value)
                if send is None or Promises.NO_DUPLICATES in send.promises:
                    yield Anomaly(Kind.DUPLICATE, partition, f"{value!r} is at the offsets {sorted(offsets)}")


def inconsistent(versions: Versions) -> Iterator[Anomaly]:
    """Find offsets with two values."""
    for partition, each in versions.items():
        for offset, first, second in each.conflicts:
            yield Anomaly(Kind.INCONSISTENT, partition, f"{first!r} and {second!r} are both at offset {offset}")


def phantoms(versions: Versions) -> Iterator[Anomaly]:
    """Find values that should not be there."""
    for partition, each in versions.items():
        for offset, value in each.read.items():
            send = each.sends.get(value)
            if send is None:
                yield Anomaly(Kind.PHANTOM, partition, f"{value!r} at offset {offset} was never sent here")
            elif send.transaction is not None and send.transaction.is_aborted:
                what = f"{value!r} at offset {offset} is of {send.transaction!r}"
                yield Anomaly(Kind.ABORTED_READ, partition, what)
            elif send.outcome is Outcome.FAILED:
                yield Anomaly(Kind.FAILED_BUT_THERE, partition, f"{send!r}, and it is at offset {offset}")


def order_of_sends(versions: Versions) -> Iterator[Anomaly]:
    """Find values of one producer that are not in the order of its sends."""
    for partition, each in versions.items():
        told: dict[int, Send] = {}  # by process: the send with the largest offset that was acknowledged
        seen: dict[int, tuple[int, Send]] = {}  # by process: the same, of all offsets that are known
        for send in each.sends.values():
            if Promises.ORDER not in send.promises:
                continue
            if send.offset is not None:
                before = told.get(send.process)
                if before is not None and before.offset is not None and before.offset > send.offset:
                    yield Anomaly(Kind.NONMONOTONIC_SEND, partition, f"{before!r}, and later {send!r}")
                    continue
                told[send.process] = send
            offsets = each.offsets_of.get(send.value)
            if offsets:
                first = min(offsets)  # a retry may have written it again
                largest = seen.get(send.process)
                if largest is not None and largest[0] > first:
                    what = f"{largest[1].value!r} is at {largest[0]}, and {send.value!r}, sent later, at {first}"
                    yield Anomaly(Kind.REORDER, partition, what)
                else:
                    seen[send.process] = (first, send)


def out_of_time(versions: Versions) -> Iterator[Anomaly]:
    """Find sends that were asked for after another was acknowledged, and have an earlier offset."""
    for partition, each in versions.items():
        sends = sorted(each.acknowledged.values(), key=_invoked)
        under_way: list[tuple[int, int]] = []  # times of completion, and offsets
        largest = -1  # of those that are over
        for send in sends:
            assert send.offset is not None
            assert send.completed_ns is not None
            while under_way and under_way[0][0] < send.invoked_ns:
                largest = max(largest, heapq.heappop(under_way)[1])
            if send.offset < largest:
                before = each.acknowledged[largest]
                if before.process != send.process or Promises.ORDER not in send.promises:  # else it is reported above
                    yield Anomaly(Kind.OUT_OF_TIME, partition, f"{before!r}; after that {send!r}")
            heapq.heappush(under_way, (send.completed_ns, send.offset))


def _invoked(operation: Operation) -> int:
    return operation.invoked_ns
