"""Settings of the coordinator of groups: `GroupConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MIGRATION_POLICIES: Final = ("bidirectional", "upgrade", "downgrade", "disabled")
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Settings by the names that Kafka has for them, with underscores, and with its defaults."""

    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 0x7FFFFFFF
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_max_size: int = 0x7FFFFFFF
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_assignors: tuple[str, ...] = ("uniform", "range")

    @property
    def offsets_retention_ms(self) -> int:
        """For how long committed offsets are kept that nobody uses."""
        return self.offsets_retention_minutes * _MINUTE_MS
