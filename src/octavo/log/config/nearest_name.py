"""Suggest an existing name in place of one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def nearest_name(given: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that resembles `given` most, ignoring case; None if none is similar."""
    from difflib import get_close_matches  # only errors need it

    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(given.lower(), by_lower, 1)
    return by_lower[near[0]] if near else None
