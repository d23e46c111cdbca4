"""A consumer that reads a data directory in this process: `Consumer`.

    with Consumer(data, {"group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["events"])
        for record in consumer:
            ...

Names and behaviour are Kafka's. A consumer with a `group.id` that subscribes to topics is a member of the group: it
shares the partitions with all other members, be they in this process or clients of a broker that serves the directory.
Without a group, a consumer reads all partitions that it is subscribed to, or assigned.

Only one thread may use a consumer. Other threads may call nothing but `wakeup`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Never

from octavo.errors import (
    ConsumerClosed,
    FormatError,
    InvalidInput,
    LogError,
    MemberFenced,
)
from octavo.log.clients.arguments import (
    OneByOne,
    check_config,
    check_function,
    deadline_after,
    listed_partitions,
    many_partitions,
    offsets_by_partition,
    one_partition,
    partitions_of,
    readable_directory,
    subscribed_topics,
    times_by_partition,
)
from octavo.log.clients.ported_calls import (
    NO_LISTENER,
    NO_WAIT,
    OF_CONSUMERS,
    ONE_BY_ONE,
    answering,
    refusing,
    without,
    wrong_call,
)
from octavo.log.clock import wall_clock_ms
from octavo.log.closing import ClosedByWith
from octavo.log.consumer.assignment import Assigned, Assignment
from octavo.log.consumer.commits import Commits
from octavo.log.consumer.committed_offsets import GroupOffsets
from octavo.log.consumer.config import ConsumerConfig
from octavo.log.consumer.consumed_logs import ConsumedLogs
from octavo.log.consumer.fetched_records import Deserializer
from octavo.log.consumer.fetcher import Fetcher
from octavo.log.consumer.hand_out import HandOut
from octavo.log.consumer.membership import Callbacks, Membership, OnRebalance
from octavo.log.consumer.record import ConsumerRecord
from octavo.log.consumer.starting_offset import StartingOffset
from octavo.log.consumer.waiting import AT_ONCE, Waiting
from octavo.log.coordinator.consumer_group_metadata import ConsumerGroupMetadata
from octavo.log.coordinator.notice import Notice
from octavo.log.coordinator.offset_and_metadata import OffsetAndMetadata
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import TopicPartition
from octavo.log.reading.readable_log import TimestampOffset

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.log.watched.watched_directory import WatchedDirectory

_OF_POLL: Final = {
    "": "timeout, in seconds, and max_records, and returns a list of records",
    "*": "write poll(timeout=1.0), in seconds. It returns a list of records",
    "update_offsets": "leave it out",
}


@without(**OF_CONSUMERS)
class Consumer(ClosedByWith):
    """Reads partitions of a directory that is open in this process, or watched. `close` it, or use it in a `with`.

    config, or keywords with `_` for `.`: options with Kafka's names; see `ConsumerConfig`
    key_deserializer, value_deserializer: convert the bytes of a key or value that is not null

    Raises `InvalidConfig`, and `WrongCall` without a directory.
    """

    @refusing
    def __init__(
        self,
        data: DataDirectory | WatchedDirectory | None = None,
        config: Mapping[str, Any] | None = None,
        *topics: Never,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        **more: Any,
    ) -> None:
        data = readable_directory(data)
        check_config("Consumer", config, topics)
        check_function("key_deserializer", key_deserializer, "key")
        check_function("value_deserializer", value_deserializer, "value")
        now_ms = data.now_ms if isinstance(data, DataDirectory) else wall_clock_ms
        self.config: Final = ConsumerConfig.of(config, **more)
        self._data: Final = data
        self._assignment: Final = Assignment(data.partitions, exclude_internal=self.config.exclude_internal_topics)
        self._group: Final = GroupOffsets(data, self.config)
        self._logs: Final = ConsumedLogs(data, self.config.isolation_level)
        self._start: Final = StartingOffset(self._logs, self._group, self.config.auto_offset_reset, now_ms)
        self._fetcher: Final = Fetcher(self._logs, self._start, self.config, (key_deserializer, value_deserializer))
        self._hand_out: Final = HandOut(self._assignment)
        self._commits: Final = Commits(
            self._assignment,
            self._hand_out,
            self._logs,
            self._group,
            interval_ms=self.config.auto_commit_interval_ms,
            now_ms=now_ms,
        )
        self._membership: Final = self._make_membership()
        self._notice: Final = Notice() if self._membership is None else self._membership.notice
        self._waiting: Final = Waiting(self._assignment, self._membership, self._logs, self._fetcher, self.config)
        self._is_open = True

    def _make_membership(self) -> Membership | None:
        if self.config.group_id is None or not isinstance(self._data, DataDirectory):
            return None
        return Membership(self._data, self.config, self._assignment, self._group, self._commits)

    # ---------------------------------------------------------------------------------------------------- what it reads

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions and no others."""
        self._begin()
        wanted = many_partitions(partitions)
        self._commits.commit_if_automatic()
        self._assignment.assign(wanted)

    @answering(listener=NO_LISTENER)
    def subscribe(
        self,
        topics: Sequence[str] | re.Pattern[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        on_assign: OnRebalance | None = None,
        on_revoke: OnRebalance | None = None,
        on_lost: OnRebalance | None = None,
    ) -> None:
        """Read these topics, including future ones. A pattern must match a topic's whole name.

        With a `group.id`, join the group, and read the partitions that it gives to this member. Otherwise read all.

        on_assign: called with the consumer and the partitions that it gets; it may `seek`
        on_revoke: called with those that it is about to give back; it may `commit`. If it raises an error, `poll`
            does, and the next one calls it again
        on_lost: called with those that others may have already, since the consumer was away for too long; without it,
            `on_revoke` is called

        They are called by the thread that uses the consumer, in `subscribe`, `poll`, `unsubscribe` and `close`. Raises
        `CoordinatorRefused` if the group does not accept the consumer.
        """
        self._begin()
        callbacks = Callbacks(on_assign, on_revoke, on_lost)
        for name, function in callbacks._asdict().items():
            check_function(name, function, "consumer", "partitions")
        wanted = subscribed_topics(topics, pattern)
        if wanted == frozenset():
            self.unsubscribe()  # as in Kafka
            return
        self._commits.commit_at_end()
        if self._membership is None:
            self._assignment.subscribe(wanted)
        else:
            self._membership.subscribe(wanted, callbacks, self)

    def unsubscribe(self) -> None:
        """End the subscription or the assignment, and leave the group. The consumer reads nothing then."""
        self._begin()
        self._commits.commit_at_end()
        if self._membership is not None:
            self._membership.leave()
        self._assignment.unsubscribe()

    def assignment(self) -> list[TopicPartition]:
        """The partitions that the consumer reads. `poll` changes them if it shares them with others."""
        self._assignment.look()
        return sorted(state.partition for state in self._assignment)

    def subscription(self) -> frozenset[str] | re.Pattern[str] | None:
        """The subscribed topics or the pattern; None without a subscription."""
        return self._assignment.subscription

    def memberid(self) -> str | None:
        """The id by which the group knows this consumer; None if it is no member."""
        member = self._group.member
        return None if member is None else member.member_id

    def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        """What the consumer is in its group, for `Producer.send_offsets_to_transaction`. Raises `ConsumerError`."""
        return self._group.metadata()

    def partitions_for(self, topic: str) -> list[TopicPartition]:
        """The partitions of a topic, in order. Raises `UnknownPartition` if there is no such topic."""
        return partitions_of(self._data, topic)

    @answering(partitions=ONE_BY_ONE)
    def pause(self, *partitions: OneByOne) -> None:
        """Hand out nothing from these partitions until they are resumed."""
        self._begin()
        for state in self._states(listed_partitions(partitions)):
            state.is_paused = True

    @answering(partitions=ONE_BY_ONE)
    def resume(self, *partitions: OneByOne) -> None:
        """Hand out records from these partitions again."""
        for state in self._states(listed_partitions(partitions)):
            state.is_paused = False

    def paused(self) -> list[TopicPartition]:
        """The partitions that are paused."""
        return sorted(state.partition for state in self._assignment if state.is_paused)

    # ---------------------------------------------------------------------------------------------------------- reading

    @refusing
    def poll(
        self, *more: Never, timeout: float | None = 0.0, max_records: int | None = None, **others: Never
    ) -> list[ConsumerRecord]:
        """Return the next records, at most `max.poll.records` or `max_records`; an empty list if none came in time.

        Waits for up to `timeout` seconds; if it is None, for ever.

        Raises `NoOffset`, `OffsetOutOfRange`, `DeserializationFailed`, `FormatError` if a log is damaged, `WokenUp`,
        `Closed` if the consumer or its directory is closed, and `WrongProcess` in a fork of the process that opened it.
        """
        if more or others:
            wrong_call("Consumer.poll", more, others, _OF_POLL)
        if max_records == 1:
            if not self._notice.is_there and not self._commits.is_due():
                for record in self._hand_out.single:
                    return [record]
            return self._poll_one(timeout)
        limit = self.config.max_poll_records if max_records is None else max_records
        last = self._assignment.last
        if (
            last is not None
            and not self._hand_out.is_under_way
            and not self._waiting.is_woken()
            and not self._notice.is_there
            and not self._commits.is_due()
        ):
            fetched = last.fetched  # fast path: records are nearly always there already
            if fetched is not None and not last.is_paused and fetched.left > limit > 0:
                self._hand_out.note(last)
                records = fetched.take(limit)
                last.leader_epoch = records[-1].leader_epoch
                last.go_on(fetched.next_offset)
                self._hand_out.returned()
                return records
        return self._poll(timeout, limit)

    def _poll_one(self, timeout: float | None) -> list[ConsumerRecord]:
        """Return one record, and keep those after it for the next polls that ask for one."""
        self._begin_poll()
        state = self._waiting.next_partition(self._fetcher.has_records, deadline_after(timeout))
        if state is None:
            return []
        self._hand_out.single = left = self._hand_out.begin(state, self.config.max_poll_records)
        if self._waiting.is_woken():
            self._hand_out.single = iter(())
        for record in left:  # not `next`: after a call, a signal may be handled before the record is returned
            return [record]
        return []

    def _poll(self, timeout: float | None, limit: int) -> list[ConsumerRecord]:
        if limit < 1:
            raise InvalidInput(f"a poll gives at least one record, not {limit}")
        self._begin_poll()
        records: list[ConsumerRecord] = []
        deadline = deadline_after(timeout)
        while len(records) < limit:
            try:
                state = self._waiting.next_partition(self._fetcher.has_records, AT_ONCE if records else deadline)
                if state is None or state.fetched is None:
                    break
                self._hand_out.note(state)
                records += state.fetched.take(limit - len(records))
            except (FormatError, LogError, OSError):
                if records:
                    break  # the error is raised by the next poll, after the records before it
                raise
            state.leader_epoch = records[-1].leader_epoch
            state.go_on(state.fetched.next_offset)
            self._assignment.last = state
            self._assignment.end_turn(state)
        self._hand_out.returned()
        return records

    @answering()
    def poll_arrow(self, *, timeout: float | None = 0.0, max_records: int | None = None) -> pa.RecordBatch | None:
        """Return the next records of one partition as Arrow columns; None if none came in `timeout` seconds.

        The columns are those of `octavo.records.to_arrow`, with `topic` and `partition` in front. Without `max_records`
        it returns as many records as fit in `max.partition.fetch.bytes`. Raises the same errors as `poll`.
        """
        if max_records is not None and max_records < 1:
            raise InvalidInput(f"a poll gives at least one record, not {max_records}")
        self._begin_poll()
        state = self._waiting.next_partition(self._fetcher.has_columns, deadline_after(timeout))
        if state is None or state.arrow is None:
            return None
        self._hand_out.note(state)
        taken = self._fetcher.take_columns(state, max_records)
        self._assignment.end_turn(state)
        self._hand_out.returned()
        return taken

    @answering()
    def records(self, timeout: float | None = None) -> Iterator[ConsumerRecord]:
        """Yield record after record, until none comes for `timeout` seconds; without a time-out, for ever.

        Every record that was yielded counts as read, and `commit` commits the position after it.
        """
        self._check_open()
        while self._is_open:
            self._begin_poll()
            state = self._waiting.next_partition(self._fetcher.has_records, deadline_after(timeout))
            if state is None:
                return
            yield from self._hand_out.begin(state, self.config.max_poll_records)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return self.records()

    def wakeup(self) -> None:
        """Make a waiting `poll`, or else the next one, raise `WokenUp`. Any thread may call this."""
        self._waiting.wake()
        self._hand_out.single = iter(())  # nothing is lost: the records are taken back

    # -------------------------------------------------------------------------------------------------------- positions

    @answering()
    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue from this offset.

        Whether it exists is checked when it is read. If it does not, `auto.offset.reset` applies.
        """
        self._begin()
        at: object = offset.offset if isinstance(offset, OffsetAndMetadata) else offset
        if not isinstance(at, int) or at < 0:
            raise InvalidInput(f"there is no offset {at!r}")
        self._assignment.look()
        self._assignment[one_partition(partition)].move(at)

    @answering(partitions=ONE_BY_ONE)
    def seek_to_beginning(self, *partitions: OneByOne) -> None:
        """Continue from the first offset of these partitions, or of all assigned ones."""
        self._begin()
        for state in self._states(listed_partitions(partitions) if partitions else None):
            state.move(self._logs.start_offset(state.partition))

    @answering(partitions=ONE_BY_ONE)
    def seek_to_end(self, *partitions: OneByOne) -> None:
        """Continue from the end of these partitions, or of all assigned ones."""
        self._begin()
        for state in self._states(listed_partitions(partitions) if partitions else None):
            state.move(self._logs.end_offset(state.partition))

    def seek_to_timestamp(self, timestamp_ms: int, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Continue from the first record with this timestamp or a later one; if there is none, from the end."""
        self._begin()
        for state in self._states(None if partitions is None else many_partitions(partitions)):
            state.move(self._logs.offset_since(state.partition, timestamp_ms))

    @answering(timeout_ms=NO_WAIT)
    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to read. Raises `NoOffset` if there is no offset to begin at."""
        self._assignment.look()
        state = self._assignment[one_partition(partition)]
        if state.position is None:
            self._start.find(state)
        return self._hand_out.position(state) or 0

    @answering(timeout_ms=NO_WAIT)
    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return {partition: self._logs.start_offset(partition) for partition in many_partitions(partitions)}

    @answering(timeout_ms=NO_WAIT)
    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last one that this consumer may see, for each partition."""
        return {partition: self._logs.end_offset(partition) for partition in many_partitions(partitions)}

    @answering(timeout_ms=NO_WAIT, timestamps="write timestamps_ms")
    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, TimestampOffset | None]:
        """The first record in each partition with the given timestamp or a later one; None if there is none."""
        return {
            partition: self._logs.offset_for_timestamp(partition, timestamp_ms)
            for partition, timestamp_ms in times_by_partition(timestamps_ms).items()
        }

    def lag(self, partition: TopicPartition) -> int:
        """Number of offsets from the position to the end offset."""
        return max(0, self._logs.end_offset(one_partition(partition)) - self.position(partition))

    # ------------------------------------------------------------------------------------------------------- committing

    @answering(
        timeout_ms=NO_WAIT,
        asynchronous="it returns when the offsets are written, leave it out",
        message="write offsets={record.topic_partition: record.offset + 1}",
    )
    def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None:
        """Commit offsets for the group; by default, the positions after all records that were handed out.

        Once this returns, they survive a crash of the process. Raises `ConsumerError` without `group.id`, and
        `CoordinatorRefused`.
        """
        self._check_open()
        if offsets is None:
            self._commits.commit()
            return
        self._group.commit(offsets_by_partition(offsets))

    @answering(timeout_ms=NO_WAIT, timeout=NO_WAIT, metadata="each offset comes with its metadata, leave it out")
    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offset in each partition; None where there is none."""
        self._check_open()
        return self._group.committed(many_partitions(partitions))

    # ------------------------------------------------------------------------------------------------------------ state

    @answering(timeout=NO_WAIT, timeout_ms=NO_WAIT, autocommit="set enable.auto.commit in the configuration")
    def close(self) -> None:
        """Close the consumer, and leave the group. Commit its positions, if auto-commit is on.

        All that `poll` returned counts as read.

        In a fork of the process that opened the directory, nothing is committed: the parent does that.
        """
        if self._is_open:
            try:
                self._hand_out.settle()
                if not self._logs.is_elsewhere:
                    self._commits.commit_at_end()
            finally:
                if self._membership is not None and not self._logs.is_elsewhere:
                    self._membership.leave()
                self._is_open = False
                self._assignment.last = None

    def _begin(self) -> None:
        self._check_open()
        self._hand_out.settle()

    def _begin_poll(self) -> None:
        self._begin()
        self._look()
        try:
            self._commits.commit_if_due()
        except MemberFenced:
            self._look()  # what it had is lost

    def _look(self) -> None:
        if self._membership is not None:
            self._membership.look()

    def _states(self, partitions: Iterable[TopicPartition] | None) -> list[Assigned]:
        self._assignment.look()
        return self._assignment.chosen(partitions)

    def _check_open(self) -> None:
        if not self._is_open:
            raise ConsumerClosed("the consumer is closed")
        self._logs.check_open()
