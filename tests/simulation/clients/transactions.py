"""A transactional producer: `TransactionalProducer`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple

from octavo.broker.wire.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from octavo.broker.wire.messages import Struct
from octavo.errors import ErrorCode
from octavo.records import BatchBuilder
from tests.simulation.wire import Ask, Membership, Transaction
from tests.simulation.world import Client, Doing, World

TIMEOUT_MS: Final = 15_000  # of transactions
GROUP: Final = "of transactions"
_ATTEMPTS: Final = 8
_AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
_LOST: Final = -1000  # in place of an error: there is no answer
Steps = Generator[Ask | int, Struct | None, int]


class _Versions(NamedTuple):
    """The versions of the APIs that go together."""

    init: int
    produce: int
    commit: int
    end: int
    is_2: bool


_V1: Final = _Versions(4, 11, 3, 4, is_2=False)
_V2: Final = _Versions(5, 12, 5, 5, is_2=True)


class TransactionalProducer(Client):
    """Begins transactions, produces, commits offsets, and ends them; sometimes it sleeps too long, or is gone.

    as_whom: says as whom it commits offsets; a member of a group may be out of it without knowing that
    """

    def __init__(
        self,
        world: World,
        name: str,
        transactional_id: str,
        *,
        is_2: bool,
        as_whom: Callable[[], Membership] = lambda: Membership(GROUP),
    ) -> None:
        self.name = name
        self.transactions: Final[list[Transaction]] = []
        self._world: Final = world
        self._id: Final = transactional_id
        self._as_whom: Final = as_whom
        self._versions: Final = _V2 if is_2 else _V1
        self._producer = (-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}

    @property
    def patience_ms(self) -> int:  # type: ignore[override] # it differs from request to request
        """A request of version 1 that is late can end the next transaction, in Kafka too, so none is given up early."""
        if self._versions.is_2 and not self.is_settling and self._world.happens(0.2):
            return self._world.random.randrange(100, 6_000)
        return 30_000

    def run(self) -> Doing:
        while not self.is_settling:
            can_go_on = (yield from self._init()) == ErrorCode.NONE
            while can_go_on and not self.is_settling:
                can_go_on = yield from self._one_transaction()
                yield self._world.random.randrange(3_000)
            if self._world.happens(0.3):
                return  # another one has the id, or the producer is gone
            yield self._world.random.randrange(5_000)

    # -------------------------------------------------------------------------------------------------------- requests

    def _until_told(self, ask: Ask) -> Generator[Ask | int, Struct | None, tuple[int, Struct | None]]:
        """Ask until there is an answer that is final."""
        code, answer = _LOST, None
        for _ in range(_ATTEMPTS):
            answer = yield ask
            code = _LOST if answer is None else code_of(ask, answer)
            if code not in (_LOST, *_AGAIN):
                break
            yield self._world.random.randrange(20, 1_500)
        return code, answer

    def _init(self, *, is_continued: bool = False) -> Steps:
        known = self._producer if is_continued else (-1, -1)
        ask = Ask(
            INIT_PRODUCER_ID,
            self._versions.init,
            {
                "transactional_id": self._id,
                "transaction_timeout_ms": TIMEOUT_MS,
                "producer_id": known[0],
                "producer_epoch": known[1],
            },
        )
        code, answer = yield from self._until_told(ask)
        if code == ErrorCode.NONE and answer is not None:
            self._producer = (answer.producer_id, answer.producer_epoch)
            self._sequences = {}
        return code

    def _one_transaction(self) -> Generator[Ask | int, Struct | None, bool]:
        """Return whether the producer can go on with the next."""
        world = self._world
        transaction = Transaction(self._id, self._producer, world.new_number())
        self.transactions.append(transaction)
        code = int(ErrorCode.NONE)
        for number in range(world.random.randrange(1, 4)):
            code = yield from self._produce(transaction, number)
            if code != ErrorCode.NONE:
                break
        if code == ErrorCode.NONE and world.happens(0.5):
            code = yield from self._commit_offsets(transaction)
        if not self.is_settling and world.happens(0.1):
            yield world.random.randrange(2 * TIMEOUT_MS)
        if not self.is_settling and world.happens(0.05):
            return False
        is_committed = code == ErrorCode.NONE and world.happens(0.75)
        ended = yield from self._end(transaction, is_committed=is_committed)
        if ended != ErrorCode.NONE:
            return False
        if code != ErrorCode.NONE and not self._versions.is_2:  # nobody knows which sequence numbers are used up
            return (yield from self._init(is_continued=world.happens(0.5))) == ErrorCode.NONE
        return True

    def _produce(self, transaction: Transaction, number: int) -> Steps:
        place = self._world.random.choice((("a", 0), ("a", 1), ("b", 0)))
        if not self._versions.is_2:
            code, _ = yield from self._until_told(self._add_ask(transaction, place))
            if code != ErrorCode.NONE:
                return code
        value = f"{self._id}/{transaction.number}/{number}"
        transaction.records[value] = False
        transaction.topics[value] = place[0]
        sequence = self._sequences.get(place, 0)
        builder = BatchBuilder(
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        builder.append(None, value.encode(), timestamp_ms=self._world.clock.wall_ms())
        ask = Ask(
            PRODUCE,
            self._versions.produce,
            {
                "transactional_id": self._id,
                "acks": -1,
                "timeout_ms": 1_000,
                "topic_data": [{"name": place[0], "partition_data": [{"index": place[1], "records": builder.build()}]}],
            },
            transaction,
        )
        code, _ = yield from self._until_told(ask)
        if code == ErrorCode.NONE:
            transaction.records[value] = True
            self._sequences[place] = sequence + 1
        return code

    def _add_ask(self, transaction: Transaction, place: tuple[str, int]) -> Ask:
        return Ask(
            ADD_PARTITIONS_TO_TXN,
            3,
            {
                "v3_and_below_transactional_id": self._id,
                "v3_and_below_producer_id": self._producer[0],
                "v3_and_below_producer_epoch": self._producer[1],
                "v3_and_below_topics": [{"name": place[0], "partitions": [place[1]]}],
            },
            transaction,
        )

    def _identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self._id,
            "producer_id": self._producer[0],
            "producer_epoch": self._producer[1],
        }

    def _commit_offsets(self, transaction: Transaction) -> Steps:
        member = self._as_whom()
        if member.generation > 1 and self._world.happens(0.1):
            member = member._replace(generation=member.generation - 1)  # it was late
        if not self._versions.is_2:
            ask = Ask(ADD_OFFSETS_TO_TXN, 3, {**self._identity(), "group_id": member.group}, transaction)
            code, _ = yield from self._until_told(ask)
            if code != ErrorCode.NONE:
                return code
        offsets = [
            {
                "partition_index": partition,
                "committed_offset": self._world.new_number(),
                "committed_leader_epoch": -1,
                "committed_metadata": "",
            }
            for partition in (0, 1)
            if self._world.happens(0.7) or not partition
        ]
        content = {
            **self._identity(),
            "group_id": member.group,
            "generation_id": member.generation,
            "member_id": member.member_id,
            "group_instance_id": member.instance,
            "topics": [{"name": "a", "partitions": offsets}],
        }
        code, _ = yield from self._until_told(Ask(TXN_OFFSET_COMMIT, self._versions.commit, content, transaction))
        return code

    def _end(self, transaction: Transaction, *, is_committed: bool) -> Steps:
        content = {**self._identity(), "committed": is_committed}
        code, answer = yield from self._until_told(Ask(END_TXN, self._versions.end, content, transaction))
        if code == ErrorCode.NONE and self._versions.is_2 and answer is not None:
            self._producer = (answer.producer_id, answer.producer_epoch)
            self._sequences = {}
        return code


def code_of(ask: Ask, answer: Struct) -> int:
    """Return the error of an answer, whichever part of it has one."""
    if ask.api_key == PRODUCE:
        return int(answer.responses[0].partition_responses[0].error_code)
    if ask.api_key == ADD_PARTITIONS_TO_TXN:
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)
    if ask.api_key == TXN_OFFSET_COMMIT:
        return max(int(each.error_code) for each in answer.topics[0].partitions)
    return int(answer.error_code)
