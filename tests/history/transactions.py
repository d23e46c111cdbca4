"""Searches for anomalies of transactions, and of the offsets that groups commit with them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from tests.history.anomalies import Anomaly, Kind
from tests.history.cycles import cycles
from tests.history.evidence import Evidence, Place, Versions, gather
from tests.history.operations import FetchOffsets, Operation, Outcome, Transaction


def search(history: Iterable[Operation], versions: Versions) -> Iterator[Anomaly]:
    """Find everything that is wrong with transactions."""
    operations = list(history)
    if any(isinstance(each, Transaction | FetchOffsets) for each in operations):
        evidence = gather(operations, versions)
        yield from _dirty(evidence)
        yield from _torn(evidence, versions)
        yield from _offsets(evidence)
        yield from _processed(evidence, versions)
        yield from cycles(evidence)


def _dirty(evidence: Evidence) -> Iterator[Anomaly]:
    """Find values that were read before anybody asked to commit them."""
    for poll, sources in evidence.polls:
        assert poll.completed_ns is not None
        for transaction in sources:
            if not transaction.is_aborted:  # else it is an aborted read, whenever it was
                assert transaction.commit_ns is not None
                if poll.completed_ns < transaction.commit_ns:
                    what = f"process {poll.process} was given something of {transaction!r} before the commit"
                    yield Anomaly(Kind.DIRTY_READ, transaction.partition, what)


def _torn(evidence: Evidence, versions: Versions) -> Iterator[Anomaly]:
    """Find transactions of which something was seen, and the rest never. Acknowledged ones have lost writes instead."""
    for transaction in evidence.committed:
        if transaction.outcome is Outcome.OK:
            continue
        for send in transaction.sends:
            each = versions[send.partition]
            gone = each.may_be_gone(send.offset) if send.offset is not None else each.start or each.is_compacted
            if not each.was_read(send.value) and not gone:
                yield Anomaly(Kind.TORN, send.partition, f"nobody has read {send.value!r} of {transaction!r}")
                break


def _offsets(evidence: Evidence) -> Iterator[Anomaly]:
    """Find offsets of groups that nobody has committed, and those that are behind what was committed before."""
    commits: dict[Place, list[tuple[int, int]]] = defaultdict(list)  # times, and offsets
    for transaction, since in evidence.since.items():
        for partition, offset in transaction.offsets.items():
            assert transaction.group is not None
            commits[transaction.group, partition].append((since, offset))
    fetches: dict[Place, list[tuple[int, int]]] = defaultdict(list)
    for fetch in evidence.fetches:
        for partition, told in fetch.offsets.items():
            fetches[fetch.group, partition].append((fetch.invoked_ns, -1 if told is None else told))
            if told is not None and not evidence.may_have_committed(fetch.group, partition, told):
                what = f"{fetch.group} goes on from {told}, which no transaction that may be committed has written"
                yield Anomaly(Kind.PHANTOM_OFFSETS, partition, what)
    for place, asked in fetches.items():
        group, partition = place
        earlier = deque(sorted(commits[place]))
        largest = -1
        for at, told in sorted(asked):
            while earlier and earlier[0][0] < at:
                largest = max(largest, earlier.popleft()[1])
            if told < largest:
                what = f"{group} goes on from {told}, although a transaction with {largest} was committed before"
                yield Anomaly(Kind.LOST_OFFSETS, partition, what)


def _processed(evidence: Evidence, versions: Versions) -> Iterator[Anomaly]:
    """Find records that two transactions of a group were made of, and those that the group was led past."""
    done: dict[Place, dict[int, Transaction]] = defaultdict(dict)
    for poll, _ in evidence.polls:
        transaction = poll.transaction
        if transaction is None or transaction not in evidence.since:
            continue
        assert transaction.group is not None, "what a transaction reads belongs to its group"
        for partition, records in poll.records.items():
            mine = done[transaction.group, partition]
            for offset, _ in records:
                before = mine.setdefault(offset, transaction)
                if before is not transaction:
                    what = f"{transaction.group} has made {before!r} of offset {offset}, and {transaction!r}"
                    yield Anomaly(Kind.PROCESSED_TWICE, partition, what)
    for (group, partition), mine in done.items():
        end = max((each.offsets.get(partition, 0) for each in mine.values()), default=0)
        for offset in versions[partition].known:
            if offset >= end:
                break
            if offset not in mine:
                yield Anomaly(Kind.PROCESSED_NEVER, partition, f"{group} is at {end}, and has left out {offset}")
