"""What a handler returns for a request: `Answer`.

    a list of parts     the body of the response: bytes, and slices of files that are sent as they are
    a `Wait`            the answer depends on something that has not happened yet, such as an append
    a `Later`           the answer takes long to make; it is made in another thread
    None                no answer, as for a produce with acks=0

A handler raises `MalformedRequest` or `ConnectionRefused` to have the connection closed without an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

from octavo.broker.request import Request
from octavo.log.log import Log
from octavo.log.reading.read_view import FileSlice

Part: TypeAlias = bytes | FileSlice
Parts: TypeAlias = list[Part]


class Change(Enum):
    """What has changed in a log, and what an answer waits for."""

    ANY = "any"
    END = "end"  # records were appended that are not committed yet; replicas wait for that
    HIGH_WATERMARK = "high watermark"  # records are committed that were appended before; consumers wait for that


class Wait:
    """An answer that has to wait.

    needs: of what kind a change must be
    retry: called when one of the logs has changed, and when the time is over (then with True); returns the parts, None
        to go on waiting, or what has to be waited for or done next
    """

    __slots__ = ("deadline", "is_over", "logs", "needs", "retry")
    keeps_request = True  # for the answer to an exception

    def __init__(self, deadline: float, logs: Sequence[Log], retry: Callable[[bool], Answer]) -> None:
        self.deadline: Final = deadline  # by `time.monotonic`
        self.logs: Final = logs
        self.needs: Change = Change.ANY
        self.retry = retry
        self.is_over = False  # answered, or the connection is gone


class Parked(Wait):
    """An answer that waits for somebody to give it, such as that to a member which joins a group.

    write: makes the parts of what `give` was called with, or goes on with it
    """

    __slots__ = ("_given", "_wake", "is_watched")

    def __init__(self, wake: Callable[[Wait], object], write: Callable[[Any], Answer]) -> None:
        """`wake`: has `retry` called soon."""
        given: list[Any] = []  # `retry` refers to this, not to the object: that would be a cycle, and garbage
        super().__init__(math.inf, (), lambda is_over: write(given[0]) if given else None)
        self._wake: Final = wake
        self._given: Final = given
        self.is_watched = False  # the answer was not there at once, so that somebody has to be woken

    @property
    def is_given(self) -> bool:
        """Whether the answer is there."""
        return bool(self._given)

    @property
    def given(self) -> Any:
        """What `give` was called with."""
        return self._given[0]

    def give(self, answer: Any) -> None:
        """Give the answer. Any thread may call this."""
        self._given.append(answer)
        if self.is_watched:
            self._wake(self)


class Work(Enum):
    """What other threads do. No kind waits for another: creating a topic can take many seconds."""

    APPEND = "append"
    COORDINATE = "coordinate"  # groups and transactions
    QUERY = "query"  # and what else changes little
    CHANGE = "change"  # of topics, their settings, or the cluster


class Later:
    """An answer that another thread makes: `work` returns its parts, a `Wait`, or None if there is no answer.

    It must not use the request's buffer. It may raise `ConnectionRefused`.
    kept: the request that can be kept, if the work has one, so that there is one copy of it
    """

    __slots__ = ("kept", "kind", "work")

    def __init__(
        self, work: Callable[[], Parts | Wait | None], kind: Work = Work.CHANGE, kept: Request | None = None
    ) -> None:
        self.work: Final = work
        self.kind: Final = kind
        self.kept: Final = kept


Answer: TypeAlias = Parts | Wait | Later | None
