"""A number that changes when topics of a group do: `metadata_hash`."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import pack
from typing import Final

from octavo.coordinator.groups.topics import Topics

_SIZE: Final = 8


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Return a number for topics, their partitions and racks; 0 if none of them exists.

    It is only ever compared with itself, and needs not be Kafka's.
    """
    known = [topic for name in sorted(names) if (topic := topics.by_name(name)) is not None]
    if not known:
        return 0
    whole = blake2b(digest_size=_SIZE)
    for topic in known:
        whole.update(topic.topic_id.bytes)
        whole.update(_text(topic.name))
        whole.update(pack(">i", topic.partition_count))
        for racks in topic.racks:
            whole.update(pack(">i", len(racks)))
            for rack in sorted(racks):
                whole.update(_text(rack))
    return int.from_bytes(whole.digest(), signed=True)


def _text(text: str) -> bytes:
    data = text.encode()
    return pack(">i", len(data)) + data
