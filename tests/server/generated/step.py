"""One request of a conversation: `Step`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.api_keys import APIS

_READS: Final = {
    keys.FETCH,
    keys.LIST_OFFSETS,
    keys.METADATA,
    keys.API_VERSIONS,
    keys.OFFSET_FOR_LEADER_EPOCH,
    keys.DESCRIBE_CONFIGS,
    keys.DESCRIBE_LOG_DIRS,
    keys.DESCRIBE_CLUSTER,
    keys.DESCRIBE_PRODUCERS,
    keys.DESCRIBE_TOPIC_PARTITIONS,
    keys.LIST_PARTITION_REASSIGNMENTS,
    keys.DESCRIBE_CLIENT_QUOTAS,
    keys.DESCRIBE_USER_SCRAM_CREDENTIALS,
    keys.LIST_CONFIG_RESOURCES,
    keys.DESCRIBE_QUORUM,
}


@dataclass
class Step:
    """One request: its content, and how its bytes are changed."""

    api_key: int
    version: int
    content: dict[str, Any]
    damage: tuple[str, int] | None = None  # what is done to the body, and a number for it
    is_tried: bool = False  # the case is about this one

    @property
    def only_reads(self) -> bool:
        """Whether asking twice is the same as asking once."""
        return self.api_key in _READS and self.content.get("session_epoch", -1) == -1

    def __str__(self) -> str:
        damage = "" if self.damage is None else f" {self.damage}"
        return f"{APIS[self.api_key].name} {self.version}{damage} {self.content}"
