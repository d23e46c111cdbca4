"""Serve a data directory to Kafka clients: `serve`."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from octavo.broker.answers import Work
from octavo.broker.broker import Broker
from octavo.broker.config import METADATA_DIR, Settings, read_node_id, read_settings
from octavo.broker.listeners import ALL_INTERFACES, Address, read_addresses
from octavo.broker.wire.api_keys import API_VERSIONS, METADATA
from octavo.broker.wire.messages import is_flexible
from octavo.log.append.readiness import prepare
from octavo.log.background import Background
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.recovery_report import OnProgress, tell_found
from octavo.server.acceptor import Listener, overrides_by_address
from octavo.server.folders import check_metadata, named_folders
from octavo.server.reactor import Reactor, run_in_thread
from octavo.server.statistics import ServerStatistics
from octavo.server.stderr import to_stderr

_WORKERS: Final = 2  # threads for each kind of work
_WORKER: Final = "octavo-worker"
_CHECKPOINT_INTERVAL_MS: Final = 400  # so that a reader of the directory lags less than a second


class Server:
    """A running broker. `close` stops it; so does the end of a `with`."""

    def __init__(
        self,
        directory: DataDirectory,
        listeners: Sequence[Listener],
        settings: Settings,
        *,
        say: Callable[[str], object] | None = None,
        temporary: Path | None = None,
    ) -> None:
        """Do not call this; use `serve`."""
        config = settings.config
        self.directory: Final = directory
        self.warnings: Final = settings.warnings  # of settings that have no effect
        self._temporary: Final = temporary
        self._listeners: Final = listeners
        self._workers: Final = {
            kind: ThreadPoolExecutor(_WORKERS, thread_name_prefix=f"{_WORKER}-{kind.value}") for kind in Work
        }
        self.broker: Final = Broker(directory, config, say=say or to_stderr, properties=settings.properties)
        for sentence in tell_found(directory.reports, directory.ignored):
            self.broker.say(sentence)
        self._reactor: Final = Reactor(self.broker, self._listeners, self._workers)
        self._background: Final = Background(
            directory,
            retention_check_interval_ms=config.log_retention_check_interval_ms,
            initial_delay_ms=config.log_initial_task_delay_ms,
            checkpoint_interval_ms=_CHECKPOINT_INTERVAL_MS,
            checkpoint_delay_ms=0,
            compaction=config.log_cleaner_enable,
            map_memory=self.broker.config.log_cleaner_dedupe_buffer_size,
            compaction_backoff_ms=self.broker.config.log_cleaner_backoff_ms,
            on_failure=self.broker.say,
        )
        self._background.start()
        self._thread: Final[threading.Thread] = run_in_thread(self._reactor)
        self._workers[Work.APPEND].submit(_load)
        self._workers[Work.COORDINATE].submit(self.broker.coordinators.load)
        self._closing: Final = threading.RLock()  # held by the one who closes
        self._is_closed = False

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the broker, as clients want them."""
        return ",".join(f"{_bracketed(host)}:{port}" for host, port in (each.advertised for each in self._listeners))

    @property
    def is_serving(self) -> bool:
        """Whether requests are answered. If not, the server was closed, or has failed again and again."""
        return self._thread.is_alive()

    def statistics(self) -> ServerStatistics:
        """Return the number of connections and of waiting requests, and the longest pauses since the last call."""
        return self._reactor.statistics()

    def close(self) -> None:
        """Stop serving, and close the directory, with the mark of a clean shutdown.

        Requests that are being worked on are answered, if that does not take long; those that still wait for a thread
        then are dropped. Fetches that wait for records are not answered, as in Kafka: their connections are closed. In
        a fork of the process that serves, the server goes on. If this is interrupted, call it again; if another thread
        is at it, this waits for it.
        """
        if self.directory.is_elsewhere:
            self.directory.close()
        elif threading.current_thread() is self._thread or threading.current_thread().name.startswith(_WORKER):
            threading.Thread(target=self.close, name="octavo-closing").start()  # a thread cannot wait for its own end
        else:
            with self._closing:
                if not self._is_closed:
                    self._close()
                    self._is_closed = True

    def _close(self) -> None:
        """Stop and close everything. If this is interrupted, it can be called again."""
        self._reactor.stop()
        self._thread.join()
        for workers in self._workers.values():
            workers.shutdown(cancel_futures=True)
        self._background.stop_soon()
        try:
            self.directory.close()
        finally:
            self._background.stop()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _load() -> None:
    """Import what the first requests need, while the broker already listens."""
    for api_key in (API_VERSIONS, METADATA):
        is_flexible(api_key, 0)
    prepare()


def serve(
    data: str | os.PathLike[str] | None = None,
    *,
    listen: str | None = None,
    config: Mapping[str, str] | None = None,
    say: Callable[[str], object] | None = None,
    on_progress: OnProgress | None = None,
) -> Server:
    """Serve a data directory to Kafka clients, in threads of this process.

    data: the directory; without one, `log.dirs` of the configuration, or a temporary directory that is removed again
    listen: `HOST:PORT`; without it, `listeners` of the configuration, or a free port of the loopback interface.
        `Server.bootstrap_servers` tells which
    config: settings by the names that Kafka has for them (`server.properties`)
    say: called with a sentence when something happens that an operator has to know; without it, that goes to stderr
    on_progress: called with the progress of checking a partition, after an unclean shutdown. What it raises ends the
        start

    Raises `InvalidConfig` and `InvalidInput`, what `DataDirectory.open` raises, and `OSError` if the address cannot be
    used.
    """
    settings = read_settings({} if config is None else config)
    overrides_by_address(settings.config)
    addresses, warnings = read_addresses(listen, settings.properties)
    settings.warnings.extend(warnings)
    node_id = read_node_id(settings.properties)
    folders, temporary = _folders(data, settings)
    check_metadata(folders)
    # Listen first: opening a directory after a crash may take long, and clients that come meanwhile wait their turn.
    listeners: list[Listener] = []
    try:
        listeners += _listen(addresses, settings.config.socket_listen_backlog_size)
        # Without settings the directory knows best; with them they are those of a broker.
        directory = DataDirectory.open(
            folders, broker_config=settings.properties or None, node_id=node_id, on_progress=on_progress
        )
        try:
            return Server(directory, listeners, settings, say=say, temporary=temporary)
        except BaseException:
            directory.close()
            raise
    except BaseException:
        for listener in listeners:
            listener.socket.close()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _folders(data: str | os.PathLike[str] | None, settings: Settings) -> tuple[list[Path], Path | None]:
    """Return the folders to serve, and the one that is temporary."""
    if data is not None:
        if METADATA_DIR in settings.properties:
            settings.warnings.append(f"{METADATA_DIR} has no effect: the directory is given")
        return [Path(data)], None
    named = named_folders(settings.properties)
    if named:
        return named, None
    temporary = Path(tempfile.mkdtemp(prefix="octavo-"))
    return [temporary / "data"], temporary


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(addresses: Sequence[Address], backlog: int) -> list[Listener]:
    listeners: list[Listener] = []
    try:
        for host, port, advertised in addresses:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                is_dual = host == "::" and socket.has_dualstack_ipv6()  # all interfaces, as Java takes it
                listening = socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=is_dual)
            except OSError as error:
                why = (error.strerror or str(error)).partition(" (while")[0]
                raise OSError(f"cannot listen at {_bracketed(host)}:{port}: {why}") from error
            listening.setblocking(False)
            # Clients come back to what they are told, and nobody can connect to all interfaces.
            told, told_port = advertised or (host, listening.getsockname()[1])
            if told is None or told in ALL_INTERFACES:
                told = socket.gethostname()
            listeners.append(Listener(listening, (told, told_port)))
    except BaseException:
        for listener in listeners:
            listener.socket.close()
        raise
    return listeners
