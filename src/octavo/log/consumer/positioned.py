"""Subscription, positions and commits of a consumer.

Reading itself is in `consumer`.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import length_hint
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Never, Self

from octavo.errors import ConsumerClosed, InvalidInput, WrongCall
from octavo.log.client_arguments import (
    OneByOne,
    check_config,
    check_function,
    listed_partitions,
    many_partitions,
    offsets_by_partition,
    one_partition,
    partitions_of,
    readable_directory,
)
from octavo.log.closing import keeping
from octavo.log.consumer.assignment import Assigned, Assignment
from octavo.log.consumer.config import ConsumerConfig
from octavo.log.consumer.fetched_records import Deserializer
from octavo.log.consumer.fetcher import Fetcher
from octavo.log.consumer.record import ConsumerRecord
from octavo.log.names import TopicPartition, check_topic_name
from octavo.log.offset_and_metadata import OffsetAndMetadata
from octavo.log.ported_calls import NO_MEMBERS, NO_WAIT, answering
from octavo.log.readable_log import TimestampOffset

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory
    from octavo.log.watched.watched_directory import WatchedDirectory

_LOOK_AGAIN_S: Final = 0.1  # how often to look for new topics and partitions


class Handing(NamedTuple):
    """Records that an iteration is handing out one by one."""

    state: Assigned
    records: list[ConsumerRecord]
    left: Iterator[ConsumerRecord]

    @property
    def left_count(self) -> int:
        return length_hint(self.left) if self.records else 0

    @property
    def last(self) -> ConsumerRecord | None:
        """The record that was handed out last."""
        left = self.left_count
        return self.records[-1 - left] if left < len(self.records) else None


class PositionedConsumer:
    """Subscription, positions and commits; `Consumer` adds reading."""

    def __init__(
        self,
        data: DataDirectory | WatchedDirectory | None = None,
        config: Mapping[str, Any] | None = None,
        *topics: Never,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        **more: Any,
    ) -> None:
        """`config` has Kafka's names; `more` has them with `_` for `.`. Raises `InvalidConfig`.

        A deserializer converts the bytes of a key or value that is not null. Raises `WrongCall` without a directory.
        """
        data = readable_directory(data)
        check_config("Consumer", config, topics)
        check_function("key_deserializer", key_deserializer, "key")
        check_function("value_deserializer", value_deserializer, "value")
        self.config: Final = ConsumerConfig.of(config, **more)
        self._fetcher = Fetcher(data, self.config, (key_deserializer, value_deserializer))
        self._data = data
        self._assignment = Assignment(exclude_internal=self.config.exclude_internal_topics)
        self._auto_commit = self._fetcher.commits_by_itself
        self._next_commit_ms = self._fetcher.now_ms() + self.config.auto_commit_interval_ms
        self._next_look = 0.0
        self._last: Assigned | None = None  # partition that the last poll read, if still assigned
        self._handing: Handing | None = None
        self._single: Iterator[ConsumerRecord] = iter(())  # the rest of `_handing`, for polls that ask for one record
        self._woken = threading.Event()
        self._is_open = True

    # ---------------------------------------------------------------------------------------------------- what it reads

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others."""
        self._begin()
        wanted = many_partitions(partitions)
        self._commit_by_itself()
        self._assignment.assign(wanted)
        self._last = None

    @answering(listener=NO_MEMBERS, on_assign=NO_MEMBERS, on_revoke=NO_MEMBERS, on_lost=NO_MEMBERS)
    def subscribe(
        self, topics: Sequence[str] | re.Pattern[str] = (), *, pattern: str | re.Pattern[str] | None = None
    ) -> None:
        """Read all partitions, also future ones, of these topics, or of those whose whole name the pattern matches."""
        self._begin()
        wanted = _wanted(topics, pattern)
        if wanted == frozenset():
            self.unsubscribe()  # as in Kafka
            return
        self._commit_by_itself()
        self._assignment.subscribe(wanted)
        self._next_look = 0.0
        self._look()

    def unsubscribe(self) -> None:
        """Read nothing."""
        self._begin()
        self._commit_by_itself()
        self._assignment.unsubscribe()
        self._last = None

    def assignment(self) -> list[TopicPartition]:
        """The partitions that the consumer reads."""
        self._look()
        return sorted(state.partition for state in self._assignment)

    def subscription(self) -> frozenset[str] | re.Pattern[str] | None:
        """The subscribed topics; None if partitions were assigned, or nothing was."""
        return self._assignment.subscription

    def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, in order. Raises `UnknownPartition` if there is no such topic."""
        return partitions_of(self._data, topic)

    def pause(self, *partitions: OneByOne) -> None:
        """Hand out nothing from these partitions until they are resumed."""
        self._begin()
        for state in self._states(listed_partitions(partitions)):
            state.is_paused = True

    def resume(self, *partitions: OneByOne) -> None:
        """Hand out records from these partitions again."""
        for state in self._states(listed_partitions(partitions)):
            state.is_paused = False

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused."""
        return sorted(state.partition for state in self._assignment if state.is_paused)

    # -------------------------------------------------------------------------------------------------------- positions

    @answering()
    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue from an offset.

        If the offset does not exist, this shows when it is read. `auto.offset.reset` applies then.
        """
        self._begin()
        at: object = offset.offset if isinstance(offset, OffsetAndMetadata) else offset
        if not isinstance(at, int) or at < 0:
            raise InvalidInput(f"there is no offset {at!r}")
        self._look()
        self._assignment[one_partition(partition)].move(at)

    def seek_to_beginning(self, *partitions: OneByOne) -> None:
        """Continue from the first offset of these partitions, or of all assigned ones."""
        self._begin()
        for state in self._states(listed_partitions(partitions) if partitions else None):
            state.move(self._fetcher.start_offset(state.partition))

    def seek_to_end(self, *partitions: OneByOne) -> None:
        """Continue from the end of these partitions, or of all assigned ones."""
        self._begin()
        for state in self._states(listed_partitions(partitions) if partitions else None):
            state.move(self._fetcher.end_offset(state.partition))

    def seek_to_timestamp(self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue from the first record with this timestamp or a later one; if there is none, from the end."""
        self._begin()
        for state in self._states(None if partitions is None else many_partitions(partitions)):
            state.move(self._fetcher.offset_since(state.partition, timestamp_ms))

    @answering(timeout_ms=NO_WAIT)
    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record. Raises `NoOffset` if there is none to begin at."""
        self._look()
        state = self._assignment[one_partition(partition)]
        if state.position is None:
            self._fetcher.find_position(state)
        return self._position(state) or 0

    @answering(timeout_ms=NO_WAIT)
    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return {partition: self._fetcher.start_offset(partition) for partition in many_partitions(partitions)}

    @answering(timeout_ms=NO_WAIT)
    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last one that this consumer may see, for each partition."""
        return {partition: self._fetcher.end_offset(partition) for partition in many_partitions(partitions)}

    @answering(timeout_ms=NO_WAIT, timestamps="write timestamps_ms")
    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, TimestampOffset | None]:
        """The first record of each partition with its timestamp or a later one; None if there is none."""
        return {
            one_partition(partition): self._fetcher.offset_for_timestamp(one_partition(partition), timestamp_ms)
            for partition, timestamp_ms in timestamps_ms.items()
        }

    def lag(self, partition: TopicPartition) -> int:
        """Number of offsets from the position to the end."""
        return max(0, self._fetcher.end_offset(one_partition(partition)) - self.position(partition))

    # ------------------------------------------------------------------------------------------------------- committing

    @answering(
        timeout_ms=NO_WAIT,
        asynchronous="it returns when the offsets are written, leave it out",
        message="write offsets={record.topic_partition: record.offset + 1}",
    )
    def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit these offsets for the group; without any, the positions after all records handed out.

        They survive the process once this returns. Raises `ConsumerError` without `group.id`, and `CoordinatorRefused`.
        """
        self._check_open()
        if offsets is None:
            self._commit(self._positions())
            return
        self._fetcher.commit(offsets_by_partition(offsets))

    @answering(timeout_ms=NO_WAIT, timeout=NO_WAIT, metadata="each offset comes with its metadata, leave it out")
    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offset in each of the partitions; None if it has none."""
        self._check_open()
        return self._fetcher.committed(many_partitions(partitions))

    def _positions(self) -> dict[Assigned, OffsetAndMetadata]:
        """The positions that changed since the last commit."""
        found = {}
        for state in self._assignment:
            position = self._position(state)
            if position is not None and position != state.committed and self._fetcher.has_partition(state.partition):
                found[state] = OffsetAndMetadata(position, leader_epoch=self._leader_epoch(state))
        return found

    def _commit(self, positions: Mapping[Assigned, OffsetAndMetadata]) -> None:
        self._fetcher.commit({state.partition: position for state, position in positions.items()})
        for state, position in positions.items():
            state.committed = position.offset

    def _commit_by_itself(self) -> None:
        if self._auto_commit:
            self._commit(self._positions())

    def _is_commit_due(self) -> bool:
        return self._auto_commit and self._fetcher.now_ms() >= self._next_commit_ms

    def _commit_if_due(self) -> None:
        if self._is_commit_due():
            self._next_commit_ms = self._fetcher.now_ms() + self.config.auto_commit_interval_ms
            self._commit(self._positions())

    def _position(self, state: Assigned) -> int | None:
        """The offset after the last record handed out, including by an iteration in progress."""
        if self._handing is None or self._handing.state is not state or state.fetched is None:
            return state.position
        return state.fetched.offset_at(self._handing.left_count)

    def _leader_epoch(self, state: Assigned) -> int:
        """The leader epoch of the last record handed out."""
        if self._handing is None or self._handing.state is not state:
            return state.leader_epoch
        last = self._handing.last
        return state.leader_epoch if last is None else last.leader_epoch

    # ------------------------------------------------------------------------------------------------------------ state

    @answering(timeout=NO_WAIT, timeout_ms=NO_WAIT, autocommit="set enable.auto.commit in the configuration")
    def close(self) -> None:
        """Commit what has been read, if auto-commit is on. All that `poll` returned counts as read.

        In a fork of the process that opened the directory nothing is committed: that is up to the parent.
        """
        if self._is_open:
            try:
                self._settle()
                if not self._fetcher.is_elsewhere:
                    self._commit_by_itself()
            finally:
                self._is_open = False
                self._last = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the consumer. If the body raised, an error of closing becomes a note on that error."""
        with keeping(error):
            self.close()

    def _begin(self) -> None:
        self._check_open()
        self._settle()

    def _settle(self) -> None:
        """Take back from an iteration the records that it has not handed out."""
        handing, self._handing = self._handing, None
        self._single = iter(())
        if handing is None or handing.state.fetched is None:
            return
        if handing.last is not None:
            handing.state.leader_epoch = handing.last.leader_epoch
        handing.state.fetched.give_back(handing.left_count)
        handing.state.go_on(handing.state.fetched.next_offset)
        handing.records.clear()  # this ends the iteration over them
        self._end_turn(handing.state)

    def _end_turn(self, state: Assigned) -> None:
        """Give another partition the turn, if everything fetched from this one has been handed out."""
        if not state.is_fetched:
            self._assignment.next_turn()

    def _look(self) -> None:
        """Notice partitions that are new or gone."""
        now = time.monotonic()
        if self._assignment.subscription is not None and now >= self._next_look:
            self._next_look = now + _LOOK_AGAIN_S
            self._assignment.look(self._data.partitions())
            self._last = None

    def _states(self, partitions: Iterable[TopicPartition] | None) -> list[Assigned]:
        self._look()
        if partitions is None:
            return list(self._assignment)
        return [self._assignment[partition] for partition in partitions]

    def _check_open(self) -> None:
        if not self._is_open:
            raise ConsumerClosed("the consumer is closed")
        self._fetcher.check_open()


def _wanted(
    topics: Sequence[str] | re.Pattern[str], pattern: str | re.Pattern[str] | None
) -> frozenset[str] | re.Pattern[str]:
    """Return the topics or the pattern to subscribe to. Raises `InvalidInput`."""
    if pattern is not None:
        if topics:
            raise InvalidInput("subscribe takes topics or a pattern, not both")
        topics = re.compile(pattern)
    if isinstance(topics, re.Pattern):
        return topics
    if isinstance(topics, str):
        raise InvalidInput(f"topics are named in a list, or by a pattern; not by {topics!r}")
    for name in topics:
        if str(name).startswith("^"):  # confluent-kafka's way to give a pattern
            raise WrongCall(f"{name!r} names no topic: write subscribe(pattern={name!r})")
        check_topic_name(name)
    return frozenset(topics)
