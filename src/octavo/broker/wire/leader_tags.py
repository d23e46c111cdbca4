"""Write the tagged fields that tell a client who leads (KIP-951), in the answers to Produce and Fetch."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from octavo.broker.wire.primitives import encode_count, encode_text, uvarint

_LEADER: Final = struct.Struct(">ii")
_INT: Final = struct.Struct(">i")


class CurrentLeader(NamedTuple):
    """The leader of a partition and its epoch; -1 for what is not known."""

    leader_id: int = -1
    leader_epoch: int = -1


class NodeEndpoint(NamedTuple):
    """Where a client reaches a broker."""

    node_id: int
    host: str
    port: int
    rack: str | None


NO_LEADER: Final = CurrentLeader()


def leader_tag(tag: int, leader: CurrentLeader) -> bytes:
    """Return one tagged field with a leader."""
    return b"%c%c%b\0" % (tag, _LEADER.size + 1, _LEADER.pack(*leader))


def endpoint_tags(endpoints: Iterable[NodeEndpoint]) -> bytes:
    """Return the tagged fields at the end of an answer, with the endpoints of leaders. There may be none."""
    several = list(endpoints)
    if not several:
        return b"\0"
    parts = [encode_count(len(several), True)]
    for node_id, host, port, rack in several:
        parts += (_INT.pack(node_id), encode_text(host, True), _INT.pack(port), encode_text(rack, True), b"\0")
    content = b"".join(parts)
    return b"\1\0" + uvarint(len(content)) + content
