"""A number that changes when topics of a group do: `metadata_hash`.

It is Kafka's, so that a group that is handed over does not begin another epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import pack
from typing import Final

from octavo.coordinator.groups.consumer.xxh3 import xxh3_64
from octavo.coordinator.groups.topics import Topic, Topics
from octavo.coordinator.groups.utf_16 import utf_16_length

_VERSION: Final = b"\0"
_SIGN: Final = 1 << 63
_KNOWN: Final = 4096  # topics whose hashes are kept


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Return a number for topics, their partitions and racks; 0 if none of them exists."""
    known = [topic for name in sorted(names) if (topic := topics.by_name(name)) is not None]
    if not known:
        return 0
    value = xxh3_64(b"".join(pack("<Q", _hash_of(topic)) for topic in known))
    return (value ^ _SIGN) - _SIGN


@lru_cache(_KNOWN)
def _hash_of(topic: Topic) -> int:
    parts = [_VERSION, topic.topic_id.bytes[7::-1], topic.topic_id.bytes[:7:-1], _text(topic.name)]
    parts.append(pack("<i", topic.partition_count))
    for number in range(topic.partition_count):
        parts.append(pack("<i", number))
        for rack in sorted(topic.racks[number] if number < len(topic.racks) else ()):
            parts += pack("<i", utf_16_length(rack)), _text(rack)
    return xxh3_64(b"".join(parts))


def _text(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass") + pack("<i", utf_16_length(text))
