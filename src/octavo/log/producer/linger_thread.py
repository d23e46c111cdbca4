"""Appends waiting records after `linger.ms`: `Linger`, and a thread that watches the clock for it."""

from __future__ import annotations

import threading
from typing import Final

from octavo.log.clock import Clock
from octavo.log.producer.inbox import Inbox
from octavo.log.producer.sender import Sender

_LOOK_AFTER_MS: Final = 10  # full batches are looked for and appended at least this often, however long `linger.ms` is


class Linger:
    """Appends records that have waited for `linger.ms`, each time `run_once` is called."""

    def __init__(self, sender: Sender, linger_ms: int, clock: Clock) -> None:
        self._sender: Final = sender
        self._linger_ms: Final = linger_ms
        self._look_after_ms: Final = min(linger_ms, _LOOK_AFTER_MS)
        self._clock: Final = clock

    def run_once(self) -> int | None:
        """Append records that are due. Return the milliseconds until more are due; None if none wait."""
        now_ms = self._clock()
        waits: list[int] = []
        for inbox in list(self._sender.inboxes.values()):
            due_ms = self._due_ms(inbox)
            if due_ms is not None and due_ms <= now_ms:
                oldest_ms = inbox.held_since_ms if inbox.held else inbox.since_ms
                self._sender.send((inbox,), everything=oldest_ms + self._linger_ms <= now_ms)
                due_ms = self._due_ms(inbox)
            if due_ms is not None:
                waits.append(max(0, due_ms - now_ms))
        return min(waits, default=None)

    def _due_ms(self, inbox: Inbox) -> int | None:
        """The time at which an inbox has to be looked at next; None if it is empty."""
        times = []
        if inbox.held:
            times.append(inbox.held_since_ms + self._linger_ms)
        if inbox.rows:
            times.append(inbox.since_ms + self._look_after_ms)
        return min(times, default=None)


class LingerThread:
    """Thread that calls `Linger.run_once` whenever something is due."""

    def __init__(self, linger: Linger, name: str) -> None:
        self._linger: Final = linger
        self._event: Final = threading.Event()
        self._sleeps = False  # whether it sleeps until woken
        self._is_over = False
        self._thread: Final = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread, because records wait."""
        if self._sleeps:
            self._event.set()

    def stop(self) -> None:
        """Stop the thread, and wait for its end."""
        self._is_over = True
        self._event.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over:
            wait_ms = self._linger.run_once()
            if wait_ms is None:
                self._sleeps = True
                wait_ms = self._linger.run_once()  # a `send` before the line above did not wake the thread
            self._event.wait(None if wait_ms is None else min(wait_ms / 1000, threading.TIMEOUT_MAX))
            self._sleeps = False
            if not self._is_over:
                self._event.clear()
