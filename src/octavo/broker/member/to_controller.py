"""All that handlers have the active controller do: `ToController`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from octavo.broker.answers import Wait
from octavo.broker.member.config import MemberConfig
from octavo.broker.member.controller import ControllerChannel
from octavo.broker.member.forwarding import Forwarding
from octavo.broker.member.producer_ids import ProducerIdBlocks
from octavo.broker.member.topic_creation import TopicCreation


class ToController:
    """What handlers of a member ask the active controller for. For the reactor's thread alone."""

    def __init__(
        self,
        channel: ControllerChannel,
        config: MemberConfig,
        properties: Mapping[str, str],
        *,
        request_timeout_ms: int,
        node_id: int,
        broker_epoch: Callable[[], int],
        served: Callable[[], Mapping[int, tuple[int, int]]],
        clock_ms: Callable[[], float],
        wake: Callable[[Wait], object],
        say: Callable[[str], object],
    ) -> None:
        """Ask nothing yet.

        properties: what the broker was started with, by Kafka's names
        request_timeout_ms: how long the controller may take to create topics that clients ask for
        broker_epoch: returns that of the present registration
        served: returns the versions of each API that the controller serves
        clock_ms: tells the time, by a clock that never goes back
        wake: has an answer that waits be sent soon
        say: tells the operator
        """
        self.forwarding: Final = Forwarding(channel, wake, served)
        self.topics: Final = TopicCreation(channel, config, properties, request_timeout_ms, say)
        self.producer_ids: Final = ProducerIdBlocks(
            channel, node_id, broker_epoch=broker_epoch, clock_ms=clock_ms, say=say
        )
