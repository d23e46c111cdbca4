"""Work that several threads do at once: all of it is done, or the first error is raised and the threads are gone."""

from __future__ import annotations

import errno
import os
import threading
from typing import NoReturn

import pytest

from octavo.log.at_once import THREADS, work_at_once


@pytest.mark.parametrize("count", [0, 1, 2, THREADS, 1_000])
def test_everything_is_done_once(count: int) -> None:
    done: list[int] = []
    work_at_once(done.append, range(count))
    assert sorted(done) == list(range(count))


def test_several_items_are_under_way_together() -> None:
    together = threading.Barrier(THREADS, timeout=60)

    def meet(_: int) -> None:
        together.wait()

    work_at_once(meet, range(THREADS))
    assert not together.broken


def test_the_first_error_is_raised_and_what_was_not_begun_is_left() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = threading.active_count()
    with pytest.raises(OSError, match="No space left"):
        work_at_once(work, range(1_000))
    assert len(begun) <= THREADS
    assert threading.active_count() == before


def test_what_has_no_file_descriptor_is_done_when_the_others_have_closed_theirs() -> None:
    main = threading.current_thread()
    others_end = threading.Event()
    done: list[int] = []

    def work(item: int) -> None:
        if not others_end.is_set() and item % 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        done.append(item)

    def last(item: int) -> None:
        if threading.current_thread() is main and threading.active_count() == before:
            others_end.set()
        work(item)

    before = threading.active_count()
    work_at_once(last, range(100))
    assert sorted(done) == list(range(100))


def test_without_a_descriptor_for_one_thread_alone_the_error_is_raised() -> None:
    def work(item: int) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with pytest.raises(OSError, match="Too many open files"):
        work_at_once(work, range(3))


def test_without_threads_it_is_done_by_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    done: list[int] = []
    work_at_once(done.append, range(5))
    assert done == list(range(5))


@pytest.mark.parametrize("where", ["caller", "thread"])
def test_an_exception_from_outside_ends_the_work(where: str) -> None:
    main = threading.current_thread()
    comes = threading.Event()

    def work(item: int) -> None:
        if (threading.current_thread() is main) is (where == "caller"):
            comes.set()
            raise KeyboardInterrupt
        assert comes.wait(60)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        work_at_once(work, range(1_000))
    assert threading.active_count() == before
