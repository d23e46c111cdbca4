"""Make the answers of two brokers comparable: ids get names, and what belongs to one broker is left out."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Final

from octavo.errors import OctavoError
from octavo.records import read_batches
from octavo.records.layout import BatchHeader

_OWN: Final = {"throttle_time_ms", "host", "port", "session_id", "node_endpoints", "configs"}
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|^[\w-]{22}$")
_NUMBER: Final = re.compile(r"\b\d+\b")
_NOW_FROM: Final = 1_750_000_000_000
_TIMES: Final = ("time_ms", "timestamp", "time")
# Kafka begins an epoch of each partition when it is restarted.
_EPOCHS: Final = ("leader_epoch", "coordinator_epoch")
_ID_SIZE: Final = 16
_NO_ID: Final = bytes(_ID_SIZE)


class Plain:
    """Makes what one broker answers in one run comparable. The same id always gets the same name."""

    def __init__(self, prefix: str) -> None:
        self.is_restarted = False
        self.topic_ids: dict[str, bytes] = {}
        self._prefix: Final = prefix
        self._members: Final[dict[str, str]] = {}
        self._producers: Final[dict[int, str]] = {}

    def __call__(self, value: Any, name: str = "") -> Any:
        """Return a value without what may differ."""
        if isinstance(value, SimpleNamespace):
            value = vars(value)
        if isinstance(value, dict):
            return {each: self(inside, each) for each, inside in value.items() if each not in _OWN}
        if isinstance(value, (list, tuple)):
            items = [self(each, name) for each in value if self._is_ours(each)]
            return sorted(items, key=repr)  # most are sets in Kafka
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return self._number(value, name)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._bytes(bytes(value), name)
        return self._text(value) if isinstance(value, str) else value

    def _is_ours(self, item: Any) -> bool:
        """Return whether something in a list is not of another run: of groups and transactions there are many."""
        named = getattr(item, "group_id", getattr(item, "transactional_id", None))
        listed = hasattr(item, "protocol_type") or hasattr(item, "transaction_state")
        is_answer = hasattr(item, "error_code")
        return not (listed and isinstance(named, str)) or is_answer or named.startswith(self._prefix)

    def _number(self, value: int, name: str) -> Any:
        if name == "producer_id" and value >= 0:
            return self._producers.setdefault(value, f"producer {len(self._producers)}")
        if name in _EPOCHS and self.is_restarted:
            return "an epoch"
        if name.endswith(_TIMES) and value > _NOW_FROM:
            return "now"
        return value

    def _text(self, value: str) -> str:
        value = _UUID.sub(self._named, value.replace(self._prefix, ""))
        return _NUMBER.sub("(number)", value) if "roducer" in value else value

    def _named(self, found: re.Match[str]) -> str:
        key = found.string[: found.start()] if len(found.string) < 100 else ""
        several = {each: name for each, name in self._members.items() if name.startswith(f"{key}#")}
        return self._members.setdefault(found[0], f"{key}#{len(several)}").removeprefix(key)

    def _bytes(self, value: bytes, name: str) -> Any:
        if name == "records":
            return self._records(value)
        if name == "topic_id":
            if value == _NO_ID:
                return "no topic"
            found = next((each for each, topic_id in self.topic_ids.items() if topic_id == value), None)
            return f"the id of {(found or 'nobody').removeprefix(self._prefix)}"
        return value

    def _records(self, value: bytes) -> Any:
        try:
            return [
                {
                    "first": header.base_offset,
                    "attributes": header.attributes,
                    "epoch": header.producer_epoch,
                    "sequence": header.base_sequence,
                    "producer_id": self._number(header.producer_id, "producer_id"),
                    "values": [(each.key, each.value) for each in batch if not batch.is_control],
                }
                for batch in read_batches(value)
                if isinstance(header := batch.header, BatchHeader)
            ]
        except OctavoError:
            return value
