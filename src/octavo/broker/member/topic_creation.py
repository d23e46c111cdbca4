"""Topics that a member has the controller create because a client asks for them: `TopicCreation`.

The client is answered at once that there is no such topic, and asks again. A topic is asked for once at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from octavo.broker.member.config import MemberConfig
from octavo.broker.member.controller import ControllerChannel
from octavo.broker.member.forwarding import TIMEOUT_MS, envelope
from octavo.broker.request import Request
from octavo.broker.wire.api_keys import CREATE_TOPICS, ENVELOPE
from octavo.broker.wire.frames import RequestHeader, response_header_size
from octavo.broker.wire.member_messages import ENVELOPE_VERSION, read_envelope
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import ErrorCode, MalformedRequest
from octavo.log.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from octavo.records.layout import MAX_INT16

_VERSION: Final = 7
_NUM_PARTITIONS: Final = "num.partitions"
_REPLICATION: Final = "default.replication.factor"
_CONTROLLER_CHOOSES: Final = -1
_MOST: Final = 10_000  # names that wait for an answer


class TopicCreation:
    """Has the active controller create topics. For the reactor's thread alone."""

    def __init__(
        self,
        channel: ControllerChannel,
        config: MemberConfig,
        properties: Mapping[str, str],
        request_timeout_ms: int,
        say: Callable[[str], object],
    ) -> None:
        """`properties`: what the broker was started with. What they leave open, the controller chooses."""
        self._channel: Final = channel
        self._config: Final = config
        self._properties: Final = properties
        self._request_timeout_ms: Final = request_timeout_ms
        self._say: Final = say
        self._asked: Final[set[str]] = set()

    def create(self, names: Iterable[str], request: Request) -> None:
        """Have topics created in the name of the client that has sent a request."""
        new = self._new(names)
        if new:
            header = request.header._replace(api_key=CREATE_TOPICS, version=_VERSION)
            self._channel.ask(
                ENVELOPE,
                ENVELOPE_VERSION,
                envelope(request, header, self._request(new)),
                answered=lambda data: self._opened(header, new, data),
                failed=lambda reason: self._done(new, reason),
                timeout_ms=TIMEOUT_MS,
            )

    def create_internal(self, name: str) -> None:
        """Have an internal topic created, in the broker's own name."""
        new = self._new([name])
        if new:
            self._channel.ask(
                CREATE_TOPICS,
                _VERSION,
                self._request(new),
                answered=lambda data: self._answered(new, data),
                failed=lambda reason: self._done(new, reason),
                timeout_ms=TIMEOUT_MS,
            )

    def _new(self, names: Iterable[str]) -> list[str]:
        """Return the names that were not asked for yet."""
        new = sorted(set(names) - self._asked)
        if len(self._asked) + len(new) > _MOST:  # there is no controller, and clients ask for one after the other
            return []
        self._asked.update(new)
        return new

    def _request(self, names: Iterable[str]) -> bytes:
        content = {
            "topics": [self._topic(name) for name in names],
            "timeout_ms": self._request_timeout_ms,
            "validate_only": False,
        }
        return write_request(CREATE_TOPICS, _VERSION, content)

    def _topic(self, name: str) -> dict[str, Any]:
        config, properties = self._config, self._properties
        settings: dict[str, str] = {}
        if name == CONSUMER_OFFSETS:
            partitions, replication = config.offsets_topic_num_partitions, config.offsets_topic_replication_factor
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
        elif name == TRANSACTION_STATE:
            partitions = config.transaction_state_log_num_partitions
            replication = config.transaction_state_log_replication_factor
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            }
        elif name == SHARE_GROUP_STATE:
            partitions = config.share_coordinator_state_topic_num_partitions
            replication = config.share_coordinator_state_topic_replication_factor
            settings = {
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                "retention.ms": "-1",
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
            }
        else:
            partitions = int(properties.get(_NUM_PARTITIONS, _CONTROLLER_CHOOSES))
            replication = _CONTROLLER_CHOOSES
            if _REPLICATION in properties:
                replication = min(config.default_replication_factor, MAX_INT16)
        return {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": replication,
            "assignments": [],
            "configs": [{"name": key, "value": value} for key, value in settings.items()],
        }

    def _opened(self, header: RequestHeader, names: list[str], data: memoryview) -> bool:
        """Take an answer in an Envelope. Returns False if it is not from the active controller."""
        code, response = read_envelope(data)
        if code == ErrorCode.NOT_CONTROLLER:
            return False
        if code != ErrorCode.NONE or response is None:
            self._done(names, f"the controller answers with error {code}")
            return True
        view = memoryview(response)
        return self._answered(names, view[response_header_size(header, view) :])

    def _answered(self, names: list[str], data: memoryview) -> bool:
        try:
            topics = read_response(CREATE_TOPICS, _VERSION, data).topics
        except MalformedRequest as error:
            self._done(names, f"the controller's answer makes no sense: {error}")
            return True
        if any(each.error_code == ErrorCode.NOT_CONTROLLER for each in topics):
            return False
        self._done(names, None)
        for each in topics:
            if each.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                self._say(f"topic {each.name} could not be created: {each.error_message or each.error_code}")
        return True

    def _done(self, names: Iterable[str], problem: str | None) -> None:
        self._asked.difference_update(names)
        if problem is not None:
            self._say(f"topics could not be created: {problem}")
