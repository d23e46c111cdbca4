"""The leader's side of Fetch sessions (KIP-227), as simple as can be: `ServedSessions`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Final

from octavo.cluster.messages import NONE, FetchAnswer, FetchedPartition, FetchPartition, FetchRequest, TopicIdPartition
from octavo.errors import ErrorCode


class ServedSession:
    """What a follower is known to ask for, and what it was told."""

    def __init__(self, number: int, partitions: Mapping[TopicIdPartition, FetchPartition]) -> None:
        self.number: Final = number
        self.next_epoch = 1
        self.partitions: Final = dict(partitions)
        self._told: Final[dict[TopicIdPartition, tuple[int, int]]] = {}  # high watermark and start of the log

    def answer(self, fetched: Mapping[TopicIdPartition, FetchedPartition], *, is_full: bool) -> FetchAnswer:
        """Return the answer, with what is new."""
        told = {}
        for partition, part in fetched.items():
            at = (part.high_watermark, part.log_start_offset)
            is_plain = part.error_code == NONE and part.diverging_epoch is None and not part.records
            if is_full or not is_plain or self._told.get(partition) != at:
                told[partition] = part
                self._told[partition] = at
        return FetchAnswer(NONE, self.number, told)


class ServedSessions:
    """One session for each follower."""

    def __init__(self) -> None:
        self._sessions: Final[dict[int, ServedSession]] = {}
        self._numbers: Final = count(1)

    def take(self, replica: int, request: FetchRequest) -> ServedSession | int:
        """Return the session that a request belongs to, or an error."""
        if request.session_epoch == 0:
            session = self._sessions[replica] = ServedSession(next(self._numbers), request.partitions)
            return session
        known = self._sessions.get(replica)
        if known is None or known.number != request.session_id:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if known.next_epoch != request.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        known.next_epoch += 1
        known.partitions.update(request.partitions)
        for partition in request.forgotten:
            known.partitions.pop(partition, None)
        return known
