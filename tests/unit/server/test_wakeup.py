"""What ends the wait of a reactor: an eventfd, or a pair of sockets."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from octavo.server.poller import READ, Poller, make_poller
from octavo.server.wakeup import SocketWakeup, Wakeup, make_wakeup

PATIENCE_S = 60


@pytest.fixture
def poller() -> Iterator[Poller]:
    made = make_poller()
    yield made
    made.close()


@pytest.fixture(params=[make_wakeup, SocketWakeup])
def wakeup(request: pytest.FixtureRequest) -> Iterator[Wakeup]:
    make: Callable[[], Wakeup] = request.param
    made = make()
    yield made
    if made.descriptor >= 0:
        made.close()


def test_one_call_of_many_wakes_and_is_over_once_it_is_cleared(wakeup: Wakeup, poller: Poller) -> None:
    poller.register(wakeup.descriptor, READ)
    wakeup.clear()
    assert poller.poll(0) == []
    for _ in range(2):
        threads = [threading.Thread(target=wakeup.wake) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert poller.poll(PATIENCE_S) == [(wakeup.descriptor, READ)]
        wakeup.clear()
        assert poller.poll(0) == []


def test_so_many_calls_that_no_more_fits(poller: Poller) -> None:
    wakeup = SocketWakeup()
    wakeup._writing.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the smallest there is
    poller.register(wakeup.descriptor, READ)
    for _ in range(20_000):
        wakeup.wake()
    assert poller.poll(PATIENCE_S) == [(wakeup.descriptor, READ)]
    wakeup.clear()
    assert poller.poll(0) == []
    wakeup.wake()
    assert poller.poll(PATIENCE_S) == [(wakeup.descriptor, READ)]
    wakeup.close()


def test_to_wake_who_is_gone_does_nothing(wakeup: Wakeup) -> None:
    """The number of its descriptor may be that of another file by then, which must not be written to."""
    before = wakeup.descriptor
    wakeup.close()
    assert wakeup.descriptor == -1
    reading, writing = os.pipe()
    try:
        if before not in (reading, writing):
            os.dup2(writing, before)
        wakeup.wake()
        os.set_blocking(reading, False)
        with pytest.raises(BlockingIOError):
            os.read(reading, 1)
    finally:
        for descriptor in {reading, writing, before}:
            os.close(descriptor)
