"""Close objects without hiding an earlier error: one of the body of a `with`, or of an object closed before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from octavo.log.disk_errors import is_full


@contextmanager
def keeping(error: BaseException | None) -> Iterator[None]:
    """Run the body, which closes something. If there is an earlier `error`, a failure becomes a note of that error."""
    try:
        yield
    except Exception as another:
        if error is None:
            raise
        error.add_note(f"closing failed as well: {type(another).__name__}: {another}")


class ClosedByWith(ABC):
    """Base class of objects that are closed at the end of a `with`."""

    @abstractmethod
    def close(self) -> None:
        """Close the object."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the object. If the body has raised an error, a failure to close becomes a note of that error."""
        with keeping(error):
            self.close()


class Attempts:
    """Run several steps, each in a `with`, and go on when some of them fail.

    error: the first one. One that only says that the disk is full gives way to any other: it loses nothing
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        """Begin a step."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self.error is None:
            self.error = error
        elif error is not None:
            if _is_only_full(self.error) and not _is_only_full(error):
                self.error, error = error, self.error
            for note in (f"also: {type(error).__name__}: {error}", *getattr(error, "__notes__", ())):
                self.error.add_note(note)
        return True

    def insist(self, step: Callable[[], None]) -> None:
        """Run a step, and once more if an exception has interrupted it. The step must allow a second call."""
        with self:
            step()
            return
        with self:
            step()

    def finish(self) -> None:
        """Raise the first error, if there was one, with the others as its notes."""
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
        finally:
            del error  # its traceback refers to this frame: the cycle would keep files open


def _is_only_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and is_full(error)
