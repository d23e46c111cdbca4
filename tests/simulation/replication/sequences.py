"""Sequences of requests for a controller, from seeds. `by_hand.py` has others.

A sequence is a generator. It looks at the model, and yields what is asked next of the model and of a real controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from octavo.cluster.messages import (
    AlterPartitionChange,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerState,
    TopicIdPartition,
)
from tests.simulation.replication.controller import Controller
from tests.simulation.replication.elections import NOBODY

BROKERS: Final = (1, 2, 3)
TOPIC_ID: Final = UUID(int=1000)
PARTITIONS: Final = (TopicIdPartition(TOPIC_ID, 0), TopicIdPartition(TOPIC_ID, 1))
CAUGHT_UP: Final = 1 << 40  # an offset that a broker tells of
_STEPS: Final = 26


class Create(NamedTuple):
    """Create the topic, with these replicas of each partition."""

    replicas: tuple[tuple[int, ...], ...]


class Elect(NamedTuple):
    """Elect the preferred leader of a partition."""

    partition: TopicIdPartition


class Silence(NamedTuple):
    """Nothing is heard of some brokers until their sessions are over. The others send heartbeats."""

    brokers: frozenset[int]


class FailOver(NamedTuple):
    """Another controller takes over, or the same one after a restart."""


Step = BrokerRegistrationRequest | BrokerHeartbeatRequest | AlterPartitionRequest | Create | Elect | Silence | FailOver
Sequence = Callable[["Asker"], Iterator[Step]]


class Asker:
    """Makes requests that fit the state of a model, or do not."""

    def __init__(self, model: Controller) -> None:
        self.model: Final = model
        self._incarnations = 0

    def epoch(self, broker: int) -> int:
        """Return the epoch of a broker; -1 if it is not registered."""
        known = self.model.brokers.get(broker)
        return -1 if known is None else known.broker_epoch

    def register(self, broker: int, previous: int = -1, *, is_again: bool = False) -> BrokerRegistrationRequest:
        """Register with a new incarnation, or again with that of the last time."""
        known = self.model.brokers.get(broker)
        self._incarnations += 1
        incarnation = known.incarnation_id if known and is_again else UUID(int=broker << 32 | self._incarnations)
        return BrokerRegistrationRequest(
            broker, "", incarnation, (), (), None, (UUID(int=200 + broker),), previous_broker_epoch=previous
        )

    def heartbeat(
        self,
        broker: int,
        *,
        epoch: int | None = None,
        offset: int = CAUGHT_UP,
        want_fence: bool = False,
        want_shut_down: bool = False,
    ) -> BrokerHeartbeatRequest:
        """Send a heartbeat, by default of a broker that is ready."""
        return BrokerHeartbeatRequest(
            broker, self.epoch(broker) if epoch is None else epoch, offset, want_fence, want_shut_down
        )

    def keep_alive(self, broker: int) -> BrokerHeartbeatRequest:
        """Send a heartbeat that changes nothing, unless the broker waits until it may shut down."""
        return self.heartbeat(broker, want_fence=self.model.brokers[broker].fenced)

    def alter(
        self,
        isr: tuple[int, ...],
        number: int = 0,
        *,
        sender: int | None = None,
        broker_epoch: int | None = None,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        epochs: dict[int, int] | None = None,
        recovery_state: int = 0,
        partition: TopicIdPartition | None = None,
    ) -> AlterPartitionRequest:
        """Ask for other replicas in sync, by default as the leader does. The two epochs are relative."""
        record = self.model.partitions[PARTITIONS[number]]
        sender = record.leader if sender is None else sender
        members = tuple(BrokerState(each, (epochs or {}).get(each, self.epoch(each))) for each in isr)
        change = AlterPartitionChange(
            record.leader_epoch + leader_epoch, record.partition_epoch + partition_epoch, members, recovery_state
        )
        own_epoch = self.epoch(sender) if broker_epoch is None else broker_epoch
        return AlterPartitionRequest(sender, own_epoch, {partition or PARTITIONS[number]: change})

    def begin(self, *ready: int) -> Iterator[Step]:
        """Have all brokers registered, some of them ready, and a topic."""
        for broker in BROKERS:
            yield self.register(broker)
        for broker in ready or BROKERS:
            yield self.heartbeat(broker)
        yield Create(((1, 2, 3), (2, 3, 1)))


def from_seed(seed: int, *, fails_over: bool = False) -> Sequence:
    """Return the sequence of a seed."""

    def sequence(ask: Asker) -> Iterator[Step]:
        random = Random(seed)
        yield from ask.begin(*random.choice((BROKERS, BROKERS, BROKERS, (1, 2), (3,))))
        old = {broker: [ask.epoch(broker)] for broker in BROKERS}
        silent = sorted(random.sample(range(4, _STEPS), 2))
        last: Step | None = None
        for number in range(_STEPS):
            if fails_over and number == _STEPS // 2:
                yield FailOver()
            if number in silent:
                yield Silence(frozenset(random.sample(BROKERS, random.choice((1, 1, 2, 3)))))
                continue
            if last is None or random.random() > 0.12:  # otherwise the answer was lost
                last = _some_request(ask, random, old)
            yield last
            for broker in BROKERS:
                if ask.epoch(broker) not in old[broker]:
                    old[broker].append(ask.epoch(broker))

    return sequence


def _some_request(ask: Asker, random: Random, old: dict[int, list[int]]) -> Step:
    chance, broker = random.random(), random.choice(BROKERS)
    known = ask.model.brokers[broker]
    any_epoch = random.choice((known.broker_epoch, *old[broker], known.broker_epoch + 1, -1))
    if chance < (0.35 if known.fenced else 0.06):
        previous = random.choice((known.broker_epoch, known.broker_epoch, -1, any_epoch))
        return ask.register(broker, previous, is_again=random.random() < 0.2)
    if chance < (0.7 if known.fenced else 0.3):
        return ask.heartbeat(
            broker,
            epoch=any_epoch if random.random() < 0.1 else None,
            offset=0 if known.fenced and random.random() < 0.2 else CAUGHT_UP,
            want_fence=random.random() < 0.2,
            want_shut_down=random.random() < 0.3,
        )
    if chance > 0.95:
        return Elect(random.choice(PARTITIONS))
    return _some_change(ask, random, old)


def _some_change(ask: Asker, random: Random, old: dict[int, list[int]]) -> Step:
    number = random.randrange(2)
    record = ask.model.partitions[PARTITIONS[number]]
    sender = record.leader if record.leader != NOBODY and random.random() < 0.9 else random.choice(BROKERS)
    others = random.sample([*record.replicas, 9] if random.random() < 0.05 else record.replicas, random.randint(0, 3))
    isr = [each for each in others if each != sender]
    if random.random() < 0.95:
        isr.insert(random.randint(0, len(isr)), sender)
    epochs = {each: random.choice((-1, random.choice(old.get(each, [5])))) for each in isr if random.random() < 0.2}
    partition = None
    if random.random() < 0.03:
        partition = random.choice((TopicIdPartition(TOPIC_ID, 7), TopicIdPartition(UUID(int=5), 0)))
    return ask.alter(
        tuple(isr),
        number,
        sender=sender,
        broker_epoch=random.choice(old[sender]) if random.random() < 0.07 else None,
        leader_epoch=_odd(random),
        partition_epoch=_odd(random),
        epochs=epochs,
        recovery_state=int(random.random() < 0.04),
        partition=partition,
    )


def _odd(random: Random) -> int:
    return random.choice((-1, 1)) if random.random() < 0.07 else 0
