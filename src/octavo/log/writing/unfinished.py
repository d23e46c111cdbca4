"""Note which change of a log is under way, so that it can be settled after an exception.

A change that fails is undone, and the log is as it was. If it cannot be undone, because the disk fails even when no
space is needed, the log keeps the error as its `failure` and refuses further changes. Its data are checked when it is
opened again.

The same holds for an exception from outside, such as `KeyboardInterrupt`. It may come between any two instructions,
also in an `except` or `finally`. So a change sets `ChangeNote.unfinished` before it touches anything, and resets it
when it is over. The next change that finds it set settles it first: an append or a roll is undone, any other change
leaves the log with a `failure`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from octavo.errors import Closed, LogError
from octavo.log.names import TopicPartition
from octavo.log.ownership.owner import Owner

# Values of `unfinished`. From 0 on it is the offset at which the log ended before an append or a roll.
SETTLED: Final = -2
NOT_UNDOABLE: Final = -1


class ChangeNote:
    """A note of which change of a log is under way, and whether the log can be changed. The log's lock protects it."""

    def __init__(self, partition: TopicPartition, owner: Owner) -> None:
        self.failure: BaseException | None = None  # the error of an unfinished change; no other change may follow
        self._is_unseen = False  # nobody has been told of the failure yet
        self.unfinished = SETTLED  # set during a change, and left set by an exception from outside
        self.is_open = True  # false as soon as closing begins
        self._partition = partition
        self._owner = owner

    def check_open(self) -> None:
        """Raise `WrongProcess`, `LockLost`, `Closed` or `LogError` if the log must not be changed."""
        if not self._owner.mark[0]:
            self._owner.check()
        if not self.is_open:
            raise Closed(f"{self._partition} is closed")
        self.check_failure()

    def check_failure(self) -> None:
        """Raise `LogError` if a change, or a flush in the background, has failed."""
        if self.failure is not None:
            self._is_unseen = False
            raise LogError(f"{self._partition} takes no more since {self.failure}: close it and open it again")

    def fail_unseen(self, error: Exception) -> None:
        """Let the log refuse changes because something has failed in the background, where nobody sees the error."""
        self._is_unseen = True
        if self.is_open:
            self.failure = error

    def raise_unseen(self) -> None:
        """Raise the error of something that has failed in the background, if no change was refused because of it."""
        if self.failure is not None and self._is_unseen:
            self._is_unseen = False
            raise self.failure

    @contextmanager
    def or_fail(self) -> Iterator[None]:
        """Run steps that cannot be undone. If one fails, the log refuses changes until it is opened again."""
        try:
            yield
        except OSError as error:
            self.failure = error
            raise

    def settle(self, undo: Callable[[int], None]) -> None:
        """Undo the change that an exception has interrupted, or else set the `failure`.

        `undo` gets the offset at which the log ended before the change. It may be interrupted as well. Then the change
        is neither done nor undone, and cannot be settled here. Raises `OSError`, and `LockLost` before anything is
        touched.
        """
        self._owner.check_lock()
        end_offset, self.unfinished = self.unfinished, NOT_UNDOABLE
        if end_offset == SETTLED:
            self.unfinished = SETTLED
        elif self.failure is None and end_offset != NOT_UNDOABLE:
            undo(end_offset)
            self.unfinished = SETTLED
        elif self.failure is None:
            self.failure = LogError("a change of it was interrupted and left half done")
