"""How a `with` ends whose body has raised: the error of the body is the one that is raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def keeping(error: BaseException | None) -> Iterator[None]:
    """Close something inside a `with`: where `error` is there already, what closing raises becomes a note of it."""
    try:
        yield
    except Exception as another:
        if error is None:
            raise
        error.add_note(f"closing failed as well: {type(another).__name__}: {another}")
