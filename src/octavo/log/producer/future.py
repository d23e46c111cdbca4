"""What `send` gives back: `SendFuture`, which knows where the record is once it has been appended.

A future is two references and nothing else until somebody asks: the offsets of all records that went together are kept
in one `Delivery`, as columns, and a record's own is looked up there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from octavo.errors import LogError
from octavo.records.layout import NO_OFFSET

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Int32s = npt.NDArray[np.int32]
    Int64s = npt.NDArray[np.int64]
    Rows = Int64s | slice  # some of the records of a delivery

DoneCallback = Callable[["SendFuture"], object]


class RecordMetadata(NamedTuple):
    """Where a record is in the log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # its own, or that of the append where the topic's timestamps are such


class Finisher(Protocol):
    """Who brings about what a future waits for."""

    def finish(self, timeout_s: float | None) -> None:
        """Append all that was sent until now. Raises `TimeoutError`."""

    def call_back(self, future: SendFuture, callback: DoneCallback) -> None:
        """Have `callback` called when `future` is done, be that now."""


class Delivery:
    """What became of records that went into batches together."""

    __slots__ = ("_failed", "_offsets", "_partitions", "_timestamps_ms", "finisher", "topic")

    def __init__(
        self, finisher: Finisher, topic: str, timestamps_ms: Int64s, partitions: Int32s, offsets: Int64s
    ) -> None:
        """One item for each record; the offset is -1 until it has one."""
        self.finisher = finisher
        self.topic = topic
        self._timestamps_ms = timestamps_ms
        self._partitions = partitions
        self._offsets = offsets
        self._failed: dict[int, BaseException] = {}

    def appended(self, rows: Rows, offsets: Int64s, append_time_ms: int) -> None:
        """These records are in their log, at these offsets."""
        if append_time_ms >= 0:
            self._timestamps_ms[rows] = append_time_ms
        self._offsets[rows] = offsets

    def fail(self, rows: Rows, error: BaseException) -> None:
        """These records are nowhere."""
        indexes = range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist()
        self._failed |= dict.fromkeys(indexes, error)

    def is_done(self, index: int) -> bool:
        """Whether it is known what became of a record."""
        return bool(self._offsets[index] != NO_OFFSET) or index in self._failed

    def error(self, index: int) -> BaseException | None:
        """Why a record is nowhere; None where it is in the log."""
        return self._failed.get(index)

    def metadata(self, index: int) -> RecordMetadata:
        """Where a record is that is in the log."""
        return RecordMetadata(
            self.topic, int(self._partitions[index]), int(self._offsets[index]), int(self._timestamps_ms[index])
        )


class Holder(Protocol):
    """Who has a record that is not delivered yet."""

    finisher: Finisher


class SendFuture:
    """The outcome of one `send`. Not to be made by callers."""

    # Set by whoever makes it: a constructor would take as long as all the rest of `send`.
    __slots__ = ("_holder", "_index")

    _holder: Holder | Delivery
    _index: int  # of the record in its delivery

    def done(self) -> bool:
        """Whether the record has been appended, or never will be."""
        holder = self._holder
        return type(holder) is Delivery and holder.is_done(self._index)

    def __repr__(self) -> str:
        state = "waits" if not self.done() else "failed" if self.exception() is not None else str(self.result())
        return f"<SendFuture: {state}>"

    def cancelled(self) -> bool:
        """Never: what was sent cannot be called back."""
        return False

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is; raises why it is not. `timeout` counts seconds, after which it is a `TimeoutError`.

        Whoever asks does not wait for `linger.ms`: the record goes into the log at once.
        """
        delivery = self._delivery(timeout)
        error = delivery.error(self._index)
        if error is not None:
            raise error
        return delivery.metadata(self._index)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Why the record is not in the log, or None where it is. Waits as `result` does."""
        return self._delivery(timeout).error(self._index)

    def add_done_callback(self, callback: DoneCallback) -> None:
        """Have `callback` called with this future once it is done: now, or by whoever appends the record.

        What it raises goes to `threading.excepthook`.
        """
        self._holder.finisher.call_back(self, callback)

    def _delivery(self, timeout: float | None) -> Delivery:
        if not self.done():
            self._holder.finisher.finish(timeout)
        holder = self._holder
        if type(holder) is not Delivery or not holder.is_done(self._index):
            raise LogError("it is not known what became of the record: the producer was interrupted, or closed before")
        return holder
