"""Transactions: what consumers see of them, who may go on with them, and records that are moved once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import pytest

from tests.clients.driver import CannotDo, ClientError, Record
from tests.clients.features import Stage, eventually, feature
from tests.clients.stored import stored_batches, stored_markers
from tests.clients.team import Team, fill

_GROUP: Final = "Transactions"
_TIMEOUT_MS: Final = 30_000


@contextmanager
def _producer(stage: Stage, timeout_ms: int = _TIMEOUT_MS) -> Iterator[int]:
    """Open a producer whose transactional id is the name of the topic."""
    producer = stage.client.transactions.open(stage.name, timeout_ms)
    try:
        yield producer
    finally:
        stage.client.transactions.close(producer)


def _records(*values: bytes) -> list[Record]:
    return [Record(value=value) for value in values]


def _send(stage: Stage, producer: int, *values: bytes, commit: bool | None = None) -> None:
    """Produce values in a new transaction, and end it if it is told how."""
    stage.client.transactions.begin(producer)
    stage.client.transactions.send(producer, stage.name, _records(*values))
    if commit is not None:
        stage.client.transactions.end(producer, commit=commit)


def _wait_for_markers(stage: Stage, *markers: str) -> None:
    """Wait until the transactions have ended like that. Brokers may answer before they have written it."""
    eventually(lambda: stored_markers(stage.broker.folder, stage.name) == list(markers))


def _consume(stage: Stage, count: int, *, read_committed: bool) -> list[bytes]:
    """Return the first values that a new member gets."""
    with Team(stage, read_committed=read_committed) as team:
        member = team.join()
        team.poll_until(lambda: len(member.records) >= count)
        return member.values


@feature(
    _GROUP,
    "commit and abort",
    "Consumers with read_committed get what is committed and nothing that is aborted; those without get everything.",
)
def commit_and_abort(stage: Stage) -> None:
    stage.new_topic()
    with _producer(stage) as producer:
        _send(stage, producer, b"one", b"two", commit=True)
        _send(stage, producer, b"lost", commit=False)
        _send(stage, producer, b"three", commit=True)
    _wait_for_markers(stage, "commit", "abort", "commit")
    assert _consume(stage, 3, read_committed=True) == [b"one", b"two", b"three"]
    assert _consume(stage, 4, read_committed=False) == [b"one", b"two", b"lost", b"three"]


@feature(
    _GROUP, "version 2", "Each transaction has an epoch of its own (KIP-890), so that no late request can end the next."
)
def version_2(stage: Stage) -> None:
    stage.new_topic()
    with _producer(stage) as producer:
        for commit in (True, False, True):
            _send(stage, producer, b"value", commit=commit)
    _wait_for_markers(stage, "commit", "abort", "commit")
    batches = [batch for batch in stored_batches(stage.broker.folder, stage.name) if not batch.is_control]
    epochs = [batch.producer_epoch for batch in batches]
    if len(set(epochs)) == 1:
        raise CannotDo("its transactions are of version 1")
    assert epochs == list(range(epochs[0], epochs[0] + 3))


@feature(_GROUP, "read committed", "Nothing behind an open transaction is given to who reads what is committed.")
def read_committed(stage: Stage) -> None:
    stage.new_topic()
    with _producer(stage) as producer, Team(stage, read_committed=True) as team, Team(stage, "hasty") as hasty:
        _send(stage, producer, b"open")
        stage.other.produce(stage.name, _records(b"behind"), {})
        patient, quick = team.join(), hasty.join()

        def both() -> bool:
            patient.poll()
            return len(quick.records) == 2 and len(patient.last.assignment) == 1

        hasty.poll_until(both)
        assert (quick.values, patient.values) == ([b"open", b"behind"], [])
        stage.client.transactions.end(producer, commit=True)
        team.poll_until(lambda: len(patient.records) == 2)
        assert patient.values == [b"open", b"behind"]


@feature(_GROUP, "zombies", "A producer whose transactional id another has taken is fenced, and its records are lost.")
def zombies(stage: Stage) -> None:
    stage.new_topic()
    with _producer(stage) as zombie:
        _send(stage, zombie, b"zombie")
        with _producer(stage) as producer:
            with pytest.raises(ClientError):
                stage.client.transactions.end(zombie, commit=True)
            _send(stage, producer, b"kept", commit=True)
    _wait_for_markers(stage, "abort", "commit")
    assert _consume(stage, 1, read_committed=True) == [b"kept"]


@feature(_GROUP, "time-outs", "A transaction that takes too long is aborted by the broker, and cannot be committed.")
def time_outs(stage: Stage) -> None:
    stage.new_topic()
    with _producer(stage, timeout_ms=1_000) as producer:
        _send(stage, producer, b"late")
        _wait_for_markers(stage, "abort")
        with pytest.raises(ClientError):
            stage.client.transactions.end(producer, commit=True)
    with _producer(stage) as producer:
        _send(stage, producer, b"in time", commit=True)
    assert _consume(stage, 1, read_committed=True) == [b"in time"]


@feature(
    _GROUP,
    "consume, transform, produce",
    "What a member has consumed is produced again and committed in one transaction; after one that is aborted it is "
    "done again, and all is there once.",
)
def consume_transform_produce(stage: Stage) -> None:
    stage.new_topic(3)
    values = fill(stage, 12, partitions=3)
    out = replace(stage, name=f"{stage.name}-out").new_topic()
    with _producer(stage) as producer, Team(stage, read_committed=True) as team:
        for commit in (False, True):
            member = team.join()
            team.poll_until(lambda member=member: len(member.records) >= len(values))  # type: ignore[misc]  # a loop's own value
            stage.client.transactions.begin(producer)
            stage.client.transactions.send(producer, out, _records(*(b"of " + value for value in member.values)))
            stage.client.transactions.send_offsets(producer, member.number)
            assert stage.other.groups.committed(team.group) == {}
            stage.client.transactions.end(producer, commit=commit)
            positions = {(stage.name, partition): 4 for partition in range(3)} if commit else {}
            eventually(lambda positions=positions: stage.other.groups.committed(team.group) == positions)  # type: ignore[misc]  # a loop's own value
            team.leave(member)
    with Team(stage, "last", read_committed=True) as team:
        member = team.join(topic=out)
        team.poll_until(lambda: len(member.records) >= len(values))
        assert sorted(member.values) == sorted(b"of " + value for value in values)


@feature(_GROUP, "a kill of the broker", "The broker is killed in the middle of a transaction, which then goes on.")
def over_a_kill(stage: Stage) -> None:
    stage = stage.strict()
    stage.new_topic()
    with _producer(stage) as producer:
        _send(stage, producer, b"before", commit=True)
        _send(stage, producer, b"in the middle")
        stage.broker.kill()
        stage.broker.start()
        stage.client.transactions.send(producer, stage.name, _records(b"after"))
        stage.client.transactions.end(producer, commit=True)
    assert _consume(stage, 3, read_committed=True) == [b"before", b"in the middle", b"after"]
