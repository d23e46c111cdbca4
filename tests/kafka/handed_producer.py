"""A producer with a transactional id, whichever broker it talks to: `Producing`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from octavo.broker.wire import api_keys
from octavo.errors import ErrorCode
from tests.kafka.handed_over import LONG_MS, Answers, Case, offset_of, until
from tests.server.test_transactions import Transactional

TOPIC: Final = "t"  # the one that `Transactional` writes to
AGAIN: Final = (  # the coordinator or the partition is not ready, or markers are still to be written
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
COMPLETE: Final = ("CompleteCommit", "CompleteAbort")


class Producing(Case):
    """A producer with a transactional id, and a partition to which nobody else writes."""

    seeded_epoch: int | None = None  # of the record that it begins with
    seeded_age_ms = 0

    def __init__(self, name: str, version: int, partition: int) -> None:
        super().__init__(name)
        self.version: Final = version
        self.partition: Final = partition
        self.identity = (-1, -1)
        self.sequence = 0

    # Requests

    def producer(self, address: str) -> Transactional:
        """The producer goes on, at another connection."""
        producer = Transactional(address, self.name)
        producer.producer_id, producer.epoch = self.identity
        return producer

    def begin(self, address: str, timeout_ms: int = LONG_MS) -> int:
        """Get an identity."""
        producer = Transactional(address, self.name)
        with producer.client:
            code = again(lambda: producer.init(timeout_ms))
        self.take(producer)
        return code

    def take(self, producer: Transactional) -> None:
        now = (producer.producer_id, producer.epoch)
        if now != self.identity:
            self.identity, self.sequence = now, 0

    def write(self, address: str, value: str) -> int:
        producer = self.producer(address)
        with producer.client:
            if self.version == 1:
                code = again(lambda: producer.add(self.partition)[0])
                if code:
                    return code
            content = value.encode()
            version = 10 if self.version == 1 else 12
            code = again(lambda: producer.produce(content, self.sequence, version, self.partition)[0])
        self.sequence += code == ErrorCode.NONE
        return code

    def write_offset(self, address: str, offset: int) -> int:
        producer = self.producer(address)
        with producer.client:
            if self.version == 1:
                content = {**producer._identity(), "group_id": self.name}
                code = again(lambda: int(producer.ask(api_keys.ADD_OFFSETS_TO_TXN, 3, **content).error_code))
                if code:
                    return code
            return again(lambda: producer.commit_offset(self.name, offset, 3 if self.version == 1 else 5))

    def end(self, address: str, *, commit: bool) -> int:
        """End the transaction, in all its partitions, and have the identity for the next one."""
        producer = self.producer(address)
        with producer.client:
            code = again(lambda: producer.end(4 if self.version == 1 else 5, commit=commit))
        self.take(producer)
        if code == ErrorCode.NONE:
            self.wait_for_end(address)
        return code

    def wait_for_end(self, address: str) -> None:
        until(lambda: self.state(address) in COMPLETE, f"the transaction of {self.name} does not end")

    def described(self, address: str) -> object:
        """What everybody sees of it."""
        producer = self.producer(address)
        with producer.client:
            state = producer.described()
        topics = sorted((each.topic, sorted(each.partitions)) for each in state.topics)
        named = (state.error_code, state.transaction_state, state.transaction_timeout_ms, state.producer_epoch)
        times = ("never", "now")[state.transaction_start_time_ms > 0]
        own = [
            (topic, [each - (topic == TOPIC) * self.partition for each in partitions]) for topic, partitions in topics
        ]
        return (*named, times, own, state.producer_id == self.identity[0])

    def state(self, address: str) -> str:
        producer = self.producer(address)
        with producer.client:
            return str(producer.described().transaction_state)

    def offset(self, address: str) -> tuple[int, int]:
        return offset_of(address, self.name, TOPIC)

    def look(self, address: str) -> Answers:
        yield self.described(address)
        yield self.offset(address)

    def next_transaction(self, address: str, *, commit: bool = True) -> Answers:
        yield self.write(address, f"{'next' if commit else 'aborted'} {self.partition}")
        yield self.write_offset(address, 90 if commit else 91)
        yield self.end(address, commit=commit), self.identity[1]
        yield from self.look(address)

    def next_producer(self, address: str) -> Answers:
        """Have another producer take the transactional id over; the one of before is fenced."""
        before, sequence = self.identity, self.sequence
        self.identity = (-1, -1)
        yield self.begin(address)
        new = self.identity
        yield new[0] == before[0], new[1]
        self.identity, self.sequence = before, sequence
        yield self.write(address, "of a zombie")
        yield self.write_offset(address, 66)
        yield self.end(address, commit=True)
        self.identity, self.sequence = new, 0
        yield from self.look(address)

    def all_the_rest(self, address: str) -> Answers:
        yield from self.next_transaction(address)
        yield from self.next_transaction(address, commit=False)
        yield from self.next_producer(address)
        yield from self.next_transaction(address)

    def open(self, address: str, timeout_ms: int = LONG_MS) -> None:
        """Begin a transaction, with a record and an offset."""
        assert self.begin(address, timeout_ms) == ErrorCode.NONE
        codes = [self.write(address, f"open {self.partition}"), self.write_offset(address, 5)]
        assert codes == [ErrorCode.NONE] * 2, f"{self.name} is told {codes}"


def again(ask: Callable[[], int]) -> int:
    """Ask until the answer is another one than to ask again."""
    codes: list[int] = []

    def is_answered() -> bool:
        codes.append(ask())
        return codes[-1] not in AGAIN

    until(is_answered, "it is never ready")
    return codes[-1]
