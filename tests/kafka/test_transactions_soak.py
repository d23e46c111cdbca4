"""A directory that goes to and fro between Octavo and a broker, each of which does to it whatever comes.

At every turn both have to know the same of it. Either they crash now and then, or they delete records: after both at
once nobody knows the producers any more of what is deleted, nor where a transaction began of which the end is left.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Final

import pytest

from octavo.log import DataDirectory
from octavo.log.coordinator import Coordinator
from octavo.log.metadata import handover
from octavo.log.names import TopicPartition
from tests.kafka.bare_producer import BareProducer
from tests.kafka.conftest import NewBroker
from tests.kafka.java_clients import JavaClients, JavaProducer
from tests.kafka.judge import Judge
from tests.kafka.serving import Known, known_to_octavo
from tests.kafka.written import KEPT, LONG_MS
from tests.soak.plugin import Soak

PLAIN: Final = [TopicPartition("plain", number) for number in range(2)]
COMPACTED: Final = TopicPartition("compacted", 0)
PLACES: Final = [*PLAIN, COMPACTED]
CONFIG: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1",
    "internal.segment.bytes": "2000",
    "index.interval.bytes": "200",
}
SETTINGS: Final = {"log.cleaner.backoff.ms": "50"}
NAMES: Final = ["a", "b", "c"]
KEYS: Final = [b"key %d" % number for number in range(12)]
TURNS: Final = 6
STEPS: Final = 25

Pairs = list[tuple[bytes | None, bytes | None]]
Table = dict[bytes | None, bytes]


class Truth:
    """What the compacted partition should come to."""

    def __init__(self) -> None:
        self._committed: dict[int, tuple[bytes | None, bytes | None]] = {}  # records by their offsets
        self._undecided: dict[str, dict[int, tuple[bytes | None, bytes | None]]] = {}  # by transactional id
        self._number = 0

    def pairs(self, random: Random) -> Pairs:
        pairs: Pairs = []
        for _ in range(random.randrange(1, 5)):
            self._number += 1
            pairs.append((random.choice(KEYS), None if random.random() < 0.2 else b"value %d" % self._number))
        return pairs

    def write(self, name: str | None, offset: int, pairs: Pairs) -> None:
        records = self._committed if name is None else self._undecided.setdefault(name, {})
        records.update(enumerate(pairs, offset))

    def end(self, name: str, *, commit: bool) -> None:
        records = self._undecided.pop(name, {})
        if commit:
            self._committed.update(records)

    def table(self, end_offset: int) -> Table:
        last = {key: value for offset, (key, value) in sorted(self._committed.items()) if offset < end_offset}
        return {key: value for key, value in last.items() if value is not None}


def table_of(known: Known) -> Table:
    last = {record.key: record.value for record in known.committed.records}
    return {key: value for key, value in last.items() if value is not None}


class OctavoTurn:
    """Octavo has the directory."""

    def __init__(self, data: DataDirectory, random: Random, truth: Truth, *, deletes: bool) -> None:
        self._data = data
        self._deletes = deletes
        self._random = random
        self._truth = truth
        self._coordinator = Coordinator.of(data)
        self._open: dict[str, dict[TopicPartition, BareProducer]] = {}
        self._plain = {
            place: BareProducer(data.log(*place), self._coordinator.init_producer_id().producer_id) for place in PLACES
        }
        self._identities = {name: self._coordinator.init_producer_id(name, LONG_MS) for name in NAMES}
        self._producers: dict[tuple[str, TopicPartition], BareProducer] = {}
        for name in NAMES:
            truth.end(name, commit=False)

    def step(self) -> None:
        place = self._random.choice(PLACES)
        log = self._data.log(*place)
        what = self._random.random()
        if what < 0.1:
            log.roll()
        elif what < 0.2 and place == COMPACTED:
            log.compact()
        elif what < 0.23 and place != COMPACTED and self._deletes:
            # In the midst of a batch all is unstable from there on here, and in Kafka from where the batch begins.
            offsets = [batch.base_offset for batch in log.reader()]
            if offsets:
                log.delete_records_before(self._random.choice(offsets))
                log.apply_retention()
        elif what < 0.4:
            self._write(None, place, self._plain[place])
        else:
            self._go_on(self._random.choice(NAMES), place)

    def _go_on(self, name: str, place: TopicPartition) -> None:
        identity = self._identities[name]
        if name in self._open and self._random.random() < 0.4:
            commit = self._random.random() < 0.6
            self._coordinator.end_transaction(name, identity, commit)
            self._truth.end(name, commit=commit)
            del self._open[name]
            return
        self._coordinator.add_partitions(name, identity, [place])
        self._open.setdefault(name, {})
        if (name, place) not in self._producers:
            self._producers[name, place] = BareProducer(self._data.log(*place), *identity, transactional=True)
        self._write(name, place, self._producers[name, place])

    def _write(self, name: str | None, place: TopicPartition, producer: BareProducer) -> None:
        pairs = self._truth.pairs(self._random)
        offset = producer.append_pairs(pairs).base_offset
        if place == COMPACTED:
            self._truth.write(name, offset, pairs)


class KafkaTurn:
    """A broker has it."""

    def __init__(self, java: JavaClients, random: Random, truth: Truth) -> None:
        self._random = random
        self._truth = truth
        self._java = java
        self._plain = java.producer()
        self._producers: dict[str, JavaProducer] = {}
        self._open: set[str] = set()

    def step(self) -> None:
        place = self._random.choice(PLACES)
        if self._random.random() < 0.2:
            self._write(None, place, self._plain)
            return
        name = self._random.choice(NAMES)
        producer = self._producers.get(name)
        if producer is None:
            producer = self._producers[name] = self._java.producer(
                **{"transactional.id": name, "transaction.timeout.ms": str(LONG_MS)}
            )
            producer.init()
            self._truth.end(name, commit=False)
        if name in self._open and self._random.random() < 0.4:
            commit = self._random.random() < 0.6
            (producer.commit if commit else producer.abort)()
            self._truth.end(name, commit=commit)
            self._open.remove(name)
            return
        if name not in self._open:
            producer.begin()
            self._open.add(name)
        self._write(name, place, producer)

    def _write(self, name: str | None, place: TopicPartition, producer: JavaProducer) -> None:
        pairs = self._truth.pairs(self._random)
        offset = producer.send_pairs(*place, pairs)[0]
        if place == COMPACTED:
            self._truth.write(name, offset, pairs)

    def end(self) -> None:
        for producer in (self._plain, *self._producers.values()):
            producer.abandon()


def check(ours: dict[TopicPartition, Known], theirs: dict[TopicPartition, Known], truth: Truth) -> None:
    for place in PLAIN:
        for mine, told in zip(ours[place], theirs[place], strict=True):
            assert mine == told, f"{place}\nOctavo {mine}\nKafka  {told}"
    for known in (ours[COMPACTED], theirs[COMPACTED]):
        assert table_of(known) == truth.table(known.committed.end_offset)
        assert known.end_offset == ours[COMPACTED].end_offset
        assert known.committed.end_offset == ours[COMPACTED].committed.end_offset


@pytest.mark.soak(60)
def test_whoever_has_a_directory_goes_on_with_what_the_other_did(
    tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge, soak: Soak
) -> None:
    for seed in soak.seeds():
        (tmp_path / str(seed)).mkdir()
        go_to_and_fro(tmp_path / str(seed), new_broker, kafka_broker, seed)


def go_to_and_fro(tmp_path: Path, new_broker: NewBroker, kafka_broker: Judge, seed: int) -> None:
    """Give a directory to Octavo, then to Apache Kafka, and so on."""
    random = Random(seed)
    crashes = 0.4 if seed % 2 == 0 else 0.0
    truth = Truth()
    folder = tmp_path / "data"
    with DataDirectory.open(folder) as data:
        data.create_topic("plain", len(PLAIN), KEPT)
        data.create_topic("compacted", 1, CONFIG)
    theirs: dict[TopicPartition, Known] | None = None
    config: dict[str, str] | None = None
    for number in range(TURNS):
        after = tmp_path / str(number)
        with DataDirectory.open(folder, broker_config=config) as data:
            if theirs is not None:
                check({place: known_to_octavo(data.log(*place)) for place in PLACES}, theirs, truth)
            turn = OctavoTurn(data, random, truth, deletes=not crashes)
            for _ in range(STEPS):
                turn.step()
            if random.random() < crashes:
                shutil.copytree(folder, after)
                folder, after = after, folder
            ours = {place: known_to_octavo(data.log(*place)) for place in PLACES}
        handover([folder])
        broker = new_broker(folder, settings=SETTINGS)
        config = broker.settings
        broker.start()
        java = JavaClients(kafka_broker, broker)
        check(ours, {place: java.known(*place) for place in PLACES}, truth)
        their_turn = KafkaTurn(java, random, truth)
        for _ in range(STEPS):
            their_turn.step()
        their_turn.end()
        theirs = {place: java.known(*place) for place in PLACES}
        (broker.kill if random.random() < crashes else broker.stop)()
