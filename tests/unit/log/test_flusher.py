"""The threads that flush: each task once, none left over, and others in a forked child."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from octavo.log import flusher
from octavo.log.flusher import Flusher
from tests.unit.log.waiting import until


def test_a_task_runs_in_another_thread() -> None:
    ran: list[threading.Thread] = []
    Flusher().run_soon(lambda: ran.append(threading.current_thread()))
    until(lambda: bool(ran))
    assert ran[0] is not threading.current_thread()
    assert ran[0].daemon


def test_a_task_that_waits_already_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "_MOST_THREADS", 1)
    threads, go_on, is_over = Flusher(), threading.Event(), threading.Event()
    ran = []

    def task() -> None:
        ran.append(1)

    threads.run_soon(go_on.wait)
    for _ in range(3):
        threads.run_soon(task)
    threads.run_soon(is_over.set)
    go_on.set()
    until(is_over.is_set)
    assert ran == [1]


def test_one_slow_disk_does_not_stop_the_others() -> None:
    threads, slow, done = Flusher(), threading.Event(), threading.Event()
    threads.run_soon(slow.wait)
    threads.run_soon(done.set)
    until(done.is_set)
    slow.set()


def test_threads_end_when_there_is_nothing_to_do_and_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "_IDLE_S", 0.01)
    threads = Flusher()
    ran: list[threading.Thread] = []
    for _ in range(2):
        ran.clear()
        threads.run_soon(lambda: ran.append(threading.current_thread()))
        until(lambda: bool(ran) and not ran[0].is_alive())


def test_without_a_thread_the_task_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    ran = []
    Flusher().run_soon(lambda: ran.append(threading.current_thread()))
    assert ran == [threading.current_thread()]


def test_a_forked_child_has_threads_of_its_own() -> None:
    threads, done = Flusher(), threading.Event()
    threads.run_soon(done.set)
    until(done.is_set)
    child = os.fork()
    if child == 0:
        in_child = threading.Event()
        threads.run_soon(in_child.set)
        os._exit(0 if in_child.wait(60) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_interrupt_leaves_the_lock_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "_IDLE_S", 0)
    number, is_interrupted = 0, True
    while is_interrupted:
        threads = Flusher()
        gc.disable()  # what other libraries do when garbage is collected would be interrupted, too
        try:
            is_interrupted = _interrupt(partial(threads.run_soon, int), number)
        finally:
            gc.enable()
        taken: list[bool] = []
        other = threading.Thread(target=lambda: taken.append(threads._lock.acquire(timeout=60)))  # noqa: B023 - it ends
        other.start()
        other.join()
        assert taken == [True], number
        number += 1
    assert number > 10


def _interrupt(call: Callable[[], object], number: int) -> bool:
    """Raise an exception as the function of this number begins or ends, while something is called.

    Returns whether it came that far. Signals come there, and not at the line that ends a `with`.
    """
    left = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        left -= event in ("call", "return")
        if left < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_a_thread_that_an_exception_ended_while_it_waited_is_not_waited_for() -> None:
    flusher = Flusher()
    flusher._idle = 1  # as that thread left it
    done = threading.Event()
    flusher.run_soon(done.set)
    assert done.wait(60)
