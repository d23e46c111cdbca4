"""Refuse requests that name the same thing again and again: `refuse_repetition`.

A group, a transactional id or a committed offset may be long to tell of. A request that names it thousands of times in
a few kilobytes would have an answer of gigabytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

from octavo.errors import MalformedRequest

_MOST: Final = 10  # no client names anything twice


def refuse_repetition(names: Sequence[Hashable]) -> None:
    """Raise `MalformedRequest` if something is named too often."""
    if len(names) > _MOST:
        [(name, times)] = Counter(names).most_common(1)
        if times > _MOST:
            raise MalformedRequest(f"{name!r:.80} is named {times} times, and {_MOST} are served")
