"""Moves records from the inboxes into the logs: `Sender`.

One thread at a time sends: the producer's own, or one that calls the producer. So the records of a partition are
appended in the order in which they were sent. Batches stay in the outbox until their outcome is known. A thread that is
interrupted before that leaves them there. The next thread sends the same batches with the same sequence numbers, and
the log recognizes those that it already has.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from octavo.errors import SendTimedOut
from octavo.log.clock import Clock
from octavo.log.ownership.fork_safe import make_rlock
from octavo.log.producer.config import ProducerConfig
from octavo.log.producer.future import OnDelivery, SendFuture
from octavo.log.producer.inbox import Inbox

if TYPE_CHECKING:
    from octavo.log.producer.deliverer import Deliverer
    from octavo.log.producer.encoder import Parcel
    from octavo.log.producer.packer import Packer


class Sender:
    """Packs waiting records into batches, and appends them."""

    def __init__(
        self,
        config: ProducerConfig,
        make_packer: Callable[[], Packer],
        make_deliverer: Callable[[], Deliverer],
        clock: Clock,
        *,
        check_process: Callable[[], None],
    ) -> None:
        """`make_packer` and `make_deliverer` import NumPy. They are called when there is something to send.

        `check_process` raises if this process may not write, because it is a fork of the one that opened the directory.
        """
        self.inboxes: Final[dict[str, Inbox]] = {}
        self.on_waiting: Callable[[], object] = lambda: None  # called when records remain in an inbox after a send
        self._buffer_memory: Final = config.buffer_memory
        self._max_block_ms: Final = config.max_block_ms
        self._make_packer: Final = make_packer
        self._make_deliverer: Final = make_deliverer
        self._clock: Final = clock
        self._check_process: Final = check_process
        self._packer: Packer | None = None
        self._deliverer: Deliverer | None = None
        self._sending: Final = make_rlock()  # held by the one thread that sends; reentrant
        self._outbox: list[Parcel] = []
        self._closed: Exception | None = None
        self._waiting: list[Any] = []  # futures, each followed by its callback; tuples would be garbage to collect
        self._callbacks: Final = make_rlock()  # guards `_waiting`

    def add(self, inbox: Inbox) -> None:
        """Add an inbox. All inboxes share half of `buffer.memory`; the other half is for batches being built."""
        self.inboxes[inbox.topic] = inbox
        for each in list(self.inboxes.values()):
            each.set_share(self._buffer_memory // 2 // len(self.inboxes))

    # --------------------------------------------------------------------------------------------------------- futures

    def finish(self, timeout: float | None) -> None:
        """Append all records sent so far, within `timeout` seconds. Raises `TimeoutError`."""
        self.send(list(self.inboxes.values()), everything=True, timeout=timeout)

    def call_back(self, future: SendFuture, callback: OnDelivery) -> None:
        """Call `callback` with error and metadata when `future` is done, or at once if it already is."""
        with self._callbacks:
            self._waiting += (future, callback)
        if future.done():
            self._call_back()

    def _call_back(self) -> None:
        due: list[Any] = []
        left: list[Any] = []
        with self._callbacks:  # so that a thread that has just appended a record sees its callback
            waiting = iter(self._waiting)
            for future, callback in zip(waiting, waiting, strict=True):
                if future.done():
                    due += (future, callback)
                else:
                    left += (future, callback)
            self._waiting = left
        called = 0
        try:
            while called < len(due):
                called += 2
                try:
                    due[called - 1](*due[called - 2]._outcome())
                except Exception:
                    kind, error, trace = sys.exc_info()
                    assert kind is not None
                    threading.excepthook(threading.ExceptHookArgs((kind, error, trace, threading.current_thread())))
        finally:
            if called < len(due):  # an exception from outside, as by Ctrl-C: the next thread that sends calls the rest
                with self._callbacks:
                    self._waiting = due[called:] + self._waiting

    # --------------------------------------------------------------------------------------------------------- sending

    def send(
        self, inboxes: Sequence[Inbox], *, everything: bool, in_bulk: bool = False, timeout: float | None = None
    ) -> None:
        """Append the waiting records of some inboxes; without `everything`, only full batches (see `Packer.pack`).

        Raises `TimeoutError` if other threads send for longer than `timeout` seconds, and `WrongProcess`. The futures
        report which records could not be appended.
        """
        self._check_process()
        if timeout is None:
            with self._sending:  # no exception from outside can leave it locked
                self._send(inboxes, everything=everything, in_bulk=in_bulk)
        else:
            try:
                if not self._sending.acquire(timeout=max(0.0, timeout)):
                    raise TimeoutError("the record was not appended in time")
                self._send(inboxes, everything=everything, in_bulk=in_bulk)
            finally:
                # Do not check first, and do not use `suppress`: an exception could come between that and the release.
                try:  # noqa: SIM105
                    self._sending.release()
                except RuntimeError:
                    pass  # the lock was not acquired
        if self._waiting:
            self._call_back()

    def _send(self, inboxes: Sequence[Inbox], *, everything: bool, in_bulk: bool) -> None:
        self._deliver()
        for inbox in inboxes:
            self._pack(inbox, everything=everything, in_bulk=in_bulk)
            self._deliver()
            while everything and inbox.held:  # there was too much for one round
                self._pack(inbox, everything=True, in_bulk=in_bulk)
                self._deliver()
            inbox.set_idle(True)  # before the check: a thread that sends in between sees the flag
            if inbox.held or inbox.rows:
                inbox.set_idle(False)
                self.on_waiting()

    def let_go(self) -> None:
        """Release the sending lock, in case an exception from outside kept this thread from releasing it."""
        while self._sending._is_owned():  # type: ignore[attr-defined]  # `threading.Condition` calls it, too
            self._sending.release()

    def send_full(self, inbox: Inbox) -> None:
        """Append the full batches of an inbox that has no more room. The calling `send` waits for this.

        Raises `SendTimedOut` if other threads send for longer than `max.block.ms`.
        """
        try:
            timeout = min(self._max_block_ms / 1000, threading.TIMEOUT_MAX)
            self.send((inbox,), everything=False, in_bulk=True, timeout=timeout)
        except TimeoutError:
            raise SendTimedOut(f"there was no room for records for {self._max_block_ms} ms (max.block.ms)") from None

    def close(self, error: Exception) -> None:
        """Fail all records that have not been appended, and all that are sent later, with this error."""
        self._closed = error
        self.drop(error)

    def drop(self, error: Exception) -> None:
        """Fail all records that have not been appended, with this error."""
        with self._sending:
            for parcel in self._outbox:
                parcel.delivery.fail(parcel.rows, error)
            self._outbox = []
            for inbox in self.inboxes.values():
                items = self._all_items(inbox)
                if items:
                    self._give_up(inbox, items, error)
                inbox.held = []
                inbox.assigned = []
        self._call_back()

    def _deliver(self) -> None:
        """Deliver all parcels of the outbox."""
        outbox = self._outbox
        if outbox and self._deliverer is None:
            self._deliverer = self._make_deliverer()
        while outbox:
            assert self._deliverer is not None
            self._deliverer.deliver(outbox[0])
            del outbox[0]

    def _pack(self, inbox: Inbox, *, everything: bool, in_bulk: bool) -> None:
        """Pack the waiting records of an inbox into the outbox, which must be empty."""
        items = self._all_items(inbox)
        if not items:
            return
        try:
            if self._closed is not None:
                raise self._closed
            if self._packer is None:
                self._packer = self._make_packer()
            packed = self._packer.pack(inbox, items, everything=everything, in_bulk=in_bulk)
            parcels, left, assigned, has_waited = packed
        except Exception as error:  # whatever it is, the futures report it
            self._give_up(inbox, items, error)
            parcels, left, assigned, has_waited = [], [], [], False
        if not has_waited:
            inbox.held_since_ms = inbox.taken_since_ms
        self._outbox = parcels  # no signal is handled between these lines
        inbox.held = left
        inbox.assigned = assigned

    @staticmethod
    def _give_up(inbox: Inbox, items: list[Any], error: Exception) -> None:
        from octavo.log.producer.record_columns import failed_delivery

        failed_delivery(inbox, items, error)

    def _all_items(self, inbox: Inbox) -> list[Any]:
        """Move the rows of an inbox to `held`, and return `held`: all waiting records, oldest first."""
        rows = inbox.rows
        if rows:
            held = inbox.held
            inbox.taken_since_ms = inbox.since_ms
            if not held:
                inbox.held_since_ms = inbox.since_ms
            inbox.since_ms = self._clock()
            inbox.large_size = 0
            items = held + rows
            count = len(items) - len(held)
            inbox.held = items  # no signal is handled between this line and the next: no record is lost or doubled
            del rows[:count]
        return inbox.held
