"""The partitions that a consumer reads, and its position in each."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from octavo.errors import ConsumerError
from octavo.log.names import TopicPartition, is_internal_topic
from octavo.records.layout import NO_LEADER_EPOCH

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.log.consumer.fetched_records import Fetched

LOOK_AGAIN_S: Final = 0.1  # how often to look for new topics and partitions


class Assigned:
    """The state of one partition that the consumer reads."""

    __slots__ = ("_position", "arrow", "committed", "fetched", "is_paused", "leader_epoch", "partition", "segment")

    def __init__(self, partition: TopicPartition) -> None:
        self.partition: Final = partition
        self.is_paused = False
        self.leader_epoch = NO_LEADER_EPOCH  # leader epoch of the last record handed out
        self.committed: int | None = None  # offset that this consumer committed last
        self.fetched: Fetched | None = None  # fetched records, from the position on
        self.arrow: pa.RecordBatch | None = None  # the same as Arrow columns, for `poll_arrow`
        self.segment: int | None = None  # base offset of the last fetch's segment; the next fetch goes on there
        self._position: int | None = None

    @property
    def position(self) -> int | None:
        """The offset of the next record to hand out; None while it is not known."""
        return self._position

    @property
    def is_fetched(self) -> bool:
        """Whether records can be handed out without another fetch."""
        if self.arrow is not None:
            return True
        return self.fetched is not None and (self.fetched.left > 0 or self.fetched.following is not None)

    def move(self, position: int | None, segment: int | None = None) -> None:
        """Continue from another position. `segment` is the segment that was read to reach it, if any."""
        self._position = position
        self.segment = segment
        self.fetched = self.arrow = None

    def go_on(self, position: int) -> None:
        """Advance the position: the fetched records before it have been handed out."""
        self._position = position


class Assignment:
    """All partitions that the consumer reads: those assigned, or those of the subscribed topics."""

    def __init__(self, existing: Callable[[], Iterable[TopicPartition]], *, exclude_internal: bool) -> None:
        """`existing` returns the partitions that exist at the moment."""
        self._existing: Final = existing
        self._exclude_internal: Final = exclude_internal
        self._next_look = 0.0  # when to look for partitions again, on the monotonic clock
        self.last: Assigned | None = None  # partition that the last poll read; None if the assignment changed since
        self._topics: frozenset[str] | re.Pattern[str] | None = None  # None without a subscription
        self._are_given = False  # the coordinator of a group says which partitions of the topics are read
        self._states: dict[TopicPartition, Assigned] = {}
        self._turns: deque[Assigned] = deque()  # in reading order; the first is read next

    def __iter__(self) -> Iterator[Assigned]:
        return iter(self._states.values())

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._states

    def __getitem__(self, partition: TopicPartition) -> Assigned:
        """Return the state of a partition. Raises `ConsumerError` for a partition that is not assigned."""
        try:
            return self._states[partition]
        except KeyError:
            raise ConsumerError(f"{partition} is not assigned to this consumer") from None

    @property
    def subscription(self) -> frozenset[str] | re.Pattern[str] | None:
        """The subscribed topics or the pattern; None without a subscription."""
        return self._topics

    def turns(self) -> Iterator[Assigned]:
        """Yield the partitions in turn. A caller that stops early starts with the same partition the next time."""
        for _ in range(len(self._turns)):
            yield self._turns[0]
            self._turns.rotate(-1)

    def end_turn(self, state: Assigned) -> None:
        """Start with another partition the next time, if everything fetched from this one has been handed out."""
        if not state.is_fetched:
            self._turns.rotate(-1)

    def chosen(self, partitions: Iterable[TopicPartition] | None) -> list[Assigned]:
        """Return the states of these partitions, or of all. Raises `ConsumerError` for one that is not assigned."""
        return list(self) if partitions is None else [self[partition] for partition in partitions]

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others. A partition that was read before keeps its position."""
        if self._topics is not None:
            raise ConsumerError("the consumer has subscribed to topics: unsubscribe first")
        self._set(partitions)

    def subscribe(self, topics: frozenset[str] | re.Pattern[str], *, are_given: bool = False) -> None:
        """Read all partitions of these topics, or those of them that `hold` is called with if they `are_given`."""
        if self._topics is None and self._states:
            raise ConsumerError("the consumer has partitions assigned: unsubscribe first")
        self._topics, self._are_given = topics, are_given
        self.look(now=True)

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, which a group gives to this consumer."""
        self._set(partitions)

    def unsubscribe(self) -> None:
        """End the subscription or the assignment."""
        self._topics = None
        self._set(())

    def look(self, *, now: bool = False) -> bool:
        """Look for the partitions of the subscribed topics, if it is time or if `now`. Return whether it looked."""
        topics = self._topics
        if topics is None or self._are_given or not (now or time.monotonic() >= self._next_look):
            return False
        self._next_look = time.monotonic() + LOOK_AGAIN_S
        if isinstance(topics, frozenset):
            self._set([partition for partition in self._existing() if partition.topic in topics])
        else:
            self._set([partition for partition in self._existing() if self.matches(topics, partition.topic)])
        return True

    def matches(self, pattern: re.Pattern[str], topic: str) -> bool:
        """Return whether a pattern that is subscribed to means a topic."""
        return pattern.fullmatch(topic) is not None and not (self._exclude_internal and is_internal_topic(topic))

    def _set(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = dict.fromkeys(partitions)
        if wanted.keys() == self._states.keys():
            return
        self.last = None
        known = self._states
        self._states = {partition: known.get(partition) or Assigned(partition) for partition in wanted}
        stay = [state for state in self._turns if state.partition in wanted]
        self._turns = deque(stay + [state for state in self if state.partition not in known])
