"""Have the controller change the replicas in sync: `IsrChanges` collects changes for AlterPartition.

One request is under way at a time; it has all changes that wait. It is sent again for ever, for nobody knows whether a
request without an answer was carried out. What comes of a change is given to its partition (`LedPartition.settled`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from octavo.cluster.leading import IsrChange
from octavo.cluster.messages import (
    NONE,
    AlteredPartition,
    AlterPartitionAnswer,
    AlterPartitionRequest,
    TopicIdPartition,
)
from octavo.errors import ErrorCode

RETRY_MS: Final = 50


class Settled(NamedTuple):
    """The answers to changes, and whether the controller has to be looked for."""

    answers: Sequence[tuple[IsrChange, AlteredPartition]] = ()
    is_not_controller: bool = False


class IsrChanges:
    """The changes that the controller has not answered."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id: Final = broker_id
        self._waiting: Final[dict[TopicIdPartition, IsrChange]] = {}
        self._sent: dict[TopicIdPartition, IsrChange] | None = None  # in the request that is under way
        self._not_before_ms = 0

    def submit(self, change: IsrChange) -> bool:
        """Ask for a change. Returns False if an older one of the partition waits: OPERATION_NOT_ATTEMPTED."""
        if change.partition in self._waiting:
            return False
        self._waiting[change.partition] = change
        return True

    def next_request(self, broker_epoch: int, now_ms: int) -> AlterPartitionRequest | None:
        """Return the request to send now; None if there is nothing to ask, or one is under way."""
        if self._sent is not None or not self._waiting or now_ms < self._not_before_ms:
            return None
        self._sent = dict(self._waiting)
        partitions = {partition: change.asked for partition, change in self._sent.items()}
        return AlterPartitionRequest(self._broker_id, broker_epoch, partitions)

    @property
    def next_ms(self) -> int | None:
        """The time of the next request; None if there is nothing to ask, or one is under way."""
        return self._not_before_ms if self._waiting and self._sent is None else None

    def answered(self, answer: AlterPartitionAnswer, now_ms: int) -> Settled:
        """Take an answer."""
        sent, self._sent = self._sent, None
        assert sent is not None
        if answer.error_code != NONE:
            self._not_before_ms = now_ms + RETRY_MS
            return Settled(is_not_controller=answer.error_code == ErrorCode.NOT_CONTROLLER)
        answers = []
        is_not_controller = False
        for partition, change in sent.items():
            altered = answer.partitions.get(partition)
            if altered is not None and altered.error_code in _FINAL:
                del self._waiting[partition]
                answers.append((change, altered))
            else:  # nobody knows whether it was done
                self._not_before_ms = now_ms + RETRY_MS
                is_not_controller |= altered is not None and altered.error_code == ErrorCode.NOT_CONTROLLER
        return Settled(answers, is_not_controller)

    def failed(self, now_ms: int) -> None:
        """Note that the controller did not answer, or that the connection was lost."""
        self._sent = None
        self._not_before_ms = now_ms + RETRY_MS


_FINAL: Final = frozenset(
    {
        NONE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
