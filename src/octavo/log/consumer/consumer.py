"""A consumer that reads a data directory in this process: `Consumer`.

    with Consumer(data, {"group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["events"])
        for record in consumer:
            ...

Names and behaviour are Kafka's, with one difference: the partitions of a topic are not divided among the members of a
group. A group only keeps committed offsets. Every consumer reads all partitions that it is subscribed to, or assigned.

A consumer is for one thread. Only `wakeup` may be called from others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Never

from octavo.errors import BadDirectory, FormatError, InvalidInput, LogError, UnknownPartition, WokenUp
from octavo.log.client_arguments import FOREVER, deadline_after
from octavo.log.consumer.assignment import Assigned
from octavo.log.consumer.positioned import Handing, PositionedConsumer
from octavo.log.consumer.record import ConsumerRecord
from octavo.log.ported_calls import OF_CONSUMERS, answering, without, wrong_call

if TYPE_CHECKING:
    import pyarrow as pa

_NO_TIME: Final = -FOREVER
_OF_POLL: Final = {
    "": "timeout, in seconds, and max_records, and returns a list of records",
    "*": "write poll(timeout=1.0), in seconds. It returns a list of records",
    "update_offsets": "leave it out",
}


@without(**OF_CONSUMERS)
class Consumer(PositionedConsumer):
    """Reads partitions of a directory that is open in this process, or watched. `close` it, or use it in a `with`."""

    def poll(
        self, *more: Never, timeout: float | None = 0.0, max_records: int | None = None, **others: Never
    ) -> list[ConsumerRecord]:
        """Return the next records, at most `max.poll.records` or `max_records`; an empty list if none came in time.

        Waits for records for `timeout` seconds; if it is None, for ever.

        Raises `NoOffset`, `OffsetOutOfRange`, `DeserializationFailed`, `FormatError` if a log is damaged, `WokenUp`,
        `Closed` if the consumer or its directory is closed, and `WrongProcess` in a fork of the process that opened it.
        """
        if more or others:
            wrong_call("Consumer.poll", more, others, _OF_POLL)
        if max_records == 1:
            return self._poll_one(timeout)
        limit = self.config.max_poll_records if max_records is None else max_records
        last = self._last
        if last is not None and self._handing is None and not self._woken.is_set() and not self._is_commit_due():
            fetched = last.fetched  # fast path: records are nearly always there already
            if fetched is not None and not last.is_paused and fetched.left > limit > 0:
                records = fetched.take(limit)
                last.leader_epoch = records[-1].leader_epoch
                last.go_on(fetched.next_offset)
                return records
        return self._poll(timeout, limit)

    def _poll_one(self, timeout: float | None) -> list[ConsumerRecord]:
        """Return one record, from an iteration that each call advances by one."""
        if not self._is_commit_due():
            for record in self._single:
                return [record]
        self._begin()
        self._commit_if_due()
        state = self._next(self._fetcher.has_records, deadline_after(timeout))
        if state is None:
            return []
        self._single = left = self._hand_out(state)
        if self._woken.is_set():
            self._single = iter(())
        return [next(left)]

    def _hand_out(self, state: Assigned) -> Iterator[ConsumerRecord]:
        """Hand out records of a partition one by one. Each counts as read when it is handed out."""
        assert state.fetched is not None
        records = state.fetched.take(self.config.max_poll_records)
        self._handing = Handing(state, records, iter(records))
        return self._handing.left

    def _poll(self, timeout: float | None, limit: int) -> list[ConsumerRecord]:
        if limit < 1:
            raise InvalidInput(f"a poll gives at least one record, not {limit}")
        self._begin()
        self._commit_if_due()
        records: list[ConsumerRecord] = []
        deadline = deadline_after(timeout)
        while len(records) < limit:
            try:
                state = self._next(self._fetcher.has_records, _NO_TIME if records else deadline)
                if state is None or state.fetched is None:
                    break
                records += state.fetched.take(limit - len(records))
            except (FormatError, LogError, OSError):
                if records:
                    break  # the error is raised by the next poll, after the records before it
                raise
            state.leader_epoch = records[-1].leader_epoch
            state.go_on(state.fetched.next_offset)
            self._last = state
            self._end_turn(state)
        return records

    @answering()
    def poll_arrow(self, *, timeout: float | None = 0.0, max_records: int | None = None) -> pa.RecordBatch | None:
        """Return the next records of one partition as Arrow columns; None if none came in `timeout` seconds.

        The columns are those of `octavo.records.to_arrow`, with `topic` and `partition` in front. Without `max_records`
        it returns as many records as fit in `max.partition.fetch.bytes`. Raises as `poll`.
        """
        if max_records is not None and max_records < 1:
            raise InvalidInput(f"a poll gives at least one record, not {max_records}")
        self._begin()
        self._commit_if_due()
        state = self._next(self._fetcher.has_columns, deadline_after(timeout))
        if state is None or state.arrow is None:
            return None
        taken = self._fetcher.take_columns(state, max_records)
        self._end_turn(state)
        return taken

    @answering()
    def records(self, timeout: float | None = None) -> Iterator[ConsumerRecord]:
        """Yield record after record, until none comes for `timeout` seconds; without it, for ever.

        Every record that was yielded counts as read, and `commit` commits the position after it.
        """
        self._check_open()
        while self._is_open:
            self._begin()
            self._commit_if_due()
            state = self._next(self._fetcher.has_records, deadline_after(timeout))
            if state is None:
                return
            yield from self._hand_out(state)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        return self.records()

    def wakeup(self) -> None:
        """Make a waiting `poll`, or else the next one, raise `WokenUp`. Any thread may call this."""
        self._woken.set()
        self._single = iter(())  # nothing is lost: `_handing` still has these records

    def _next(self, has: Callable[[Assigned], bool], deadline: float) -> Assigned | None:
        """Return a partition for which `has` is true; None if there is none by the deadline."""
        patience: float | None = None  # deadline for `fetch.min.bytes` to be there
        while True:
            self._fetcher.check_open()
            if deadline != _NO_TIME and self._woken.is_set():
                self._woken.clear()
                raise WokenUp("wakeup was called")
            self._look()
            now = time.monotonic()
            if self.config.fetch_min_bytes > 1:
                patience = now + self.config.fetch_max_wait_ms / 1000 if patience is None else patience
            if patience is None or now >= patience or self._fetcher.has_enough(self._assignment):
                found = self._find(has)
                if found is not None:
                    return found
            if now >= deadline:
                return None
            self._woken.wait(min(self._fetcher.pause_s, deadline - now))

    def _find(self, has: Callable[[Assigned], bool]) -> Assigned | None:
        for state in self._assignment.turns():
            try:
                if not state.is_paused and has(state):
                    return state
            except (UnknownPartition, BadDirectory, FileNotFoundError):
                self._next_look = 0.0
                self._look()
                if state.partition in self._assignment:
                    raise
                return None  # its topic was deleted
        return None
