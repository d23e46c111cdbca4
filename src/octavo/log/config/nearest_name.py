"""Suggest an existing name in place of one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def nearest_name(given: str, names: Iterable[str], *, least: float = 0.6) -> str | None:
    """Return the one of `names` that resembles `given` most, ignoring case; None if none is similar.

    least: how similar they have to be, from 0 to 1
    """
    from difflib import get_close_matches  # only errors need it

    by_lower = {name.lower(): name for name in names}
    near = get_close_matches(given.lower(), by_lower, 1, least)
    return by_lower[near[0]] if near else None
