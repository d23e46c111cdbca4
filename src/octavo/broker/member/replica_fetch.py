"""One Fetch of a replica, as its leader sees it: `ReplicaFetch`.

A follower asks for all its partitions again and again, and nearly all of them are as they were. In a session only those
are looked at that are not quiet: see `replica_session`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from octavo.broker.leader_epochs import epoch_end
from octavo.broker.wire.fetch import FetchRequest, PartitionFetch
from octavo.broker.wire.fetched import FetchedPartition

if TYPE_CHECKING:
    from octavo.broker.broker import Broker, LedLog
    from octavo.broker.fetch_sessions import Session
    from octavo.broker.member.leaders import Leaders


class ReplicaFetch:
    """What is asked by a replica, and noted of it. Its position counts once, when it asks: see `is_first`."""

    def __init__(
        self, broker: Broker, leaders: Leaders, asked: FetchRequest, session: Session | None, *, is_full: bool
    ) -> None:
        self._broker: Final = broker
        self._leaders: Final = leaders
        self._replica_id: Final = asked.replica_id
        self._replica_epoch: Final = asked.replica_epoch
        self._told: Final = None if session is None or is_full else session.told
        self.session: Final = None if session is None else session.replica
        self.is_first = True
        quota = leaders.quota
        self.quota: Final = None if quota is None or quota.limit() is None else quota
        if self.session is not None:
            # Roles, registrations and settings may be others if the metadata are.
            self.session.check(broker.roles, asked.replica_id, asked.replica_epoch)
            self.session.fetched(leaders.now_ms())

    def refusal(self, wanted: PartitionFetch, found: LedLog) -> int:
        """Return the error for a replica that must not follow; 0 if it may."""
        assert found.led is not None
        if self.session is not None:
            self.session.follow((wanted.topic, wanted.partition), found.led)
        return found.led.state.refusal(self._replica_id, self._replica_epoch, max(-1, wanted.leader_epoch))

    def has_all(self, wanted: PartitionFetch, found: LedLog) -> bool:
        """Return whether the replica has everything of a partition, and was told so. Then its position is noted."""
        log, view = found.log, found.log.view
        if self._told is None or wanted.offset != view.end_offset or wanted.high_watermark < view.high_watermark:
            return False
        key = (wanted.topic, wanted.partition)
        if self._told.get(key) != (view.high_watermark, view.start_offset):
            return False
        if wanted.last_fetched_epoch >= 0:
            end = epoch_end(log, wanted.last_fetched_epoch)
            if end.epoch != wanted.last_fetched_epoch or end.end_offset < view.end_offset:
                return False
        self.note_position(wanted, found, view.end_offset)
        assert found.led is not None
        state = found.led.state
        if self.session is not None and self._replica_id in state.isr and view is log.view:
            self.session.rest(key, state.replicas[self._replica_id], view)
        return True

    def note_position(self, wanted: PartitionFetch, found: LedLog, end_offset: int) -> None:
        """Note how far the replica has come. `end_offset`: where the log ended before anything was read for it."""
        assert found.led is not None
        if self.is_first:
            self._leaders.fetched(
                found.led,
                self._replica_id,
                self._replica_epoch,
                offset=wanted.offset,
                start_offset=wanted.log_start_offset,
                end_offset=end_offset,
            )

    def is_held_back(self, wanted: PartitionFetch, found: LedLog) -> bool:
        """Return whether a replica that is not in sync has to wait, because others need the network."""
        if self.quota is None or found.led is None or self._replica_id in found.led.state.isr:
            return False
        return self.quota.is_throttled(found.topic, wanted.partition) and self.quota.is_exceeded()

    def count(self, results: Iterable[FetchedPartition]) -> None:
        """Count what is sent of partitions that are throttled."""
        if self.quota is None:
            return
        topic_of = self._broker.image.topic
        for each in results:
            topic = None if each.records is None else topic_of(each.topic)
            if each.records is not None and topic is not None and self.quota.is_throttled(topic, each.partition):
                self.quota.count(each.records.size)
