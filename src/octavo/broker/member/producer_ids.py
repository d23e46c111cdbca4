"""Producer ids, in blocks that the active controller gives to a broker: `ProducerIdBlocks`.

No id is ever handed out twice, so a block is not kept on the disk: what is left of it is lost when the broker stops.
The next block is asked for before the present one is used up. Until there is one, producers are told to ask again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from octavo.broker.member.controller import ControllerChannel
from octavo.broker.member.forwarding import TIMEOUT_MS
from octavo.broker.wire.api_keys import ALLOCATE_PRODUCER_IDS
from octavo.broker.wire.member_messages import (
    ALLOCATE_PRODUCER_IDS_VERSION,
    ProducerIds,
    read_allocate_producer_ids,
    write_allocate_producer_ids,
)
from octavo.errors import ErrorCode
from octavo.records.layout import MAX_INT64

_ASKED_AT: Final = 0.9  # of a block: then the next one is asked for
_PAUSE_MS: Final = 50  # after a block was refused


class ProducerIdBlocks:
    """The producer ids of one broker. For the reactor's thread alone."""

    def __init__(
        self,
        channel: ControllerChannel,
        node_id: int,
        *,
        broker_epoch: Callable[[], int],
        clock_ms: Callable[[], float],
        say: Callable[[str], object],
    ) -> None:
        """Have no block.

        broker_epoch: returns that of the present registration
        clock_ms: tells the time, by a clock that never goes back
        say: tells the operator
        """
        self._channel: Final = channel
        self._node_id: Final = node_id
        self._broker_epoch: Final = broker_epoch
        self._clock_ms: Final = clock_ms
        self._say: Final = say
        self._present: range = range(0)
        self._used = 0  # of the present block
        self._next: range | None = None
        self._is_asked = False
        self._not_before_ms = 0.0  # nobody is asked until then

    def take(self) -> int | None:
        """Return a producer id; None if there is none, and the producer has to ask again."""
        if self._used == len(self._present):
            if self._next is None:
                self._ask()
                return None
            self._present, self._next, self._used = self._next, None, 0
        producer_id = self._present[self._used]
        self._used += 1
        if self._used > len(self._present) * _ASKED_AT:
            self._ask()
        return producer_id

    def _ask(self) -> None:
        """Ask for the next block, unless there is one, or it was asked for, or refused a moment ago."""
        if self._is_asked or self._next is not None or self._clock_ms() < self._not_before_ms:
            return
        self._is_asked = True
        self._channel.ask(
            ALLOCATE_PRODUCER_IDS,
            ALLOCATE_PRODUCER_IDS_VERSION,
            write_allocate_producer_ids(self._node_id, self._broker_epoch()),
            answered=self._answered,
            failed=self._failed,
            timeout_ms=TIMEOUT_MS,
        )

    def _answered(self, data: memoryview) -> bool:
        answer = read_allocate_producer_ids(data)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            return False
        self._is_asked = False
        problem = self._problem(answer)
        if problem is None:
            self._next = range(answer.first, answer.first + answer.length)
        else:
            self._not_before_ms = self._clock_ms() + _PAUSE_MS
            self._say(f"the controller has given no producer ids: {problem}")
        return True

    def _failed(self, reason: str) -> None:
        self._is_asked = False
        self._say(f"no producer ids could be had: {reason}")

    def _problem(self, answer: ProducerIds) -> str | None:
        if answer.error_code != ErrorCode.NONE:
            return f"error {answer.error_code}"
        if answer.length <= 0 or not 0 <= answer.first <= MAX_INT64 - answer.length:
            return f"its block makes no sense, {answer.length} from {answer.first} on"
        if answer.first < self._present.stop:
            return f"its block begins at {answer.first}, below {self._present.stop}"
        return None
