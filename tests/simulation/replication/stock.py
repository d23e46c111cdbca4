"""A controller of Apache Kafka, asked over the wire (`StockController`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from octavo.broker.wire.api_keys import is_flexible
from octavo.broker.wire.messages import Struct, read_response, write_request
from octavo.broker.wire.primitives import skip_tagged
from octavo.log.metadata.image import Image
from octavo.records import Record, read_batches
from octavo.records.control import read_control
from octavo.schemas.metadata.nodes import BrokerRegistrationChangeRecord
from octavo.schemas.metadata.serde import read_metadata
from tests.server.raw import RawClient, header

FETCH, CREATE_TOPICS, ELECT_LEADERS, ALTER_PARTITION, REGISTRATION, HEARTBEAT = 1, 19, 43, 56, 62, 63
_VERSIONS: Final = {FETCH: 17, CREATE_TOPICS: 7, ELECT_LEADERS: 2, ALTER_PARTITION: 3, REGISTRATION: 4, HEARTBEAT: 2}
_METADATA_TOPIC: Final = UUID(int=1).bytes
Question = tuple[int, Mapping[str, Any]]  # the API, and the content of the request


class StockController:
    """Asks a controller, and follows its metadata log."""

    def __init__(self, address: str, connections: int) -> None:
        """Connect several times: what is asked on one connection is done one after the other."""
        self._address: Final = address
        self._clients: Final = [RawClient(address) for _ in range(connections)]
        self.image: Final = Image()
        self.fenced: Final[list[int]] = []  # brokers that were, one after the other
        self._offset = 0
        self._epochs = (0, 0)  # of the quorum, and of the last batch

    def connect_again(self) -> None:
        """Replace all connections."""
        count = len(self._clients)
        self._close()
        self._clients[:] = [RawClient(self._address) for _ in range(count)]

    def _close(self) -> None:
        for each in self._clients:
            each.socket.close()

    def ask(self, questions: Iterable[tuple[int, Question]]) -> list[Struct]:
        """Ask several things, each on a connection of some number, and return the answers."""
        asked = list(questions)
        for number, (api_key, content) in asked:
            version = _VERSIONS[api_key]
            body = write_request(api_key, version, content)
            self._clients[number].send(header(api_key, version, flexible=is_flexible(api_key, version)) + body)
        return [self._answer(number, api_key) for number, (api_key, _) in asked]

    def _answer(self, number: int, api_key: int) -> Struct:
        answer = self._clients[number].receive()
        assert answer is not None, "the controller has closed the connection"
        frame = memoryview(answer)
        return read_response(api_key, _VERSIONS[api_key], frame[skip_tagged(frame, 4) :])

    def catch_up(self) -> None:
        """Replay what was committed."""
        while True:
            epoch, last_epoch = self._epochs
            partition = {
                "partition": 0,
                "current_leader_epoch": epoch,
                "fetch_offset": self._offset,
                "last_fetched_epoch": last_epoch,
            }
            question = {
                "max_wait_ms": 0,
                "max_bytes": 8 << 20,
                "session_epoch": -1,
                "topics": [{"topic_id": _METADATA_TOPIC, "partitions": [partition]}],
            }
            (answer,) = self.ask([(0, (FETCH, question))])
            part = answer.responses[0].partitions[0]
            self._epochs = (part.current_leader.leader_epoch if part.error_code else epoch, last_epoch)
            if part.error_code:
                continue
            for batch in read_batches(part.records or b""):
                for record in batch:
                    self._replay(record, is_control=batch.is_control)
                self._offset, self._epochs = batch.last_offset + 1, (epoch, batch.leader_epoch)
            if self._offset >= part.high_watermark:
                return

    def _replay(self, record: Record, *, is_control: bool) -> None:
        if is_control:
            self.image.replay_control(read_control(record))
            return
        content = read_metadata(record.value)
        self.image.replay(content)
        if isinstance(content, BrokerRegistrationChangeRecord) and content.fenced == 1:
            self.fenced.append(content.broker_id)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def __enter__(self) -> Self:
        return self
