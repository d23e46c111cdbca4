"""Records of transactions whose coordinator is on another broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from octavo.broker.cluster_image import PartitionImage
from octavo.broker.member.peers import Answered, Failed
from octavo.broker.member.verification import TransactionVerification
from octavo.broker.wire.api_keys import ADD_PARTITIONS_TO_TXN, WRITE_TXN_MARKERS
from octavo.broker.wire.messages import Struct, read_request, write_response
from octavo.cluster.messages import Endpoint
from octavo.coordinator.shard import Producer
from octavo.errors import ErrorCode
from octavo.log.metadata.sorted_map import SortedMap
from tests.unit.broker.member.member_broker import EPOCH, TOPIC, MemberBroker

STATE = "__transaction_state"
HERE = Endpoint("host-2", 9002)


class Coordinator:
    """The other broker, as `Peers`: it answers when the test says so."""

    def __init__(self) -> None:
        self.asked: Final[list[tuple[Struct, Answered, Failed]]] = []
        self.timeouts_ms: Final[list[int]] = []

    def ask(
        self,
        endpoint: Endpoint,
        channel: str,
        api_key: int,
        version: int,
        body: Sequence[bytes],
        *,
        timeout_ms: int,
        client_id: str,
        answered: Answered,
        failed: Failed,
    ) -> None:
        assert (endpoint, api_key) == (HERE, ADD_PARTITIONS_TO_TXN)
        self.timeouts_ms.append(timeout_ms)
        self.asked.append((read_request(api_key, version, memoryview(b"".join(body))), answered, failed))

    def disconnect(self, endpoint: Endpoint, channel: str, reason: str) -> None:
        raise AssertionError

    @property
    def transactions(self) -> list[Struct]:
        """What the oldest request asks."""
        return list(self.asked[0][0].transactions)

    def answer(self, code: int = 0, *, error_code: int = 0) -> None:
        """Answer the oldest request."""
        asked, answered, _ = self.asked.pop(0)
        results: list[dict[str, Any]] = [
            {
                "transactional_id": each.transactional_id,
                "topic_results": [
                    {
                        "name": topic.name,
                        "results_by_partition": [
                            {"partition_index": number, "partition_error_code": code} for number in topic.partitions
                        ],
                    }
                    for topic in each.topics
                ],
            }
            for each in asked.transactions
        ]
        content = {"throttle_time_ms": 0, "error_code": error_code, "results_by_transaction": results}
        answered(memoryview(write_response(ADD_PARTITIONS_TO_TXN, 5, content)))

    def fail(self) -> None:
        """Lose the connection."""
        self.asked.pop(0)[2]("lost")


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def member(tmp_path: Path, coordinator: Coordinator) -> Iterator[MemberBroker]:
    found = MemberBroker(tmp_path)
    found.lead(1)
    broker = found.broker
    topic = broker.image.topics[TOPIC]._replace(
        name=STATE, id=bytes(16), partitions={0: PartitionImage(0, 2, 0, (2,), (2,))}
    )
    broker.image = broker.image._replace(topics=broker.image.topics.with_item(STATE, topic))
    broker.verification = TransactionVerification(broker, coordinator, listener_name="PLAINTEXT")
    yield found
    found.close()


def end(member: MemberBroker, *, epoch: int = 0) -> None:
    """The coordinator ends the transaction of producer 9."""
    marker = {
        "producer_id": 9,
        "producer_epoch": epoch,
        "transaction_result": False,
        "topics": [{"name": TOPIC, "partition_indexes": [0]}],
        "coordinator_epoch": 0,
        "transaction_version": 1,
    }
    assert member.ask(WRITE_TXN_MARKERS, 2, {"markers": [marker]}).is_answered()


def test_a_coordinator_has_the_time_that_the_settings_give_it(member: MemberBroker, coordinator: Coordinator) -> None:
    member.broker.config = replace(member.broker.config, request_timeout_ms=1234)
    member.produce_in("id")
    assert coordinator.timeouts_ms == [1234]


def test_the_coordinator_is_asked_before_the_first_records(member: MemberBroker, coordinator: Coordinator) -> None:
    produced = member.produce_in("id")
    assert not produced.is_answered()
    [asked] = coordinator.transactions
    assert (asked.transactional_id, asked.producer_id, asked.producer_epoch, asked.verify_only) == ("id", 9, 0, True)
    assert [(each.name, list(each.partitions)) for each in asked.topics] == [(TOPIC, [0])]
    coordinator.answer()
    member.turn()
    assert (produced.partition.error_code, produced.partition.base_offset) == (0, 0)
    more = member.produce_in("id", sequence=1)
    assert more.partition.error_code == 0
    assert not coordinator.asked  # the transaction is open here


def test_clients_of_the_second_version_add_partitions(member: MemberBroker, coordinator: Coordinator) -> None:
    produced = member.produce_in("id", version=12)
    assert coordinator.transactions[0].verify_only is False
    coordinator.answer()
    member.turn()
    assert produced.partition.error_code == 0


@pytest.mark.parametrize(
    ("version", "code", "told"),
    [
        (10, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.INVALID_TXN_STATE),
        (11, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
        (11, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH),
        (11, ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_ENOUGH_REPLICAS),
        (11, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_ENOUGH_REPLICAS),
        (11, ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (11, 9999, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_a_producer_is_told(
    member: MemberBroker, coordinator: Coordinator, version: int, code: int, told: int
) -> None:
    produced = member.produce_in("id", version=version)
    coordinator.answer(code)
    member.turn()
    assert produced.partition.error_code == told
    assert member.directory.log(TOPIC, 0).end_offset == 0


def test_a_coordinator_that_cannot_be_reached_is_asked_again(member: MemberBroker, coordinator: Coordinator) -> None:
    produced = member.produce_in("id")
    coordinator.fail()
    member.turn()
    assert produced.partition.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    produced = member.produce_in("id")
    coordinator.answer(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    member.turn()
    assert produced.partition.error_code == ErrorCode.INVALID_TXN_STATE
    image = member.broker.image
    member.broker.image = image._replace(topics=SortedMap([(TOPIC, image.topics[TOPIC])]))
    assert member.produce_in("id").partition.error_code == ErrorCode.NOT_ENOUGH_REPLICAS  # there is no coordinator


def test_the_end_of_the_transaction_before_is_awaited(member: MemberBroker, coordinator: Coordinator) -> None:
    produced = member.produce_in("id", version=12)
    coordinator.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    member.turn()
    assert not produced.is_answered()
    member.expire()  # a pause
    coordinator.answer()
    member.turn()
    assert produced.partition.error_code == 0


def test_the_transaction_before_may_end_while_the_coordinator_is_asked_again(
    member: MemberBroker, coordinator: Coordinator
) -> None:
    first = member.produce_in("id", version=12)
    coordinator.answer()
    member.turn()
    assert first.partition.error_code == 0
    second = member.produce_in("id", version=12, epoch=1)
    coordinator.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    member.turn()
    end(member, epoch=1)
    member.expire()  # a pause
    coordinator.answer()
    member.turn()
    assert second.partition.error_code == 0


def test_records_do_not_come_after_the_end_of_their_transaction(member: MemberBroker, coordinator: Coordinator) -> None:
    produced = member.produce_in("id")
    end(member)
    coordinator.answer()  # it was given before
    member.turn()
    assert produced.partition.error_code == ErrorCode.INVALID_TXN_STATE
    again = member.produce_in("id")
    coordinator.answer()
    member.turn()
    assert again.partition.error_code == 0


def test_another_leader_meanwhile(member: MemberBroker, coordinator: Coordinator) -> None:
    produced = member.produce_in("id")
    member.follow(2)
    member.lead(1, epoch=EPOCH + 2, version=30)
    coordinator.answer()
    member.turn()
    assert produced.partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_old_producer_is_known_without_a_question(member: MemberBroker, coordinator: Coordinator) -> None:
    member.produce_in("id", epoch=2)
    coordinator.answer()
    member.turn()
    assert member.produce_in("id", epoch=1).partition.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert not coordinator.asked


def test_questions_go_together_while_one_is_under_way(member: MemberBroker, coordinator: Coordinator) -> None:
    given: dict[str, Any] = {}
    verification = member.broker.verification
    assert verification is not None

    def ask(name: str, transactional_id: str) -> None:
        partitions = [(TOPIC, 0), (TOPIC, 1)]
        producer = Producer(9, 0)
        verification.verify(
            transactional_id, producer, partitions, adds=False, answered=lambda codes: given.update({name: codes})
        )

    for name, transactional_id in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "x")):
        ask(name, transactional_id)
    seen = []
    while coordinator.asked:
        assert len(coordinator.asked) == 1
        seen.append([each.transactional_id for each in coordinator.transactions])
        coordinator.answer()
    assert seen == [["x"], ["x", "y"], ["x"]]
    assert given == {name: {(TOPIC, 0): 0, (TOPIC, 1): 0} for name in "abcd"}


def test_without_acknowledgement_nothing_is_answered(member: MemberBroker, coordinator: Coordinator) -> None:
    produced = member.produce_in("id", acks=0)
    coordinator.answer()
    member.turn()
    assert produced.is_answered()
    assert member.directory.log(TOPIC, 0).end_offset == 1
