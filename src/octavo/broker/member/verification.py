"""Ask the coordinators on other brokers about transactions: `TransactionVerification`.

Before records of a transaction are appended for the first time, its coordinator says whether their partition is part of
it, or adds it (KIP-890). One request is under way to a broker at a time; the next one has everything that has come
meanwhile. A `Guard` keeps records out if the transaction has ended between the coordinator's answer and the append.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from octavo.broker.cluster_image import NO_LISTENER
from octavo.broker.member.leaders import Led
from octavo.broker.wire.api_keys import ADD_PARTITIONS_TO_TXN
from octavo.broker.wire.messages import Struct, read_response, write_request
from octavo.cluster.messages import Endpoint
from octavo.coordinator.shard import Producer
from octavo.coordinator.transactions.requests import Partition
from octavo.errors import ErrorCode
from octavo.log.coordinator.internal_topic import partition_of
from octavo.log.names import TRANSACTION_STATE

if TYPE_CHECKING:
    from octavo.broker.broker import Broker
    from octavo.broker.member.peers import Peers

_VERSION: Final = 5
_CHANNEL: Final = "transactions"
Codes = Mapping[Partition, ErrorCode]


class Guard(NamedTuple):
    """Belongs to a verification that is under way, or whose records are to be appended now."""

    led: Led
    producer_id: int
    token: object

    def holds(self) -> bool:
        """Return whether the transaction has not ended since. Call this with the lock of the log."""
        return self.led.verifying.get(self.producer_id) is self.token


class Verdict(NamedTuple):
    """What a coordinator has said of partitions, and what has to hold until records are appended."""

    codes: Codes
    guards: Mapping[Partition, Guard]


class _Question(NamedTuple):
    transactional_id: str
    producer: Producer
    partitions: Sequence[Partition]
    adds: bool
    answered: Callable[[Codes], object]

    def answer(self, code: ErrorCode) -> None:
        """Give the same answer for all partitions."""
        self.answered(dict.fromkeys(self.partitions, code))

    def content(self) -> dict[str, Any]:
        """Return what is asked, as it is in the request."""
        topics: dict[str, list[int]] = {}
        for topic, partition in self.partitions:
            topics.setdefault(topic, []).append(partition)
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer.id,
            "producer_epoch": self.producer.epoch,
            "verify_only": not self.adds,
            "topics": [{"name": name, "partitions": numbers} for name, numbers in topics.items()],
        }


class TransactionVerification:
    """The questions of this broker to coordinators. For the reactor's thread alone."""

    def __init__(self, broker: Broker, peers: Peers, *, listener_name: str) -> None:
        """`listener_name`: of the listener by which brokers reach each other."""
        self._broker: Final = broker
        self._peers: Final = peers
        self._listener_name: Final = listener_name
        self._waiting: Final[dict[Endpoint, list[_Question]]] = {}  # of those that have a request under way

    def verify(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[Partition],
        *,
        adds: bool,
        answered: Callable[[Codes], object],
    ) -> None:
        """Ask whether partitions are part of a transaction; `adds`: they are added to it."""
        question = _Question(transactional_id, producer, partitions, adds, answered)
        endpoint = self._find(transactional_id)
        if endpoint is None:
            question.answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        elif endpoint in self._waiting:
            self._waiting[endpoint].append(question)
        else:
            self._waiting[endpoint] = []
            self._send(endpoint, [question])

    def _find(self, transactional_id: str) -> Endpoint | None:
        """Return where the coordinator of a transactional id is; None if nobody knows, or if it is this broker."""
        image = self._broker.image
        topic = image.topics.get(TRANSACTION_STATE)
        if topic is None or not topic.partitions:
            return None
        partition = topic.partitions.get(partition_of(transactional_id, len(topic.partitions)))
        if partition is None or partition.leader == self._broker.node_id:
            return None
        node = image.listeners.get(self._listener_name, NO_LISTENER).nodes.get(partition.leader)
        return None if node is None or node.is_fenced else Endpoint(node.host, node.port)

    def _send(self, endpoint: Endpoint, several: Sequence[_Question]) -> None:
        """Send a request with the questions for different transactional ids. A second one for an id has to wait."""
        by_id: dict[str, _Question] = {}
        for question in several:
            if by_id.setdefault(question.transactional_id, question) is not question:
                self._waiting[endpoint].append(question)
        body = write_request(
            ADD_PARTITIONS_TO_TXN, _VERSION, {"transactions": [each.content() for each in by_id.values()]}
        )

        def answered(data: memoryview) -> None:
            answer = read_response(ADD_PARTITIONS_TO_TXN, _VERSION, data)
            self._go_on(endpoint)
            _give(by_id, answer)

        def failed(_: str) -> None:
            self._go_on(endpoint)
            for question in by_id.values():
                question.answer(ErrorCode.NETWORK_EXCEPTION)

        self._peers.ask(
            endpoint,
            _CHANNEL,
            ADD_PARTITIONS_TO_TXN,
            _VERSION,
            [body],
            timeout_ms=self._broker.config.request_timeout_ms,
            client_id=str(self._broker.node_id),
            answered=answered,
            failed=failed,
        )

    def _go_on(self, endpoint: Endpoint) -> None:
        """Send what has come while a request was under way."""
        waiting = self._waiting.pop(endpoint)
        if waiting:
            self._waiting[endpoint] = []
            self._send(endpoint, waiting)


def _give(asked: Mapping[str, _Question], answer: Struct) -> None:
    """Give a coordinator's answers to those who have asked."""
    if answer.error_code:
        is_denied = answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED  # no matter of the client's
        code = ErrorCode.INVALID_TXN_STATE if is_denied else _code(answer.error_code)
        for question in asked.values():
            question.answer(code)
        return
    results = {each.transactional_id: each for each in answer.results_by_transaction}
    for transactional_id, question in asked.items():
        # What is not named in the answer is not part of the transaction.
        codes = dict.fromkeys(question.partitions, ErrorCode.INVALID_TXN_STATE)
        result = results.get(transactional_id)
        for topic in () if result is None else result.topic_results:
            for each in topic.results_by_partition:
                codes[topic.name, each.partition_index] = _code(each.partition_error_code)
        question.answered(codes)


def _code(number: int) -> ErrorCode:
    """Return an error as producers know it."""
    if number == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
