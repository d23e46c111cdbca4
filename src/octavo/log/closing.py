"""Close something at the end of a `with` without hiding an error of its body."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keeping(error: BaseException | None) -> Iterator[None]:
    """Run the closing. If there is already an `error` of the body, an exception of the closing becomes its note."""
    try:
        yield
    except Exception as another:
        if error is None:
            raise
        error.add_note(f"closing failed as well: {type(another).__name__}: {another}")
