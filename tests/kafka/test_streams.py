"""Kafka Streams counts words exactly once on Octavo's broker, while the application or the broker is killed.

Nothing is cached in the application, so it writes a count for each word that it meets. Exactly once means that the
counts of a word are 1, 2, 3 and so on, each once, in the order of the topic, for a reader of committed records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Protocol

import pytest

from tests.faults.broker_process import BrokerProcess
from tests.kafka.conftest import NewBroker
from tests.kafka.releases import KafkaUnavailable, do_without
from tests.kafka.word_count import BROKER, CHANGELOG, KILLED, REPARTITION, WordCount
from tests.kafka.words import Words
from tests.soak.plugin import Soak


class Killable(Protocol):
    """The application, or a broker: Octavo's or Apache Kafka's."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


Choice = Callable[[Killable, Killable], Killable]  # one of broker and application


def the_broker(broker: Killable, application: Killable) -> Killable:
    return broker


def the_application(broker: Killable, application: Killable) -> Killable:
    return application


def count_words(broker: Killable, address: str, folder: Path, kills: Iterable[int], choose: Choice, seed: int) -> None:
    """Count words while one of broker and application is killed again and again."""
    random = Random(seed)
    with new_application(address, folder, choose) as application, Words(address, random) as words:
        application.start()
        killed = choose(broker, application)
        for _ in kills:
            words.go_on(random.choice([1, 100, 1000]))
            killed.kill()
            killed.start()
        words.go_on(500)
        words.read_the_rest()
        assert application.failures == []
        words.wait_for_purge(REPARTITION)
        assert application.stop() == 0
        once = {word: list(range(1, times + 1)) for word, times in words.words.items()}
        assert words.counts == once, f"seed {seed}"
        assert words.read_everything() == once, f"seed {seed}"
        assert words.read_changelog() == words.words, f"seed {seed}"
        assert words.lines_left() == 0
        changelog, repartition = words.settings(CHANGELOG), words.settings(REPARTITION)
        assert changelog["cleanup.policy"] == "compact"
        assert (repartition["cleanup.policy"], repartition["retention.ms"]) == ("delete", "-1")
        assert repartition["segment.bytes"] == "52428800"


def new_application(address: str, folder: Path, choose: Choice, **settings: str) -> WordCount:
    more = KILLED if choose is the_application else {}
    try:
        return WordCount(address, folder / "state", {**more, **settings})
    except KafkaUnavailable as reason:
        do_without(reason)


@pytest.mark.parametrize("choose", [the_application, pytest.param(the_broker, marks=pytest.mark.exhaustive)])
def test_words_are_counted_exactly_once(java: str, tmp_path: Path, choose: Choice) -> None:
    with BrokerProcess(tmp_path, BROKER) as broker:
        count_words(broker, broker.address, tmp_path, range(2), choose, seed=17)
        assert broker.stop() == 0
    assert "Traceback" not in broker.said()


def test_the_protocol_of_streams_groups_is_refused_in_words_that_streams_understands(java: str, tmp_path: Path) -> None:
    with (
        BrokerProcess(tmp_path, BROKER) as broker,
        new_application(broker.address, tmp_path, the_broker, **{"group.protocol": "streams"}) as application,
        Words(broker.address, Random(17)),
    ):
        application.start()
        application.wait_for("ERROR")
        (failure,) = application.failures[1:]
        assert "UnsupportedVersionException: The cluster does not support the STREAMS group protocol" in failure


@pytest.mark.soak(30)
@pytest.mark.parametrize("choose", [the_application, the_broker])
def test_words_are_counted_exactly_once_through_many_kills(
    java: str, tmp_path: Path, choose: Choice, soak: Soak
) -> None:
    with BrokerProcess(tmp_path, BROKER) as broker:
        count_words(broker, broker.address, tmp_path, soak.rounds(), choose, soak.seed)
        assert broker.stop() == 0
    assert "Traceback" not in broker.said()


@pytest.mark.soak(30)
@pytest.mark.parametrize("choose", [the_application, the_broker])
def test_two_instances_share_the_words(java: str, tmp_path: Path, choose: Choice, soak: Soak) -> None:
    """What the instance that is killed had in hand goes to the other, and comes back."""
    with (
        BrokerProcess(tmp_path, BROKER) as broker,
        new_application(broker.address, tmp_path / "other", choose) as other,
    ):
        other.start()
        count_words(broker, broker.address, tmp_path, soak.rounds(), choose, soak.seed)
        assert other.failures == []
        assert other.stop() == 0
        assert broker.stop() == 0
    assert "Traceback" not in broker.said()


@pytest.mark.soak(30)
@pytest.mark.parametrize("choose", [the_application, the_broker])
def test_apache_kafka_passes_the_same_test(new_broker: NewBroker, tmp_path: Path, choose: Choice, soak: Soak) -> None:
    with new_broker(tmp_path / "data", settings=BROKER) as broker:
        broker.format()
        broker.start()
        count_words(broker, broker.address, tmp_path, soak.rounds(), choose, soak.seed)
