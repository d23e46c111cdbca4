"""Ports for servers that are started later, or again: `free_port`, `free_ports`."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from random import SystemRandom
from typing import Final

_PORTS: Final = range(15_000, 32_000)  # the kernel gives none of these to a client, nor to whoever asks for any port


def free_port() -> int:
    """Return a port of loopback that nobody uses."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return different ports of loopback that nobody uses."""
    found: list[int] = []
    with ExitStack() as held:
        for port in SystemRandom().sample(_PORTS, 100):
            try:
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise AssertionError("there are no free ports")
