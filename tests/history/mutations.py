"""Changes that make a clean history of transactions guilty of one kind of anomaly: `MUTATIONS`.

Each is done to the operations themselves for as long as its `with` lasts. The history has to be large enough for it,
with transactions that are made of records, some of which other transactions have written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from random import Random
from typing import Final

from tests.history.anomalies import Kind
from tests.history.operations import FetchOffsets, Operation, Outcome, Partition, Poll, Send, Transaction, Value

Mutation = Callable[[Sequence[Operation], Random], AbstractContextManager[None]]


@contextmanager
def _changed(changes: Sequence[tuple[Operation, str, object]]) -> Iterator[None]:
    """Change attributes, and have them as they were in the end."""
    before = [(operation, name, getattr(operation, name)) for operation, name, _ in changes]
    for operation, name, value in changes:
        setattr(operation, name, value)
    try:
        yield
    finally:
        for operation, name, value in reversed(before):
            setattr(operation, name, value)


def _polls(history: Sequence[Operation]) -> list[Poll]:
    return [each for each in history if isinstance(each, Poll) and each.outcome is Outcome.OK and each.records]


def _committed(history: Sequence[Operation]) -> list[Transaction]:
    return [each for each in history if isinstance(each, Transaction) and each.outcome is Outcome.OK]


def _made_of(history: Sequence[Operation]) -> dict[Transaction, Poll]:
    """Return the polls of transactions that are sure to be committed and are made of records."""
    made = ((poll.transaction, poll) for poll in _polls(history))
    return {each: poll for each, poll in made if each is not None and each.outcome is Outcome.OK}


def _without(history: Sequence[Operation], send: Send) -> AbstractContextManager[None]:
    """Take a value out of everything that was read."""
    gone = send.value
    polls = [
        poll for poll in _polls(history) if any(value == gone for _, value in poll.records.get(send.partition, ()))
    ]
    return _changed(
        [
            (poll, "records", {**poll.records, send.partition: _others(poll.records[send.partition], gone)})
            for poll in polls
        ]
    )


def _others(records: Sequence[tuple[int, Value]], gone: Value) -> list[tuple[int, Value]]:
    return [record for record in records if record[1] != gone]


def _sender(history: Sequence[Operation]) -> dict[tuple[Partition, Value], Send]:
    return {(each.partition, each.value): each for each in history if isinstance(each, Send)}


def _reads(history: Sequence[Operation]) -> list[tuple[Poll, Transaction]]:
    """Return the polls that gave values of transactions whose commit is known, with one of those transactions each."""
    sends = _sender(history)
    found = []
    for poll in _polls(history):
        for partition, records in poll.records.items():
            send = sends[partition, records[0][1]] if records else None
            if send is not None and send.transaction is not None and send.transaction.outcome is Outcome.OK:
                found.append((poll, send.transaction))
    return found


def aborted_read(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Say of a committed transaction that it was aborted."""
    return _changed([(random.choice(_committed(history)), "outcome", Outcome.FAILED)])


def dirty_read(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Have the commit asked for only after a value was read."""
    poll, transaction = random.choice(_reads(history))
    assert poll.completed_ns is not None
    return _changed([(transaction, "commit_ns", poll.completed_ns + 1)])


def lost(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Have nobody ever see a value of a committed transaction."""
    return _without(history, random.choice(random.choice(_committed(history)).sends))


@contextmanager
def torn(history: Sequence[Operation], random: Random) -> Iterator[None]:
    """Have the end of a transaction be unknown, and nobody ever see one of its values."""
    transaction = random.choice([each for each in _committed(history) if len(each.sends) > 1])
    with ExitStack() as changes:
        changes.enter_context(_changed([(transaction, "outcome", Outcome.UNKNOWN)]))
        changes.enter_context(_without(history, random.choice(transaction.sends)))
        yield


def cycle(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Have a transaction read from another one that was made of its own values."""
    made = _made_of(history)
    sends = _sender(history)
    pairs = []
    readings = {transaction: poll for poll, transaction in _reads(history) if poll.transaction is None}
    for reader, poll in made.items():
        for partition, records in poll.records.items():
            for _, value in records:
                writer = sends[partition, value].transaction
                if writer is not None and writer.outcome is Outcome.OK and reader in readings:
                    pairs.append((writer, readings[reader]))
    writer, poll = random.choice(pairs)
    return _changed([(poll, "transaction", writer), (writer, "group", writer.group or "planted")])


def _fetches(history: Sequence[Operation]) -> list[tuple[FetchOffsets, Partition]]:
    return [
        (each, partition)
        for each in history
        if isinstance(each, FetchOffsets) and each.outcome is Outcome.OK
        for partition, offset in each.offsets.items()
        if offset is not None
    ]


def phantom_offsets(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Have a group go on from an offset that nobody has committed."""
    fetch, partition = random.choice(_fetches(history))
    return _changed([(fetch, "offsets", {**fetch.offsets, partition: 1 << 40})])


def lost_offsets(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Have a group forget where it was, at last."""
    fetch, partition = _fetches(history)[-1]
    return _changed([(fetch, "offsets", {**fetch.offsets, partition: None})])


def processed_twice(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Have a transaction be made of what another one of the same group was made of."""
    made = _made_of(history)
    groups: dict[str | None, list[Poll]] = {}
    for transaction, poll in made.items():
        groups.setdefault(transaction.group, []).append(poll)
    one, other = random.sample(random.choice([each for each in groups.values() if len(each) > 1]), 2)
    return _changed([(one, "records", {**other.records, **one.records} if _apart(one, other) else other.records)])


def _apart(one: Poll, other: Poll) -> bool:
    return not one.records.keys() & other.records.keys()


def processed_never(history: Sequence[Operation], random: Random) -> AbstractContextManager[None]:
    """Have a transaction be made of nothing, although it has committed offsets, and others after it."""
    made = _made_of(history)
    last: dict[tuple[str | None, Partition], Transaction] = {}
    for transaction in made:
        for partition in transaction.offsets:
            last[transaction.group, partition] = transaction
    earlier = [each for each in made if each not in last.values()]
    return _changed([(made[random.choice(earlier)], "transaction", None)])


MUTATIONS: Final[dict[Kind, Mutation]] = {
    Kind.LOST: lost,
    Kind.ABORTED_READ: aborted_read,
    Kind.DIRTY_READ: dirty_read,
    Kind.TORN: torn,
    Kind.CYCLE: cycle,
    Kind.PHANTOM_OFFSETS: phantom_offsets,
    Kind.LOST_OFFSETS: lost_offsets,
    Kind.PROCESSED_TWICE: processed_twice,
    Kind.PROCESSED_NEVER: processed_never,
}
