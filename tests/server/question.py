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
