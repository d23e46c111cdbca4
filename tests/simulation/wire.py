"""Requests and answers, as bytes and as structures."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from octavo.broker.answers import Parts
from octavo.broker.wire.api_keys import API_VERSIONS, APIS, OFFSET_COMMIT, TXN_OFFSET_COMMIT
from octavo.broker.wire.messages import Struct, read_response, write_request
from octavo.log.reading.read_view import FileSlice

_HEADER: Final = struct.Struct(">hhih")
Key = tuple[str, str, int]  # a group, a topic and a partition


class Stored(NamedTuple):
    """A committed offset."""

    number: int  # the order of commits
    offset: int
    at_ms: int


class Membership(NamedTuple):
    """As whom somebody commits offsets."""

    group: str
    member_id: str = ""
    generation: int = -1  # or the member's epoch
    instance: str | None = None


@dataclass(eq=False)
class Transaction:
    """What a client puts into a transaction, and what became of it."""

    transactional_id: str
    producer: tuple[int, int]
    number: int
    records: dict[str, bool] = field(default_factory=dict)  # values, and whether they were acknowledged
    topics: dict[str, str] = field(default_factory=dict)  # where the values are
    gone: set[str] = field(default_factory=set)  # values that may be gone with their topic
    offsets: dict[Key, Stored] = field(default_factory=dict)  # acknowledged ones
    may_be_committed: bool = False  # a request to commit it has come to the broker
    is_committed: bool | None = None  # None: not known


class Ask(NamedTuple):
    """A request of a client."""

    api_key: int
    version: int
    content: dict[str, Any]
    part_of: Transaction | None = None  # not on the wire: what the client does it for

    @property
    def name(self) -> str:
        """The name of the API."""
        return APIS[self.api_key].name

    def frame(self, client_id: str) -> bytes:
        """Return the request as it is on the wire, without its size."""
        name = client_id.encode()
        tags = b"\0" if self._is_flexible else b""
        head = _HEADER.pack(self.api_key, self.version, 1, len(name)) + name + tags
        return head + write_request(self.api_key, self.version, self.content)

    def read(self, parts: Parts) -> Struct:
        """Read the answer."""
        data = b"".join(_bytes_of(part) for part in parts)
        begin = 5 if self._is_flexible and self.api_key != API_VERSIONS else 4
        return read_response(self.api_key, self.version, memoryview(data)[begin:])

    @property
    def committer(self) -> Membership | None:
        """As whom offsets are committed; None if none are, or as no member."""
        content = self.content
        if self.api_key not in (OFFSET_COMMIT, TXN_OFFSET_COMMIT):
            return None
        name = "generation_id" if self.api_key == TXN_OFFSET_COMMIT else "generation_id_or_member_epoch"
        if content[name] < 0:
            return None
        return Membership(content["group_id"], content["member_id"], content[name], content["group_instance_id"])

    @property
    def _is_flexible(self) -> bool:
        return self.version >= APIS[self.api_key].flexible


def accepted(answer: Struct) -> list[tuple[str, int]]:
    """Return the topics and partitions of an answer in which offsets are committed now."""
    return [
        (topic.name, each.partition_index)
        for topic in answer.topics
        for each in topic.partitions
        if not each.error_code
    ]


def _bytes_of(part: bytes | FileSlice) -> bytes:
    return part.file.read_at(part.size, part.position) if isinstance(part, FileSlice) else part
