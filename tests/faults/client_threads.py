"""Threads of clients that write down what they see: `ClientThreads`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final

from tests.faults.values import Numbers
from tests.history import History

PATIENCE_S: Final = 120


class ClientThreads:
    """The clients of one broker, each in a thread, until the end of a `with`."""

    def __init__(self, address: str) -> None:
        self.history: Final = History()
        self.errors: Final[list[str]] = []  # of clients: what should not happen
        self.address: Final = address
        self.numbers: Final = Numbers()
        self.stop: Final = threading.Event()
        self._done = 0
        self._changed: Final = threading.Condition()
        self._threads: Final[list[threading.Thread]] = []

    def run(self, work: Callable[..., None], *arguments: object) -> None:
        """Have a client do its work until `stop` is set."""

        def guarded() -> None:
            try:
                work(*arguments)
            except Exception as error:  # it would be lost in the thread
                self.errors.append(repr(error))

        thread = threading.Thread(target=guarded, name=work.__name__, daemon=True)
        self._threads.append(thread)
        thread.start()

    def note_done(self) -> None:
        """Note that something was acknowledged."""
        with self._changed:
            self._done += 1
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        """Return when so much more is acknowledged."""
        with self._changed:
            wanted = self._done + count
            done = self._changed.wait_for(lambda: self._done >= wanted or self.errors, PATIENCE_S)
        assert done, "nothing is acknowledged any more"
        assert not self.errors, self.errors

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the clients. The broker has to serve, so that everything can be acknowledged."""
        self.stop.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE_S)
            if thread.is_alive():
                self.errors.append(f"{thread.name} does not end")
