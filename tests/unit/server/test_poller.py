"""What waits for sockets: epoll and the standard library's selectors behave alike, as far as a reactor can tell."""

from __future__ import annotations

import select
import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest

from octavo.server.poller import BROKEN, READ, WRITE, Poller, SelectorsPoller, make_poller

PATIENCE_S = 60


class Way(NamedTuple):
    poller: Poller
    read: int
    write: int


@pytest.fixture(params=["of this system", "of the standard library"])
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    if request.param == "of this system":
        made = Way(make_poller(), READ, WRITE)
    else:
        made = Way(SelectorsPoller(), selectors.EVENT_READ, selectors.EVENT_WRITE)
    yield made
    made.poller.close()


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_it_tells_what_is_watched_and_no_more(way: Way, sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets
    number = ours.fileno()
    way.poller.register(number, way.read)
    assert way.poller.poll(0) == []
    theirs.send(b"!")
    assert way.poller.poll(PATIENCE_S) == [(number, way.read)]
    way.poller.modify(number, way.write)
    assert way.poller.poll(PATIENCE_S) == [(number, way.write)]
    way.poller.modify(number, way.read | way.write)
    assert way.poller.poll(PATIENCE_S) == [(number, way.read | way.write)]


def test_nothing_may_be_watched_for_a_while(way: Way, sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets
    number = ours.fileno()
    theirs.send(b"!")
    way.poller.register(number, 0)
    assert way.poller.poll(0) == []
    for _ in range(2):
        way.poller.modify(number, way.read)
        assert way.poller.poll(PATIENCE_S) == [(number, way.read)]
        for _ in range(2):
            way.poller.modify(number, 0)
            assert way.poller.poll(0) == []
    way.poller.unregister(number)
    way.poller.register(number, way.read)
    assert way.poller.poll(PATIENCE_S) == [(number, way.read)]


def test_who_is_gone_is_told_to_who_reads_and_to_who_writes(
    way: Way, sockets: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = sockets
    number = ours.fileno()
    way.poller.register(number, way.read)
    theirs.close()
    [(told, event)] = way.poller.poll(PATIENCE_S)
    assert told == number
    assert event & way.read
    way.poller.modify(number, way.write)
    [(told, event)] = way.poller.poll(PATIENCE_S)
    assert told == number
    assert event & way.write


def test_a_number_can_be_used_again_once_it_is_no_more_watched(
    way: Way, sockets: tuple[socket.socket, socket.socket]
) -> None:
    ours, _ = sockets
    number = ours.fileno()
    way.poller.register(number, way.read)
    way.poller.unregister(number)
    with suppress(OSError):  # epoll complains
        way.poller.unregister(number)
    way.poller.register(number, way.write)
    assert way.poller.poll(PATIENCE_S) == [(number, way.write)]


def test_what_is_told_in_pieces_is_put_together(
    monkeypatch: pytest.MonkeyPatch, sockets: tuple[socket.socket, socket.socket]
) -> None:
    """Kqueue tells of reading and of writing apart. The second would come for a connection that is closed by then."""

    class Pieces(selectors.SelectSelector):
        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            found = super().select(timeout)
            return [(key, event & each) for each in (1, 2) for key, event in found if event & each]

    monkeypatch.setattr(selectors, "DefaultSelector", Pieces)
    ours, theirs = sockets
    theirs.send(b"!")
    poller = SelectorsPoller()
    poller.register(ours.fileno(), selectors.EVENT_READ | selectors.EVENT_WRITE)
    assert poller.poll(PATIENCE_S) == [(ours.fileno(), selectors.EVENT_READ | selectors.EVENT_WRITE)]
    poller.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has epoll")
def test_linux_has_its_own() -> None:
    made: Any = make_poller()
    assert type(made) is select.epoll
    made.close()
    assert READ | WRITE | BROKEN == select.EPOLLIN | select.EPOLLOUT | select.EPOLLERR | select.EPOLLHUP
