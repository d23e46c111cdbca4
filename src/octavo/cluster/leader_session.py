"""The Fetch session of a follower with its leader (KIP-227): `LeaderSession`.

In a session, a request names only the partitions that were asked something else before, and those to be forgotten. The
leader grants a session with the answer to a full request, or not: then every request is a full one. What it takes to
make a request of a session depends on what has changed, not on how many partitions there are.
"""

from __future__ import annotations

from typing import Final

from octavo.cluster.messages import NONE, FetchAnswer, FetchPartition, FetchRequest, TopicIdPartition
from octavo.errors import ErrorCode
from octavo.records.layout import MAX_INT32

_NO_SESSION: Final = 0
_FULL: Final = 0  # the epoch of a full request


class LeaderSession:
    """What is asked of the leader, and what it knows of that.

    `want` and `drop` must not be called while a request is under way.
    """

    def __init__(self) -> None:
        self.wanted: Final[dict[TopicIdPartition, FetchPartition]] = {}  # by the last request, or for the next one
        self._id = _NO_SESSION
        self._epoch = _FULL  # of the next request
        self._known: dict[TopicIdPartition, FetchPartition] = {}  # by the leader
        self._touched: dict[TopicIdPartition, None] = {}  # since the last request

    def want(self, partition: TopicIdPartition, asked: FetchPartition) -> None:
        """Ask for a partition from the next request on.

        It comes last in a full request: a leader reads partitions in their order, up to a limit, and those that have
        records again and again must not keep others from their turn.
        """
        if self.wanted.get(partition) != asked:
            self.wanted.pop(partition, None)
            self.wanted[partition] = asked
            self._touched[partition] = None

    def drop(self, partition: TopicIdPartition) -> None:
        """Ask for a partition no more."""
        if self.wanted.pop(partition, None) is not None:
            self._touched[partition] = None

    def request(self) -> FetchRequest:
        """Return the request that asks for the wanted partitions, and no others."""
        touched, self._touched = self._touched, {}
        if self._epoch == _FULL:
            self._known = dict(self.wanted)
            return FetchRequest(self._id, _FULL, self._known)
        changed: dict[TopicIdPartition, FetchPartition] = {}
        forgotten: list[TopicIdPartition] = []
        for partition in touched:
            asked = self.wanted.get(partition)
            if asked is None:
                if self._known.pop(partition, None) is not None:
                    forgotten.append(partition)
            elif self._known.get(partition) != asked:
                self._known[partition] = changed[partition] = asked
        return FetchRequest(self._id, self._epoch, changed, tuple(forgotten))

    def answered(self, answer: FetchAnswer) -> bool:
        """Note what the answer says of the session. Returns whether it can be used."""
        if answer.error_code != NONE:
            if answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._id = _NO_SESSION
            self.lost()
            return False
        if self._epoch == _FULL:
            if not self._known.keys() <= answer.partitions.keys():  # a full answer has them all
                self.lost()
                return False
            self._id, self._epoch = answer.session_id, 1 if answer.session_id else _FULL
        elif answer.session_id != self._id:
            if answer.session_id:
                self.lost()
                return False
            self._id, self._epoch = _NO_SESSION, _FULL  # the leader has closed the session, and the answer counts
        else:
            self._epoch = self._epoch + 1 if self._epoch < MAX_INT32 else 1
        return True

    def lost(self) -> None:
        """Begin anew: nobody knows what the leader has seen of the last request. The old session is closed by that."""
        self._epoch = _FULL
