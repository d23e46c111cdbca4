"""Serve a data directory to Kafka clients: `serve`."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from octavo.broker.broker import Broker
from octavo.broker.config import BrokerConfig
from octavo.log.background import Background
from octavo.log.directory.data_directory import DataDirectory
from octavo.server.reactor import Listener, Reactor, run_in_thread

LOOPBACK: Final = "127.0.0.1"
_WORKERS: Final = 2
_BACKLOG: Final = 50
_CHECKPOINT_INTERVAL_MS: Final = 400
_BACKGROUND_INTERVAL_S: Final = 0.2


class Server:
    """A running broker. `close` stops it; so does the end of a `with`."""

    def __init__(
        self,
        directory: DataDirectory,
        *,
        listen: Sequence[tuple[str, int]],
        config: BrokerConfig,
        temporary: Path | None = None,
    ) -> None:
        self.directory: Final = directory
        self._temporary: Final = temporary
        self._workers: Final = ThreadPoolExecutor(_WORKERS, thread_name_prefix="octavo-worker")
        self._listeners: Final = [_listen(host, port) for host, port in listen]
        self.broker: Final = Broker(directory, config)
        self._reactor: Final = Reactor(self.broker, self._listeners, self._workers)
        self._background: Final = Background(directory, checkpoint_interval_ms=_CHECKPOINT_INTERVAL_MS)
        self._background.start(_BACKGROUND_INTERVAL_S)
        self._thread: Final[threading.Thread] = run_in_thread(self._reactor)
        self._is_closed = False

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the broker, as clients want them."""
        return ",".join(f"{host}:{port}" for host, port in (each.advertised for each in self._listeners))

    def close(self) -> None:
        """Stop serving, and close the directory, with the mark of a clean shutdown."""
        if self._is_closed:
            return
        self._is_closed = True
        self._reactor.stop()
        self._thread.join()
        self._workers.shutdown()
        self._background.stop()
        try:
            self.directory.close()
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve(
    data: str | os.PathLike[str] | None = None,
    *,
    host: str = LOOPBACK,
    port: int = 0,
    config: BrokerConfig | None = None,
) -> Server:
    """Serve a data directory to Kafka clients, in threads of this process.

    data: the directory; without one, a temporary directory that is removed in the end
    port: 0 for any that is free; `Server.bootstrap_servers` tells which

    Raises what `DataDirectory.open` raises, and `OSError` if the address cannot be used.
    """
    temporary = Path(tempfile.mkdtemp(prefix="octavo-")) if data is None else None
    directory = DataDirectory.open(Path(data) if data is not None else temporary / "data")  # type: ignore[operator] # one of the two is there
    try:
        return Server(directory, listen=[(host, port)], config=config or BrokerConfig(), temporary=temporary)
    except BaseException:
        directory.close()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _listen(host: str, port: int) -> Listener:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    return Listener(listening, (host, listening.getsockname()[1]))
