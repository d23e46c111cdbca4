"""A member of a cluster without sockets: requests go in, and the test answers for the controller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.broker.answers import Answer, Wait
from octavo.broker.broker import Broker
from octavo.broker.cluster_image import member_image
from octavo.broker.config import BrokerConfig
from octavo.broker.member.config import MEMBER_OPTIONS, MemberConfig
from octavo.broker.member.controller import ControllerChannel
from octavo.broker.member.to_controller import ToController
from octavo.broker.wire.api_keys import MEMBER_APIS
from octavo.broker.wire.frames import RequestHeader, response_header_size, write_request_header
from octavo.broker.wire.messages import Struct, read_response, write_request
from octavo.cluster.messages import Endpoint
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata.image import Image
from tests.unit.broker.member.recorded_peers import RecordedPeers

LISTENER = "PLAINTEXT"
CORRELATION_ID = 77


class Client(NamedTuple):
    listener: tuple[str, int] = ("localhost", 9092)
    listener_name: str = LISTENER
    peer: str = "127.0.0.1"


class Member(RecordedPeers):
    """A broker that is a member of a cluster with this image."""

    def __init__(self, folder: Path, image: Image, properties: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.now_ms = 0.0
        self.served: dict[int, tuple[int, int]] = {}  # what the controller serves
        self.said: Final[list[str]] = []
        self.directory: Final = DataDirectory.open(folder)
        self.broker: Final = Broker(self.directory, BrokerConfig(), say=self.said.append, is_member=True)
        self.broker.image = member_image(image, "cluster", None)
        self.broker.run_here(lambda: None)
        self.channel: Final = ControllerChannel(
            self, lambda: Endpoint("controller", 1), channel="forward", client_id="1", clock_ms=lambda: self.now_ms
        )
        given = dict(properties or {})
        self.broker.controller = ToController(
            self.channel,
            MemberConfig(**MEMBER_OPTIONS.read({name: given[name] for name in given if name in MEMBER_OPTIONS.names})),
            given,
            request_timeout_ms=self.broker.config.request_timeout_ms,
            node_id=self.broker.node_id,
            broker_epoch=lambda: 42,
            served=lambda: self.served,
            clock_ms=lambda: self.now_ms,
            wake=self.broker.wake,
            say=self.said.append,
        )

    def request(self, api_key: int, version: int, content: dict[str, Any], client: Client | None = None) -> Request:
        """Send a request, as a client does."""
        return Request(self, api_key, version, content, client or Client())

    def wait(self, time_ms: float) -> None:
        """Let time pass."""
        self.now_ms += time_ms
        self.channel.tick(self.now_ms)


class Request:
    """A request of a client, which was answered or waits."""

    def __init__(self, member: Member, api_key: int, version: int, content: dict[str, Any], client: Client) -> None:
        self.header: Final = RequestHeader(api_key, version, CORRELATION_ID, "me", 0)
        self.frame: Final = write_request_header(self.header) + write_request(api_key, version, content)
        self._broker: Final = member.broker
        self._answer: Final[Answer] = self._broker.handle(memoryview(self.frame), client)
        if isinstance(self._answer, Wait):
            self._broker.watch(self._answer)

    @property
    def waits(self) -> bool:
        return not self.is_answered

    @property
    def is_answered(self) -> bool:
        return not isinstance(self._answer, Wait) or self._answer in self._broker.take_woken()

    def answer(self) -> Struct:
        """Return the answer, which must be there."""
        parts = self._answer
        if isinstance(parts, Wait):
            parts = parts.retry(False)
        assert isinstance(parts, list)
        data = memoryview(b"".join(each for each in parts if isinstance(each, bytes)))
        assert MEMBER_APIS[self.header.api_key]
        return read_response(self.header.api_key, self.header.version, data[response_header_size(self.header, data) :])
