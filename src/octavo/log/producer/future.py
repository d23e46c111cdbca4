"""`SendFuture`, the result of `send`: it returns the offset of a record once the record has been appended.

A future holds just two references. The offsets of all records that were packed together are columns of one `Delivery`,
in which each future looks up its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from octavo.errors import LogError
from octavo.log.clients.ported_calls import OF_FUTURES, OF_RECORDS, without
from octavo.records.layout import NO_OFFSET

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Int32s = npt.NDArray[np.int32]
    Int64s = npt.NDArray[np.int64]
    Rows = Int64s | slice  # selects some records of a delivery

DoneCallback = Callable[["SendFuture"], object]
OnDelivery = Callable[[BaseException | None, "RecordMetadata | None"], object]  # gets the error or the metadata


@without(**OF_RECORDS)
class RecordMetadata(NamedTuple):
    """Partition, offset and timestamp of a record that was appended."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # the record's own, or the append time if the topic uses `LogAppendTime`


class Finisher(Protocol):
    """Interface through which futures get their records appended and their callbacks called."""

    def finish(self, timeout: float | None) -> None:
        """Append all records sent so far, within `timeout` seconds. Raises `TimeoutError`."""

    def call_back(self, future: SendFuture, callback: OnDelivery) -> None:
        """Call `callback` with error and metadata when `future` is done, or at once if it already is."""


class Delivery:
    """The outcome for records that were packed into batches together."""

    __slots__ = ("_failed", "_offsets", "_partitions", "_timestamps_ms", "finisher", "topic")

    def __init__(
        self, finisher: Finisher, topic: str, timestamps_ms: Int64s, partitions: Int32s, offsets: Int64s
    ) -> None:
        """The arrays have one item for each record. The offset of a record is -1 until the record is appended."""
        self.finisher = finisher
        self.topic = topic
        self._timestamps_ms = timestamps_ms
        self._partitions = partitions
        self._offsets = offsets
        self._failed: dict[int, BaseException] = {}

    def appended(self, rows: Rows, offsets: Int64s, append_time_ms: int) -> None:
        """Store the offsets of records that were appended, and the append time as their timestamp unless it is -1."""
        if append_time_ms >= 0:
            self._timestamps_ms[rows] = append_time_ms
        self._offsets[rows] = offsets

    def fail(self, rows: Rows, error: BaseException) -> None:
        """Mark these records as failed."""
        indexes = range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist()
        self._failed |= dict.fromkeys(indexes, error)

    def is_done(self, index: int) -> bool:
        """Whether a record has been appended or has failed."""
        return bool(self._offsets[index] != NO_OFFSET) or index in self._failed

    def error(self, index: int) -> BaseException | None:
        """The error with which a record failed; None if it did not fail."""
        return self._failed.get(index)

    def metadata(self, index: int) -> RecordMetadata:
        """The metadata of a record that is in the log."""
        return RecordMetadata(
            self.topic, int(self._partitions[index]), int(self._offsets[index]), int(self._timestamps_ms[index])
        )


class Holder(Protocol):
    """Interface of the inbox, which holds a record until it is packed."""

    finisher: Finisher


@without(**OF_FUTURES)
class SendFuture:
    """The outcome of one `send`. Callers do not construct it."""

    # `send` sets the attributes: a constructor would take as long as all the rest of `send`.
    __slots__ = ("_holder", "_index")

    _holder: Holder | Delivery
    _index: int  # index of the record in its delivery

    def done(self) -> bool:
        """Whether the record has been appended or has failed."""
        holder = self._holder
        return type(holder) is Delivery and holder.is_done(self._index)

    def __repr__(self) -> str:
        state = "waits" if not self.done() else "failed" if self.exception() is not None else str(self.result())
        return f"<SendFuture: {state}>"

    def cancelled(self) -> bool:
        """Always False: a record that was sent cannot be recalled."""
        return False

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Return the record's metadata, or raise the error with which it failed.

        Raises `TimeoutError` after `timeout` seconds. Does not wait for `linger.ms`: the record is appended at once.
        """
        delivery = self._delivery(timeout)
        error = delivery.error(self._index)
        if error is not None:
            raise error
        return delivery.metadata(self._index)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the error if the record failed, or None if it is in the log. Waits as `result` does."""
        return self._delivery(timeout).error(self._index)

    def add_done_callback(self, callback: DoneCallback) -> None:
        """Call `callback` with this future once it is done: now, or from the thread that appends the record.

        Exceptions that it raises go to `threading.excepthook`.
        """
        self._holder.finisher.call_back(self, lambda *_: callback(self))

    def _outcome(self) -> tuple[BaseException | None, RecordMetadata | None]:
        """The error or the metadata of a record that has been appended or has failed."""
        delivery = self._holder
        assert type(delivery) is Delivery
        error = delivery.error(self._index)
        return error, delivery.metadata(self._index) if error is None else None

    def _delivery(self, timeout: float | None) -> Delivery:
        if not self.done():
            self._holder.finisher.finish(timeout)
        holder = self._holder
        if type(holder) is not Delivery or not holder.is_done(self._index):
            raise LogError("it is not known what became of the record: the producer was interrupted, or closed before")
        return holder
