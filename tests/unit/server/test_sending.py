"""A part of a file goes through a socket, by the kernel or by reading and writing: with the same outcome."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from octavo.log.storage import DISK, File
from octavo.server.sending import copy_to_socket, send_file

CONTENT = bytes(range(251)) * 4000  # a megabyte
Send = Callable[[int, int, int, int], int]


@pytest.fixture(params=[send_file, copy_to_socket])
def send(request: pytest.FixtureRequest) -> Send:
    way: Send = request.param
    return way


@pytest.fixture
def file(tmp_path: Path) -> File:
    (tmp_path / "file").write_bytes(CONTENT)
    return DISK.open(tmp_path / "file")


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def _receive(from_: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        parts.append(from_.recv(size))
        assert parts[-1]
        size -= len(parts[-1])
    return b"".join(parts)


def test_a_part_is_sent(send: Send, file: File, sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets
    assert send(ours.fileno(), file.descriptor, 1000, 5000) == 5000
    assert _receive(theirs, 5000) == CONTENT[1000:6000]


def test_at_the_end_less_is_sent_and_then_nothing(
    send: Send, file: File, sockets: tuple[socket.socket, socket.socket]
) -> None:
    ours, _ = sockets
    assert send(ours.fileno(), file.descriptor, len(CONTENT) - 5, 10) == 5
    assert send(ours.fileno(), file.descriptor, len(CONTENT), 10) == 0


def test_a_socket_takes_what_it_has_room_for_and_nothing_is_sent_twice(
    send: Send, file: File, sockets: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = sockets
    position, was_full = 0, 0
    with ThreadPoolExecutor(1) as other:
        while position < len(CONTENT):
            try:
                position += send(ours.fileno(), file.descriptor, position, len(CONTENT) - position)
            except BlockingIOError:
                was_full += 1
                if was_full == 1:
                    received = other.submit(_receive, theirs, len(CONTENT))
                select.select([], [ours], [])
        assert was_full
        assert received.result() == CONTENT


def test_who_is_gone_is_an_error(send: Send, file: File, sockets: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = sockets
    theirs.close()
    with pytest.raises(ConnectionError):
        send(ours.fileno(), file.descriptor, 0, 10)
