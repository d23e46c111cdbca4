"""Threads that write to the disk while appends go on: `Flusher`.

A process has one flusher for all its logs. Its threads start when there is work, and end when there has been none for a
while. They are daemons: what they have not done when the process ends is still in the page cache, like after a crash
of the process. A forked child has none of its parent's threads and work, and starts its own when it needs them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

Task = Callable[[], object]

_MOST_THREADS: Final = 4  # one for each disk is enough: a log is flushed by one thread at a time
_IDLE_S: Final = 60.0  # to start a thread takes longer than to wake it


class Flusher:
    """Runs tasks in background threads. A task must not raise."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        # Re-entrant, for signal handlers. It is entered itself, and not the condition: that does so in Python, where an
        # interrupt could come between the lock and the block, and nobody would ever release it.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._tasks: dict[Task, None] = {}  # in order, each once
        self._threads: list[threading.Thread] = []
        self._idle = 0  # number of threads that wait for a task

    def run_soon(self, task: Task) -> None:
        """Run the task in a thread, unless it is waiting for one already. If no thread can be started, run it here."""
        with self._lock:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            self._idle = min(self._idle, len(self._threads))  # one that an exception has ended waits no longer
            if task in self._tasks and self._threads:  # if there is no thread, an exception kept it from being started
                return
            self._tasks[task] = None
            self._changed.notify()
            if self._idle >= len(self._tasks) or len(self._threads) >= _MOST_THREADS:
                return
            thread = threading.Thread(target=self._run, name="octavo-flusher", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # there are too many threads, or the interpreter is about to exit
                if self._threads:
                    return
                del self._tasks[task]
            else:
                self._threads.append(thread)
                return
        task()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            task()
            del task  # it holds a log, which may be closed before the next task comes

    def _next(self) -> Task | None:
        """Wait for a task; None if none has come for a while."""
        with self._lock:
            self._idle += 1
            self._changed.wait_for(lambda: self._tasks, timeout=_IDLE_S)
            self._idle -= 1
            if not self._tasks:
                ending = threading.current_thread()
                self._threads = [thread for thread in self._threads if thread is not ending]
                return None
            task = next(iter(self._tasks))
            del self._tasks[task]
            return task


FLUSHER: Final = Flusher()
