"""A request that is asked of two brokers."""

from __future__ import annotations

from typing import Any, NamedTuple

from octavo.broker.wire.api_keys import APIS


class Question(NamedTuple):
    """A request. `str` tells where to find it when it fails."""

    api_key: int
    version: int
    content: dict[str, Any]

    def __str__(self) -> str:
        return f"{APIS[self.api_key].name} {self.version} {str(self.content)[:200]}"


def versions(api_key: int) -> list[int]:
    """The lowest, a middle and the highest version of an API."""
    first, last = APIS[api_key].first, APIS[api_key].last
    return sorted({first, (first + last) // 2, last})


def every_version(api_key: int) -> range:
    """All versions of an API, for what some of them have and others do not."""
    return range(APIS[api_key].first, APIS[api_key].last + 1)
