"""What a leader knows of a follower: how far it is, and when it had everything (`RemoteReplica`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from octavo.cluster.messages import NO_OFFSET

_NEVER_MS: Final = -(1 << 62)


@dataclass(slots=True)
class LastFetch:
    """When a follower has fetched last in its session: all partitions at once of which it has everything."""

    fetch_ms: int = _NEVER_MS


@dataclass(slots=True)
class RemoteReplica:
    """What a leader knows of a follower."""

    log_end_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    caught_up_ms: int = _NEVER_MS
    fetch_ms: int = _NEVER_MS
    leader_end_offset: int = NO_OFFSET  # when it fetched last
    broker_epoch: int | None = None  # of its last Fetch; None if there was none, -1 if it gave none
    last_fetch: LastFetch | None = None  # it has everything since `fetch_ms`, and fetches without being noted here

    def is_caught_up(self, end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Return whether it has everything, or had everything a short time ago."""
        return self.log_end_offset == end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms

    @property
    def last_caught_up_ms(self) -> int:
        """When it had everything."""
        return self.caught_up_ms if self.last_fetch is None else max(self.caught_up_ms, self.last_fetch.fetch_ms)

    def settle(self) -> None:
        """Take over when it has fetched last: from now on, every Fetch is noted here."""
        if self.last_fetch is not None:
            self.caught_up_ms = max(self.caught_up_ms, self.last_fetch.fetch_ms)
            self.fetch_ms = max(self.fetch_ms, self.last_fetch.fetch_ms)
            self.last_fetch = None

    def begin_epoch(self, now_ms: int, end_offset: int, *, is_in_sync: bool) -> None:
        """Begin a leader epoch. Times of an older one do not count; of a leader that stays, positions stay.

        end_offset: where this log ends
        """
        time_ms = now_ms if is_in_sync else _NEVER_MS
        self.last_fetch = None
        self.caught_up_ms = time_ms
        if self.broker_epoch is not None:
            self.fetch_ms = time_ms
            self.leader_end_offset = end_offset
