"""What a commit is told about topics (`ExpectedTopic`), and what it returns (`StagedCommit`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from octavo.log.names import TopicPartition


class ExpectedTopic(NamedTuple):
    """A topic as the tasks assumed it to be. If it is missing, it is created like this."""

    partitions: int
    config: Mapping[str, str] = MappingProxyType({})


class StagedCommit(NamedTuple):
    """The outcome of a commit."""

    offsets: Mapping[TopicPartition, range]  # what was appended; empty if other threads appended to the logs meanwhile
    is_repeated: bool = False  # it was committed before, and nothing was appended now
