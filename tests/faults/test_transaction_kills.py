"""A broker that is killed with SIGKILL under transactions, again and again, keeps them whole.

The history of what real clients have seen is clean; and if it is changed as a fault would have it, the checker says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from tests.faults.broker_process import BrokerProcess
from tests.faults.load import BROKER
from tests.faults.test_kill import verify
from tests.faults.transaction_load import TransactionLoad
from tests.history import Kind, Outcome, Transaction, check
from tests.history.mutations import MUTATIONS
from tests.kafka.broker import Broker
from tests.kafka.conftest import NewBroker
from tests.kafka.judge import Judge
from tests.soak.plugin import Soak


def kill_under_transactions(
    folder: Path, judge: Judge, kills: Iterable[int], seed: int, most: int
) -> tuple[Path, TransactionLoad]:
    """Kill Octavo's broker under transactions, and check its directory afterwards."""
    with BrokerProcess(folder, BROKER) as broker:
        load = check_through_kills(broker, judge, kills, seed, most)
        assert broker.stop() == 0
    assert "Traceback" not in broker.said()
    verify(broker.data)
    return broker.data, load


def check_through_kills(
    broker: BrokerProcess | Broker, judge: Judge, kills: Iterable[int], seed: int, most: int
) -> TransactionLoad:
    """Kill a broker again and again, each time when up to `most` more transactions are committed."""
    random = Random(seed)
    with TransactionLoad(broker.address, random, judge) as load:
        for _ in kills:
            load.wait_for(random.choice([1, most // 10, most]))
            broker.kill()
            broker.start()
        load.wait_for(most)
    assert not load.errors, load.errors
    load.read_everything(broker.address)
    report = check(load.history)
    assert report.is_clean, f"{report}\nseed {seed}"
    return load


@pytest.mark.exhaustive
def test_transactions_stay_whole_when_a_broker_is_killed(tmp_path: Path, kafka_broker: Judge) -> None:
    _, load = kill_under_transactions(tmp_path, kafka_broker, kills=range(10), seed=17, most=40)
    history = list(load.history)
    assert {each.outcome for each in history if isinstance(each, Transaction)} == set(Outcome)
    for kind, mutation in MUTATIONS.items():
        with mutation(history, Random(17)):
            found = check(history).kinds
        assert kind in found or (kind is Kind.LOST and Kind.UNSEEN in found), kind


@pytest.mark.soak(30)
def test_transactions_stay_whole_in_many_kills_and_apache_kafka_goes_on_from_there(
    tmp_path: Path, kafka_broker: Judge, new_broker: NewBroker, soak: Soak
) -> None:
    data, load = kill_under_transactions(tmp_path, kafka_broker, kills=soak.rounds(), seed=soak.seed, most=200)
    with new_broker(data) as kafka:
        kafka.start()
        load.read_everything(kafka.address)
        assert kafka.troubles == []
        kafka.stop()
    report = check(load.history)
    assert report.is_clean, report


@pytest.mark.soak(30)
def test_transactions_stay_whole_when_apache_kafka_is_killed(
    tmp_path: Path, kafka_broker: Judge, new_broker: NewBroker, soak: Soak
) -> None:
    with new_broker(tmp_path / "data") as kafka:
        kafka.format()
        kafka.start()
        check_through_kills(kafka, kafka_broker, kills=soak.rounds(), seed=soak.seed, most=40)
