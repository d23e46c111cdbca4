"""Records of confluent-kafka: `consumed`."""

from __future__ import annotations

from typing import cast

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from tests.clients.driver import Record


def consumed(message: Message) -> Record:
    """Return a record that confluent-kafka consumed."""
    kind, timestamp_ms = message.timestamp()
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])  # what it may be given is wider
    return Record(
        key=message.key(),
        value=message.value(),
        headers=tuple(headers),
        timestamp_ms=timestamp_ms,
        partition=message.partition() or 0,
        offset=-1 if (offset := message.offset()) is None else offset,
        timestamp_type="CreateTime" if kind == TIMESTAMP_CREATE_TIME else "LogAppendTime",
    )
