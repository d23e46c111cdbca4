"""The Fetch session of a replica, as its leader keeps it: which partitions have to be looked at when it asks again.

A partition is quiet while the replica is in sync, has everything of it, and was told so. It becomes active again when
its log or its role changes (`Led.stir`), or when the replica asks something else of it. So a Fetch costs what has
changed since the last one, and not what is followed. That the replica goes on fetching quiet partitions is noted in one
place for all of them (`LastFetch`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from octavo.broker.wire.fetch import NO_HIGH_WATERMARK, PartitionFetch, TopicKey
from octavo.cluster.remote_replica import LastFetch, RemoteReplica
from octavo.log.view import View

if TYPE_CHECKING:
    from octavo.broker.answers import Wait
    from octavo.broker.member.leaders import Led

_LOOK_AGAIN_MS: Final = 1000
Key = tuple[TopicKey, int]


class ReplicaSession:
    """The partitions of a session, and the answer that waits for news of them."""

    __slots__ = ("_led", "_look_ms", "_quiet", "_valid_for", "active", "last_fetch", "wait")

    def __init__(self, partitions: Mapping[Key, PartitionFetch]) -> None:
        self.active: Final = dict(partitions)  # those that returned records are last
        self.wait: Wait | None = None
        self.last_fetch: Final = LastFetch()
        self._quiet: Final[dict[Key, tuple[PartitionFetch, RemoteReplica, View]]] = {}
        self._look_ms = 0
        self._led: Final[dict[Key, Led]] = {}  # where changes are heard of
        self._valid_for: tuple[object, ...] = ()

    @property
    def has_quiet(self) -> bool:
        """Whether there are partitions that need not be looked at."""
        return bool(self._quiet)

    def check(self, roles: object, replica_id: int, replica_epoch: int) -> None:
        """Look at all partitions again if roles, or the replica itself, are others than when it asked last."""
        valid_for = (roles, replica_id, replica_epoch)
        if self._valid_for != valid_for:
            self._valid_for = valid_for
            for key in tuple(self._quiet):
                self.stir(key)

    def fetched(self, now_ms: int) -> None:
        """Note that the replica asks. From time to time see that no change of a quiet partition was missed."""
        self.last_fetch.fetch_ms = now_ms
        if now_ms >= self._look_ms:
            self._look_ms = now_ms + _LOOK_AGAIN_MS
            for key in [key for key, (_, _, view) in self._quiet.items() if self._led[key].log.view is not view]:
                self.stir(key)

    def update(self, key: Key, wanted: PartitionFetch) -> None:
        """Note that the replica asks something else of a partition."""
        self.stir(key)
        self.active[key] = wanted

    def forget(self, key: Key) -> None:
        """Note that the replica follows a partition no more, in this session."""
        self.stir(key)
        self.active.pop(key, None)
        led = self._led.pop(key, None)
        if led is not None:
            led.sessions.pop(self, None)

    def close(self) -> None:
        """Hear of no partition any more."""
        for key in (*self.active, *self._quiet):
            self.forget(key)

    def follow(self, key: Key, led: Led) -> None:
        """Hear of the changes of a partition."""
        before = self._led.get(key)
        if before is not led:
            if before is not None:
                before.sessions.pop(self, None)
            self._led[key] = led
            led.sessions[self] = key

    def rest(self, key: Key, replica: RemoteReplica, view: View) -> None:
        """Look at a partition no more until it changes: there is nothing to tell. `view`: its log as it was told."""
        wanted = self.active[key]
        if wanted.high_watermark == NO_HIGH_WATERMARK:  # otherwise the answer must not wait for records alone
            del self.active[key]
            self._quiet[key] = wanted, replica, view
            replica.last_fetch = self.last_fetch

    def stir(self, key: Key) -> None:
        """Look at a partition when the replica asks again: there may be news."""
        quiet = self._quiet.pop(key, None)
        if quiet is not None:
            wanted, replica, _ = quiet
            self.active[key] = wanted
            if replica.last_fetch is self.last_fetch:
                replica.settle()

    def move_last(self, key: Key) -> None:
        """Have a partition that returned records be read after all others."""
        wanted = self.active.pop(key, None)
        if wanted is not None:
            self.active[key] = wanted
