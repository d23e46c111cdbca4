"""Work on many things at once, from several threads: `work_at_once` for syncs, `work_side_by_side` for bytes.

A sync takes as long as the disk takes to write a journal. A file system writes one journal for all syncs that are under
way together. So 32 threads need a small part of the time that one thread needs for the same syncs. What processes
bytes, on the other hand, gains from as many threads as there are cores, if there are enough bytes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")

THREADS: Final = 32  # also the number of files that are open at the same time
WORTH_THREADS: Final = 32 << 20  # bytes that take much longer to process than threads to start
TOO_MANY_OPEN: Final = (errno.EMFILE, errno.ENFILE)  # errors: no file can be opened until one is closed


def work_at_once(work: Callable[[Item], None], items: Sequence[Item], threads: int = THREADS) -> None:
    """Call `work` with every item, from up to so many threads. After an error, what was not begun is left undone.

    Raises the first error, after all threads have ended. Without enough file descriptors or threads, it takes longer.
    """
    if len(items) < 2:
        for item in items:
            work(item)
        return
    workers = _Workers(work, items)
    waiting = [threading.Thread(target=workers.run) for _ in items[1:threads]]
    started: list[threading.Thread] = []
    try:
        with contextlib.suppress(RuntimeError):  # no more threads can be had: those that started are enough
            for thread in waiting:
                thread.start()
                started.append(thread)
        workers.run()
    finally:
        workers.todo.clear()  # if an exception from outside comes, the threads are to end, too
        for thread in started:
            thread.join()
    if workers.errors:
        raise workers.errors[0]
    for item in workers.unopened:
        work(item)


def work_side_by_side(work: Callable[[Item], None], items: Sequence[Item], size: int) -> None:
    """Call `work` with every item, from a thread for each core if there are `size` bytes to process and that is much.

    Otherwise the items are processed in their order. Raises the first error.
    """
    if size >= WORTH_THREADS:
        work_at_once(work, items, os.cpu_count() or 1)
    else:
        for item in items:
            work(item)


class _Workers(Generic[Item]):
    """What the threads share."""

    def __init__(self, work: Callable[[Item], None], items: Sequence[Item]) -> None:
        self.todo: Final = deque(items)
        self.unopened: Final[list[Item]] = []  # items that wait until the threads have closed their files
        self.errors: Final[list[BaseException]] = []
        self._work = work

    def run(self) -> None:
        """Take items until none is left."""
        while True:
            try:
                item = self.todo.popleft()
            except IndexError:
                return
            try:
                self._work(item)
            except OSError as error:
                if error.errno in TOO_MANY_OPEN:
                    self.unopened.append(item)
                else:
                    self._fail(error)
            except BaseException as error:
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.errors.append(error)
        self.todo.clear()
