"""Sequences over groups and transactions are answered as Apache Kafka answers them, also if the broker is restarted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from octavo.errors import ErrorCode
from octavo.server.serving import Server, serve
from tests.kafka.broker import Broker
from tests.kafka.conftest import NewBroker
from tests.server.conversation import differences
from tests.server.sequences import (
    classic,
    classic_departures,
    consumer_sessions,
    consumers,
    expiring,
    migrations,
    offsets,
    static_members,
    transaction_partitions,
    transactional_offsets,
    transactions,
)
from tests.server.sequences.running import SETTINGS, Runner, Trace
from tests.server.sequences.script import error_codes, is_unready
from tests.server.sequences.sequence import SEQUENCES, Sequence
from tests.soak.plugin import Soak

_MODULES: Final = (
    classic,
    classic_departures,
    static_members,
    offsets,
    consumers,
    consumer_sessions,
    migrations,
    transactions,
    transaction_partitions,
    transactional_offsets,
)  # they fill the table


# Errors that the sequences are meant to bring about: without them they would not get to where they should.
_MEANT: Final = {
    ErrorCode.NONE,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.NON_EMPTY_GROUP,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.UNSUPPORTED_ASSIGNOR,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    ErrorCode.TRANSACTION_ABORTABLE,
}


class _Kafka:
    """Apache Kafka, which can be restarted."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker

    @property
    def address(self) -> str:
        return self._broker.address

    def restart(self) -> None:
        self._broker.stop()
        self._broker.start()


class _Ours:
    """The broker, which can be restarted."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder: Final = folder
        self._settings: Final = settings
        self._server: Server = self._start()

    def _start(self) -> Server:
        return serve(self._folder, config=self._settings, say=lambda _: None)

    @property
    def address(self) -> str:
        return self._server.bootstrap_servers

    def restart(self) -> None:
        self.close()
        self._server = self._start()

    def close(self) -> None:
        self._server.close()


class Pair:
    """Both brokers, and what they answer to the same sequences."""

    def __init__(self, ours: Runner, theirs: Runner) -> None:
        self._both: Final = (ours, theirs)
        self._pool: Final = ThreadPoolExecutor(2)
        self.codes: set[int] = set()  # the errors that Kafka has answered

    def run(self, sequences: Iterable[Sequence], tag: str, restarts: dict[str, int] | None = None) -> list[str]:
        """Run sequences against both, and return the differences."""
        ours, theirs = self._pool.map(lambda each: each.run(list(sequences), tag, restarts), self._both)
        self.codes = {code for trace in theirs.values() for _, answer in trace for code in error_codes(answer)}
        where = {name: f" (restart before request {at})" for name, at in (restarts or {}).items()}
        return [
            f"{each.name}{where.get(each.name, '')}, {line}"
            for each in sequences
            for line in compared(ours[each.name], theirs[each.name])
        ]

    @property
    def steps(self) -> dict[str, int]:
        """How many requests the sequences had that were run last."""
        return self._both[0].steps


def compared(ours: Trace, theirs: Trace) -> list[str]:
    """Return how two runs of a sequence differ, and what says that a coordinator was not there."""
    found: list[str] = []
    for number, ((label, answer), (_, expected)) in enumerate(zip(ours, theirs, strict=False)):
        found += [f"answer {number} to {label}{line}" for line in differences(answer, expected)]
        if is_unready(expected):
            found.append(f"answer {number} to {label}: no coordinator: {expected}")
    if len(ours) != len(theirs):
        found.append(f"{len(ours)} answers, and Kafka gives {len(theirs)}")
    return found


@contextmanager
def both(new_broker: NewBroker, folder: Path, **more: str) -> Iterator[Pair]:
    """Start both brokers. `more`: further settings."""
    settings = SETTINGS | more
    with new_broker(folder / "kafka", settings=settings) as kafka:
        kafka.format()
        kafka.start()
        ours = _Ours(folder / "ours", settings)
        try:
            runners = Runner(ours), Runner(_Kafka(kafka))
            for each in runners:
                each.prepare()
            yield Pair(*runners)
        finally:
            ours.close()


def test_sequences_are_answered_as_kafka_answers_them(new_broker: NewBroker, tmp_path: Path) -> None:
    assert len(SEQUENCES) >= 60
    with both(new_broker, tmp_path) as pair:
        found = pair.run(SEQUENCES, "1")
        met = pair.codes
    check(found)
    assert met >= _MEANT, _MEANT - met


@pytest.mark.exhaustive
def test_sequences_are_answered_as_by_kafka_also_after_a_restart_in_the_middle(
    new_broker: NewBroker, tmp_path: Path
) -> None:
    with both(new_broker, tmp_path) as pair:
        found = pair.run(SEQUENCES, "1")
        steps = pair.steps
        middle = {
            each.name: steps[each.name] // 2 if each.restart_at is None else each.restart_at for each in SEQUENCES
        }
        found += pair.run(SEQUENCES, "2", middle)
    check(found)


@pytest.mark.soak(75)
def test_the_broker_may_be_restarted_before_any_request(new_broker: NewBroker, tmp_path: Path, soak: Soak) -> None:
    """All sequences are run together, with a restart before their first request, or before their second, and so on."""
    with both(new_broker, tmp_path) as pair:
        found = pair.run(SEQUENCES, "0")
        steps = pair.steps
        for seed in soak.seeds():
            at = seed % max(steps.values())
            places = {each.name: at for each in SEQUENCES if at < steps[each.name] and each.restart_at in (None, at)}
            found += pair.run([each for each in SEQUENCES if each.name in places], f"at{seed}", places)
            check(found)


@pytest.mark.soak(10)
@pytest.mark.parametrize("policy", ["disabled", "downgrade", "upgrade", "bidirectional"])
def test_transactional_ids_expire_and_groups_become_others_as_they_may(
    new_broker: NewBroker, tmp_path: Path, policy: str
) -> None:
    settings = expiring.EXPIRING | {"group.consumer.migration.policy": policy}
    with both(new_broker, tmp_path, **settings) as pair:
        found = pair.run(expiring.SEQUENCES, "1")
        codes = pair.codes
    check(found)
    assert codes >= {ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}


def check(found: list[str]) -> None:
    """Fail with the first differences."""
    assert not found, "\n".join([f"{len(found)} differences:", *found[:40]])
