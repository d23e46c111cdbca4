"""The thread that repeats heartbeats while the reactor's thread is held up by a slow disk: `Heartbeats`."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

from octavo.broker.member.member import monotonic_ms
from octavo.broker.member.pulse import Beat, Pulse
from octavo.broker.wire.api_keys import BROKER_HEARTBEAT
from octavo.errors import MalformedRequest
from octavo.server.peer import PeerConnection

_LOOK_S: Final = 0.5
_PATIENCE_S: Final = 2.0  # with a controller
_LARGEST_ANSWER: Final = 1 << 20


class Heartbeats:
    """Looks now and then whether a heartbeat has to be repeated."""

    def __init__(self, pulse: Pulse, node_id: int) -> None:
        """Start the thread."""
        self._pulse: Final = pulse
        self._client_id: Final = str(node_id)
        self._is_over: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._run, name="octavo-heartbeats", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread. If this is interrupted, it can be called again."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            with contextlib.suppress(OSError, MalformedRequest):  # then the next one is tried
                self._pulse.repeat(monotonic_ms(), self._send)

    def _send(self, beat: Beat) -> None:
        connection = PeerConnection(beat.endpoint, "heartbeats", _LARGEST_ANSWER)
        connection.socket = socket.create_connection(beat.endpoint, _PATIENCE_S)
        try:
            asked = connection.add(
                BROKER_HEARTBEAT, beat.version, self._client_id, [beat.body], lambda _: None, lambda _: None
            )
            connection.send()
            while not asked.is_over and connection.receive():
                connection.take_answers()
        finally:
            connection.close()
