"""What a record decoder returns and raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Texts(NamedTuple):
    """What Kafka's tool prints for a record, or None where it prints nothing."""

    key: str | None
    payload: str | None


RecordDecoder = Callable[[int, bytes | None, bytes | None], Texts]  # takes the offset, key and value of a record


class JavaException(Exception):
    """An exception that ends Kafka's tool, with the name of its class and its message, if it has one."""

    def __init__(self, java_class: str, message: str | None) -> None:
        super().__init__(java_class, message)
        self.java_class = java_class
        self.message = message

    def __str__(self) -> str:
        return self.java_class if self.message is None else f"{self.java_class}: {self.message}"
