"""Hold replication back that catches up, so that clients are served: `ReplicationQuota`.

Which replicas are throttled is a setting of their topic, and how many bytes they may have in a second one of the
broker; `kafka-reassign-partitions --throttle` sets both. Replicas in sync are never held back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

from octavo.broker.cluster_image import ClusterImage, TopicImage
from octavo.broker.config_resources import ResourceType
from octavo.cluster.messages import TopicIdPartition

if TYPE_CHECKING:
    from octavo.broker.broker import Broker

_WINDOWS: Final = 11  # replication.quota.window.num
_WINDOW_MS: Final = 1000  # replication.quota.window.size.seconds
_ALL: Final = "*"
_OF_ALL_BROKERS: Final = ""


class ReplicationQuota:
    """How much a broker sends as a leader, or fetches as a follower, of partitions that are throttled."""

    def __init__(self, broker: Broker, side: Literal["leader", "follower"], clock_ms: Callable[[], int]) -> None:
        self._broker: Final = broker
        self._clock_ms: Final = clock_ms
        self._rate_name: Final = f"{side}.replication.throttled.rate"
        self._replicas_name: Final = f"{side}.replication.throttled.replicas"
        self._image: ClusterImage | None = None  # that `_limit` is of
        self._limit: int | None = None  # bytes in a second
        self._counted: Final[deque[tuple[int, int]]] = deque()  # when windows began, and the bytes sent in them
        self._total = 0  # bytes in all windows

    def limit(self) -> int | None:
        """Return the bytes in a second that are allowed; None if there is no limit."""
        image = self._broker.image
        if image is not self._image:
            of_all = image.configs.get((ResourceType.BROKER, _OF_ALL_BROKERS), {})
            own = image.configs.get((ResourceType.BROKER, str(self._broker.node_id)), {})
            value = own.get(self._rate_name) or of_all.get(self._rate_name) or ""
            self._image, self._limit = image, int(value) if value.isdecimal() else None
        return self._limit

    def is_throttled(self, topic: TopicImage, partition: int) -> bool:
        """Return whether the replica of this broker is to be throttled."""
        value = topic.config.get(self._replicas_name, "").strip()
        if not value:
            return False
        return value == _ALL or f"{partition}:{self._broker.node_id}" in (each.strip() for each in value.split(","))

    def throttles(self, partition: TopicIdPartition) -> bool:
        """Return whether the replica of this broker is to be throttled, of a partition by the id of its topic."""
        topic = self._broker.image.by_id.get(partition.topic_id.bytes)
        return topic is not None and self.is_throttled(topic, partition.partition)

    def count(self, size: int) -> None:
        """Note that so many bytes of throttled partitions were sent."""
        if not size:
            return
        now_ms, counted = self._clock_ms(), self._counted
        self._forget_old(now_ms)
        if counted and now_ms - counted[-1][0] < _WINDOW_MS:
            begin_ms, before = counted[-1]
            counted[-1] = begin_ms, before + size
        else:
            counted.append((now_ms, size))
        self._total += size

    def is_exceeded(self) -> bool:
        """Return whether more was sent lately than is allowed."""
        limit = self.limit()
        if limit is None:
            return False
        now_ms = self._clock_ms()
        self._forget_old(now_ms)
        if not self._counted:
            return False
        elapsed_ms = max(_WINDOW_MS, now_ms - self._counted[0][0])
        return self._total * 1000 > limit * elapsed_ms

    def _forget_old(self, now_ms: int) -> None:
        counted = self._counted
        while counted and counted[0][0] <= now_ms - _WINDOWS * _WINDOW_MS:
            self._total -= counted.popleft()[1]
