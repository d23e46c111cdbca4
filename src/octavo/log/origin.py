"""The source of an append: `Origin`."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Origin(Enum):
    """The source of an append on the leader."""

    CLIENT = 0
    COORDINATOR = 1  # the coordinator of groups or transactions, on the same broker
    RAFT_LEADER = 2  # the leader of the metadata log, which has already assigned offsets and epoch


ORIGIN_WORDS: Final = {origin.name.lower(): origin for origin in Origin}
