"""Follow the leaders of partitions: `Following` asks what `Fetcher` says, and changes the logs as it says.

Logs are changed in the reactor's thread where that need not wait, and else in another one. While another thread changes
a log, its partition is busy: it is neither fetched, nor given another role.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from octavo.broker.member.log_effects import change, kept, last_epoch
from octavo.broker.member.quota import ReplicationQuota
from octavo.broker.member.silence import Silence
from octavo.broker.member.surroundings import Surroundings
from octavo.broker.wire.api_keys import FETCH, LIST_OFFSETS
from octavo.broker.wire.member_messages import list_offsets_version, read_list_offsets, write_list_offsets
from octavo.broker.wire.replica_fetch import FetchLimits, fetch_version, read_replica_fetch, write_replica_fetch
from octavo.cluster.follower_effects import Append, Effect
from octavo.cluster.following import Fetcher
from octavo.cluster.leading import ClusterView
from octavo.cluster.messages import (
    Endpoint,
    FetchAnswer,
    FetchPartition,
    FetchRequest,
    ListedOffset,
    ListOffsetsRequest,
    TopicIdPartition,
)
from octavo.log.append.readiness import TakesLong, is_quick, prepare, without_pause
from octavo.log.followed.followed_metadata import FollowedMetadata
from octavo.log.log import Log
from octavo.log.storage import is_broken

_HELD_BACK_MS: Final = 100  # until it is looked again whether throttled partitions may be fetched

_WAIT_WHILE_BUSY_MS: Final = 20


class Cluster:
    """What followers know of the cluster."""

    def __init__(self, metadata: FollowedMetadata, view: ClusterView) -> None:
        self._metadata: Final = metadata
        self._view: Final = view

    @property
    def broker_epoch(self) -> int:
        """The epoch of this broker's registration."""
        return self._view.broker_epoch

    @property
    def metadata_version(self) -> int:
        """The level of metadata.version, which determines the versions of requests."""
        return self._metadata.image.metadata_version

    def name_of(self, topic_id: UUID) -> str:
        """Return the name of a topic; "" if it is gone."""
        topic = self._metadata.image.topic(topic_id)
        return "" if topic is None else topic.name

    def id_of(self, name: str) -> UUID | None:
        """Return the id of a topic; None if it is gone."""
        topic = self._metadata.topics.get(name)
        return None if topic is None else topic.id


class Leader:
    """Another broker that leads partitions which are followed here."""

    def __init__(self, node_id: int, endpoint: Endpoint, back_off_ms: int, say: Callable[[str], object]) -> None:
        self.node_id: Final = node_id
        self.endpoint = endpoint
        self.silence: Final = Silence(say, f"broker {node_id}, which leads partitions that are followed here,")
        self.fetcher: Final = Fetcher(back_off_ms=back_off_ms)
        self.channel: Final = f"fetch-{node_id}"


class Following:
    """All partitions that are followed."""

    def __init__(
        self,
        here: Surroundings,
        cluster: Cluster,
        *,
        quota: ReplicationQuota,
        limits: FetchLimits,
        back_off_ms: int,
        timeout_ms: int,
        done: Callable[[], None],
        failed: Callable[[OSError], None],
    ) -> None:
        """Begin without partitions.

        quota: holds partitions back that are not in sync
        done: is called when another thread has changed a log
        failed: is told that the disk has failed
        """
        self._here: Final = here
        self._cluster: Final = cluster
        self._quota: Final = quota
        self._limits: Final = limits
        self._back_off_ms: Final = back_off_ms
        self._timeout_ms: Final = timeout_ms
        self._done: Final = done
        self._failed: Final = failed
        self._client_id: Final = f"broker-{here.node_id}-fetcher-0"
        self._leaders: Final[dict[int, Leader]] = {}  # by node id
        self._logs: Final[dict[TopicIdPartition, tuple[Log, Leader]]] = {}
        self._busy: Final[set[TopicIdPartition]] = set()  # another thread changes their logs
        self._kept_size = 0  # bytes of the records that other threads have to append
        self._refused: Final[set[TopicIdPartition]] = set()  # their logs could not be changed when it was last tried

    # --------------------------------------------------------------------------------------------------- what to follow

    def follow(
        self, partition: TopicIdPartition, log: Log, leader_id: int, leader_epoch: int, endpoint: Endpoint
    ) -> None:
        """Follow a leader in a new epoch. `forget` the partition first, and wait while it `is_busy`."""
        leader = self._leaders.get(leader_id)
        if leader is None:
            leader = self._leaders[leader_id] = Leader(leader_id, endpoint, self._back_off_ms, self._here.say)
        elif leader.endpoint != endpoint:
            self._here.peers.disconnect(leader.endpoint, leader.channel, "the leader has moved")
            leader.endpoint = endpoint
        self._logs[partition] = log, leader
        at = FetchPartition(leader_epoch, log.end_offset, last_epoch(log), log.start_offset)
        self._carry_out(leader, leader.fetcher.follow(partition, at, log.high_watermark))
        self._here.poke()

    def forget(self, partition: TopicIdPartition) -> None:
        """Follow a partition no more. If it `is_busy`, its log is still being changed."""
        known = self._logs.pop(partition, None)
        self._refused.discard(partition)
        if known is not None:
            known[1].fetcher.forget(partition)

    def is_busy(self, partition: TopicIdPartition) -> bool:
        """Return whether another thread changes the log of a partition."""
        return partition in self._busy

    @property
    def partitions(self) -> Collection[TopicIdPartition]:
        """The partitions that are followed."""
        return self._logs.keys()

    def lag(self, partition: TopicIdPartition) -> int | None:
        """Return how far a partition is behind the leader's high watermark; None if that is not known."""
        known = self._logs.get(partition)
        return None if known is None else known[1].fetcher.lag(partition)

    # ---------------------------------------------------------------------------------------------------------- asking

    def poll(self, now_ms: int) -> float:
        """Ask the leaders. Returns when there is something to do again."""
        held_back = self._held_back()
        next_ms = now_ms + _HELD_BACK_MS if held_back else math.inf
        for leader in list(self._leaders.values()):
            fetcher = leader.fetcher
            if not fetcher.partitions:
                del self._leaders[leader.node_id]
                self._here.peers.disconnect(leader.endpoint, leader.channel, "it leads nothing that is followed")
                continue
            if fetcher.next_ms is not None and fetcher.next_ms <= now_ms and not self._has_enough:
                request = fetcher.next_request(now_ms, held_back=held_back)
                if request is not None:
                    self._ask(leader, request)
            if fetcher.next_ms is not None and fetcher.next_ms > now_ms:
                next_ms = min(next_ms, fetcher.next_ms)
            next_ms = min(next_ms, leader.silence.poll(now_ms))
        return next_ms

    @property
    def _has_enough(self) -> bool:
        """Whether as many bytes wait for a slow disk as a Fetch brings: then nothing more is asked for."""
        return self._kept_size >= self._limits.max_bytes

    def _held_back(self) -> Collection[TopicIdPartition]:
        """Return the partitions that are throttled, if more of them is fetched than is allowed."""
        if not self._quota.is_exceeded():
            return ()
        return {partition for partition in self._logs if self._quota.throttles(partition)}

    def _ask(self, leader: Leader, request: FetchRequest | ListOffsetsRequest) -> None:
        leader.silence.asked(self._here.now_ms())
        if isinstance(request, FetchRequest):
            self._fetch(leader, request)
            return
        here, cluster = self._here, self._cluster
        version = list_offsets_version(cluster.metadata_version)
        here.ask(
            leader.endpoint,
            leader.channel,
            (LIST_OFFSETS, version),
            write_list_offsets(request, version, broker_id=here.node_id, name_of=cluster.name_of),
            lambda data: read_list_offsets(data, version, id_of=cluster.id_of),
            lambda answer: self._listed(leader, answer),
            lambda _: leader.fetcher.failed(here.now_ms()),
            timeout_ms=self._timeout_ms,
            client_id=self._client_id,
        )

    def _fetch(self, leader: Leader, request: FetchRequest) -> None:
        here, cluster = self._here, self._cluster
        version = fetch_version(cluster.metadata_version)
        broker_epoch, limits = cluster.broker_epoch, self._limits_for(leader)
        body = write_replica_fetch(request, version, broker_id=here.node_id, broker_epoch=broker_epoch, limits=limits)
        here.peers.ask(
            leader.endpoint,
            leader.channel,
            FETCH,
            version,
            (body,),
            timeout_ms=self._timeout_ms,
            client_id=self._client_id,
            answered=lambda data: self._fetched(leader, read_replica_fetch(data)),
            failed=lambda _: self._not_fetched(leader),
        )

    def _limits_for(self, leader: Leader) -> FetchLimits:
        """Return the limits of a Fetch. The leader waits for little time while a log is being changed.

        There is one Fetch at a time, and the next one tells the leader what that log has then.
        """
        followed = leader.fetcher.partitions
        if not any(partition in followed for partition in self._busy):
            return self._limits
        return self._limits._replace(max_wait_ms=min(_WAIT_WHILE_BUSY_MS, self._limits.max_wait_ms))

    def _fetched(self, leader: Leader, answer: FetchAnswer) -> None:
        if self._quota.limit() is not None:
            throttled = (part for each, part in answer.partitions.items() if self._quota.throttles(each))
            self._quota.count(sum(len(part.records) for part in throttled))
        fetcher, now_ms = leader.fetcher, self._here.now_ms()
        leader.silence.heard(now_ms)
        self._carry_out(leader, fetcher.fetched(answer, now_ms))
        # The next Fetch goes out at once. Everything else that a member looks after is not looked at for that.
        has_to_wait = self._has_enough or self._quota.is_exceeded()
        request = None if has_to_wait else fetcher.next_request(now_ms)
        if request is None:
            self._here.poke()
        else:
            self._ask(leader, request)

    def _not_fetched(self, leader: Leader) -> None:
        self._here.poke()
        leader.fetcher.failed(self._here.now_ms())

    def _listed(self, leader: Leader, answer: dict[TopicIdPartition, ListedOffset]) -> None:
        now_ms = self._here.now_ms()
        leader.silence.heard(now_ms)
        self._carry_out(leader, leader.fetcher.listed(answer, now_ms))

    # --------------------------------------------------------------------------------------------------- changing logs

    def _carry_out(self, leader: Leader, effects: Iterable[Effect]) -> None:
        later: list[tuple[Log, Effect]] = []
        for effect in effects:
            log, _ = self._logs[effect.partition]
            if not self._is_done_at_once(leader, log, effect):
                later.append((log, kept(effect)))
        if later:
            self._busy.update(effect.partition for _, effect in later)
            self._kept_size += sum(_size(effect) for _, effect in later)
            self._here.elsewhere(lambda: self._do_all(leader, later))

    def _is_done_at_once(self, leader: Leader, log: Log, effect: Effect) -> bool:
        """Change a log if that need not wait. Returns whether it was done, or has failed."""
        if not isinstance(effect, Append) or effect.restart_at is not None or not is_quick(len(effect.records)):
            return False
        error: Exception | None = None
        try:
            with without_pause():
                change(log, effect)
        except TakesLong:
            return False
        except Exception as raised:  # a mistake of ours, too: the partition would be busy for ever
            error = raised
        self._finish(leader, log, effect, error)
        return True

    def _do_all(self, leader: Leader, changes: Sequence[tuple[Log, Effect]]) -> None:
        """Change logs, in a thread that may wait."""
        prepare()
        for log, effect in changes:
            error: Exception | None = None
            try:
                change(log, effect)
            except Exception as raised:  # a mistake of ours, too: the partition would be busy for ever
                error = raised
            self._here.call(partial(self._done_elsewhere, leader, log, effect, error))

    def _done_elsewhere(self, leader: Leader, log: Log, effect: Effect, error: Exception | None) -> None:
        self._busy.discard(effect.partition)
        self._kept_size -= _size(effect)
        self._here.poke()
        self._finish(leader, log, effect, error)
        self._done()

    def _finish(self, leader: Leader, log: Log, effect: Effect, error: Exception | None) -> None:
        partition, fetcher = effect.partition, leader.fetcher
        if error is None:
            if partition in self._refused:
                self._refused.discard(partition)
                self._here.say(f"{log.partition} can be replicated again")
            fetcher.moved(
                partition,
                end_offset=log.end_offset,
                last_fetched_epoch=last_epoch(log),
                log_start_offset=log.start_offset,
            )
        elif isinstance(
            log.failure, OSError
        ):  # also of a flush in the background: it takes no more until it is reopened
            fetcher.broken(partition)
            self._failed(log.failure)
        elif isinstance(error, OSError) and is_broken(error):
            fetcher.broken(partition)
            self._failed(error)
        else:
            if partition in self._logs and partition not in self._refused:  # said once, although it is tried again
                self._refused.add(partition)
                self._here.say(f"{log.partition} cannot be replicated now: {error}")
            position = log.end_offset, last_epoch(log), log.start_offset  # the append may be done, and the rest not
            fetcher.refused(partition, self._here.now_ms(), position)


def _size(effect: Effect) -> int:
    return len(effect.records) if isinstance(effect, Append) else 0
