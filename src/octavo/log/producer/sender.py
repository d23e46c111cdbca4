"""Moves records from the inboxes into the logs: `Sender`.

One thread at a time sends: the producer's own, or one that calls it. So the records of a partition are appended in the
order in which they were sent. Batches stay in the outbox until their outcome is known. A thread that is interrupted in
between leaves them there. The next one sends the same batches with the same sequence numbers, and the log knows whether
it has them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from octavo.errors import SendTimedOut
from octavo.log.clock import Clock
from octavo.log.ownership.fork_safe import make_lock, make_rlock
from octavo.log.producer.config import ProducerConfig
from octavo.log.producer.future import OnDelivery, SendFuture
from octavo.log.producer.inbox import Inbox

if TYPE_CHECKING:
    from octavo.log.producer.deliverer import Deliverer
    from octavo.log.producer.encoder import Parcel
    from octavo.log.producer.packer import Packer


class Sender:
    """Makes batches of what waits, and appends them."""

    def __init__(
        self,
        config: ProducerConfig,
        make_packer: Callable[[], Packer],
        make_deliverer: Callable[[], Deliverer],
        clock: Clock,
        *,
        check_process: Callable[[], None],
    ) -> None:
        """Packer and deliverer import NumPy, and are made when there is something to send.

        `check_process` raises if this process may not write, because it is a fork of the one that may.
        """
        self.inboxes: Final[dict[str, Inbox]] = {}
        self.on_waiting: Callable[[], object] = lambda: None  # called when records keep waiting
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
        self._callbacks: Final = make_lock()  # guards `_waiting`

    def add(self, inbox: Inbox) -> None:
        """Watch one more inbox. All inboxes share half of the memory; the other half is for batches in the making."""
        self.inboxes[inbox.topic] = inbox
        for each in list(self.inboxes.values()):
            each.set_share(self._buffer_memory // 2 // len(self.inboxes))

    # --------------------------------------------------------------------------------------------------------- futures

    def finish(self, timeout: float | None) -> None:
        """Append all that was sent until now, within `timeout` seconds. Raises `TimeoutError`."""
        self.send(list(self.inboxes.values()), everything=True, timeout=timeout)

    def call_back(self, future: SendFuture, callback: OnDelivery) -> None:
        """Call `callback` with the outcome when `future` is done; at once if it is."""
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
            if called < len(due):  # an exception from outside: the next one who sends calls the others
                with self._callbacks:
                    self._waiting = due[called:] + self._waiting

    # --------------------------------------------------------------------------------------------------------- sending

    def send(
        self, inboxes: Sequence[Inbox], *, everything: bool, in_bulk: bool = False, timeout: float | None = None
    ) -> None:
        """Append what waits in some inboxes; without `everything`, only what fills batches (see `Packer`).

        Raises `TimeoutError` if other threads send for that long, and `WrongProcess`. Futures report what cannot be
        appended.
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
                # Neither check first nor use `suppress`: an exception may come between those and the release.
                try:  # noqa: SIM105
                    self._sending.release()
                except RuntimeError:
                    pass  # it was not taken
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
            inbox.set_idle(True)  # before the check: a sender that comes in between sees it
            if inbox.held or inbox.rows:
                inbox.set_idle(False)
                self.on_waiting()

    def let_go(self) -> None:
        """Let other threads send, even if an exception from outside kept this one from releasing the lock."""
        while self._sending._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks it
            self._sending.release()

    def send_full(self, inbox: Inbox) -> None:
        """Append what fills batches in an inbox that has no more room. Senders wait for it.

        Raises `SendTimedOut` if other threads send for longer than `max.block.ms`.
        """
        try:
            timeout = min(self._max_block_ms / 1000, threading.TIMEOUT_MAX)
            self.send((inbox,), everything=False, in_bulk=True, timeout=timeout)
        except TimeoutError:
            raise SendTimedOut(f"there was no room for records for {self._max_block_ms} ms (max.block.ms)") from None

    def close(self, error: Exception) -> None:
        """Fail everything that has not been appended, and all that comes later, with this error."""
        self._closed = error
        self.drop(error)

    def drop(self, error: Exception) -> None:
        """Fail everything that has not been appended, with this error."""
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
        """Pack what waits in an inbox into the outbox, which is empty."""
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
        """Return everything that waits in an inbox, oldest first."""
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
            inbox.held = items  # no signal is handled between this line and the next: nothing is lost or there twice
            del rows[:count]
        return inbox.held
