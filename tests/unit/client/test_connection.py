"""A connection to whoever answers at the address of a broker."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Final

import pytest

from octavo.broker.wire.frames import SIZE
from octavo.client.connection import BrokerConnection
from octavo.errors import BrokerUnreachable

_ANNOUNCED: Final = 1 << 20
_PATIENCE_S: Final = 0.2


@pytest.fixture
def dripping() -> Iterator[int]:
    """The port of one who announces a long answer, and sends a byte of it long before anybody loses patience."""
    over = threading.Event()

    def drip(listening: socket.socket) -> None:
        peer, _ = listening.accept()
        with peer, contextlib.suppress(OSError):  # it is hung up on
            peer.sendall(SIZE.pack(_ANNOUNCED))
            while not over.wait(_PATIENCE_S / 10):
                peer.sendall(b"\0")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,))
        thread.start()
        yield listening.getsockname()[1]
        over.set()
        thread.join()


def test_an_answer_that_comes_byte_by_byte_is_not_awaited_for_ever(dripping: int) -> None:
    with pytest.raises(BrokerUnreachable, match="timed out"):
        BrokerConnection("127.0.0.1", dripping, patience_s=_PATIENCE_S)


def test_an_answer_is_no_larger_than_is_allowed(dripping: int) -> None:
    with pytest.raises(BrokerUnreachable, match=f"an answer cannot have {_ANNOUNCED} bytes: it is no Kafka broker"):
        BrokerConnection("127.0.0.1", dripping, largest_answer=_ANNOUNCED - 1)
