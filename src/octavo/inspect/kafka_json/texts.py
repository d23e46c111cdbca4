"""What a record decoder takes and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Texts(NamedTuple):
    """What Kafka's tool prints for a record, or None where it prints nothing."""

    key: str | None
    payload: str | None


RecordDecoder = Callable[[int, bytes | None, bytes | None], Texts]  # takes the offset, key and value of a record
