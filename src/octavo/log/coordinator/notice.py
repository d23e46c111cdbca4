"""How a thread tells a consumer that something is new: `Notice`."""

from __future__ import annotations


class Notice:
    """Says that the next poll has to look what is new. Any thread may set it."""

    __slots__ = ("is_there",)

    def __init__(self) -> None:
        self.is_there = False
