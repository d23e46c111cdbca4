"""Serve a data directory to Kafka clients: `serve`."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from octavo.broker.answers import Work
from octavo.broker.broker import Broker
from octavo.broker.config import METADATA_DIR, Settings, read_node_id, read_settings
from octavo.broker.listeners import ALL_INTERFACES, Address, read_addresses
from octavo.broker.wire.api_keys import API_VERSIONS, METADATA
from octavo.broker.wire.messages import declaration
from octavo.errors import CannotJoin, InvalidConfig, InvalidInput
from octavo.log.append.readiness import prepare
from octavo.log.background import Background
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.names import TopicPartition
from octavo.log.recovery.recover import Recover
from octavo.log.recovery_report import OnProgress, tell_found
from octavo.server.acceptor import Listener, overrides_by_address
from octavo.server.folders import check_metadata, named_folders, tell_adopted, tell_strangers
from octavo.server.kept import tell_kept, tell_remote
from octavo.server.reactor import Reactor, run_in_thread
from octavo.server.statistics import ServerStatistics
from octavo.server.stderr import to_stderr

_WORKERS: Final = 2  # threads for each kind of work
_WORKER: Final = "octavo-worker"
_LOOK_S: Final = 0.1

T = TypeVar("T")


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
        adopted: Sequence[TopicPartition] = (),
    ) -> None:
        """Do not call this; use `serve`."""
        config = settings.config
        self.directory: Final = directory
        self.warnings: Final = settings.warnings  # of settings that have no effect
        self._temporary: Final = temporary
        self._listeners: Final = listeners
        self._workers: Final = {
            kind: _Workers(self._tell_failure, _WORKERS, thread_name_prefix=f"{_WORKER}-{kind.value}") for kind in Work
        }
        self._say: Final = say or to_stderr
        self.broker: Final = Broker(
            directory,
            config,
            say=self._say,
            properties={**settings.properties, **directory.assumed_settings},
            is_member=settings.member is not None,
        )
        for sentence in (*settings.warnings, *tell_found(directory.reports, directory.ignored)):
            self.broker.say(sentence)
        self._reactor: Final = Reactor(self.broker, self._listeners, self._workers)
        _import_for_first_requests()
        self._background: Final = Background(
            directory,
            retention_check_interval_ms=config.log_retention_check_interval_ms,
            initial_delay_ms=config.log_initial_task_delay_ms,
            checkpoint_interval_ms=config.replica_high_watermark_checkpoint_interval_ms,
            checkpoint_delay_ms=0,
            compaction=config.log_cleaner_enable,
            map_memory=self.broker.config.log_cleaner_dedupe_buffer_size,
            compaction_backoff_ms=self.broker.config.log_cleaner_backoff_ms,
            on_failure=self.broker.say,
        )
        self._heartbeats: Heartbeats | None = None
        self._has_joined: Final = threading.Event()  # a member may serve, or has failed to
        if settings.member is None:
            self._tell(tell_adopted(adopted))
            self._tell(tell_strangers(directory.strangers()))
            self._tell_kept()
            self._tell(tell_remote(directory.remote_parts()))
            self._background.start()
            self._reactor.accept()
        else:
            from octavo.server.heartbeats import Heartbeats
            from octavo.server.joining import make_member

            self.broker.member = make_member(
                self.broker,
                settings.member,
                settings.properties,
                listeners,
                self._reactor,
                self._workers,
                self._begin_work,  # not before: by old settings, it could delete what is to be kept
                self._has_joined.set,
            )
            self._heartbeats = Heartbeats(self.broker.member.pulse, self.broker.node_id)
        self._thread: Final[threading.Thread] = run_in_thread(self._reactor)
        self._workers[Work.APPEND].submit(prepare)  # which takes a moment, and which only appends need
        if settings.member is None:
            self._workers[Work.COORDINATE].submit(self.broker.coordinators.load)
        self.waits_for = ""  # what `close` is waiting for, as a phrase
        self.is_leaving = False  # that is for other brokers, and ends in its own time
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

    def wait_until_joined(self, on_wait: Callable[[str], object] | None) -> None:
        """Wait until the broker is a member of its cluster and may serve. Raises `CannotJoin`.

        on_wait: is told now and then what is waited for. What it raises ends this
        """
        member = self.broker.member
        while member is not None and not self._has_joined.wait(_LOOK_S):
            if on_wait is not None:
                on_wait(member.waits_for)
        if member is not None and member.failure is not None:
            raise CannotJoin(member.failure)

    def hurry(self) -> None:
        """Have `close` wait no longer until other brokers lead the partitions of this one. Any thread may call this."""
        member = self.broker.member
        if member is not None:
            self._reactor.call(member.leave_at_once)

    def _tell_failure(self, error: Exception) -> None:
        self.broker.notices.say("work", f"something that was left to another thread failed: {error!r}")

    def _begin_work(self) -> None:
        """Begin to work in the background: the settings are those that the cluster has."""
        self._background.start()
        self._workers[Work.QUERY].submit(self._tell_kept)

    def _tell_kept(self) -> None:
        """Say what is kept because nobody has said for how long, if anything is."""
        if self.directory.assumed_settings:
            self._tell(tell_kept(self.directory.kept_for_want_of_retention()))

    def _tell(self, sentences: Sequence[str]) -> None:
        """Say all of these, however many they are."""
        for sentence in sentences:
            with contextlib.suppress(Exception):  # a closed stderr is no reason to stop serving
                self._say(sentence)

    def _leave(self) -> None:
        """Leave the cluster: have other brokers lead the partitions of this one, if there are any."""
        member = self.broker.member
        if member is not None:
            self._reactor.call(member.begin_shutdown)
            while self._thread.is_alive() and not member.has_ended.wait(_LOOK_S):
                pass

    def _close(self) -> None:
        """Stop and close everything. If this is interrupted, it can be called again."""
        self.waits_for, self.is_leaving = "other brokers, which are to lead its partitions", True
        self._leave()
        self.waits_for, self.is_leaving = "requests that are being answered", False
        self._reactor.stop()
        self._thread.join()
        if self._heartbeats is not None:
            self._heartbeats.stop()
        for kind, workers in self._workers.items():
            self.waits_for = f"work that other threads do for requests ({kind.value})"
            workers.shutdown(cancel_futures=True)
        self._background.stop_soon()
        try:
            if self.broker.member is not None:
                self.broker.member.note_clean_epoch()
            self.waits_for = "the disk, to which the logs are written"
            self.directory.close()
        finally:
            self.waits_for = "tasks in the background, such as a compaction"
            self._background.stop()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Workers(ThreadPoolExecutor):
    """Threads whose work nobody waits for: what fails in it is told."""

    def __init__(self, tell: Callable[[Exception], object], count: int, *, thread_name_prefix: str) -> None:
        super().__init__(count, thread_name_prefix)
        self._tell: Final = tell

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        """Have one of the threads do something."""

        def do() -> T:
            try:
                return work(*arguments, **named)
            except Exception as error:
                self._tell(error)
                raise

        return super().submit(do)


def _import_for_first_requests() -> None:
    """Import what is needed for the first answers, before there are threads that could import it, too."""
    for api_key in (API_VERSIONS, METADATA):
        declaration(api_key, 0, "request")


def serve(
    data: str | os.PathLike[str] | None = None,
    *,
    listen: str | None = None,
    config: Mapping[str, str] | None = None,
    say: Callable[[str], object] | None = None,
    on_progress: OnProgress | None = None,
    on_wait: Callable[[str], object] | None = None,
    adopt: bool = False,
) -> Server:
    """Serve a data directory to Kafka clients, in threads of this process.

    A broker whose `process.roles` is `broker` is a member of a cluster. This returns when its controller lets it serve.

    data: the directory; without one, `log.dirs` of the configuration, or a temporary directory that is removed again
    listen: `HOST:PORT`; without it, `listeners` of the configuration, or a free port of the loopback interface.
        `Server.bootstrap_servers` tells which
    config: settings by the names that Kafka has for them (`server.properties`)
    say: called with a sentence when something happens that an operator has to know; without it, that goes to stderr
    on_progress: called with the progress of checking a partition, after an unclean shutdown. What it raises ends the
        start
    on_wait: called now and then with what a member of a cluster waits for. What it raises ends the start
    adopt: make topics of partitions that the metadata do not know, such as those that were copied here

    Raises `InvalidConfig` and `InvalidInput`, what `DataDirectory.open` raises, `OSError` if the address cannot be
    used, and `CannotJoin` if the broker cannot be a member of its cluster.
    """
    settings = read_settings({} if config is None else config)
    overrides_by_address(settings.config)
    addresses, warnings = read_addresses(listen, settings.properties)
    settings.warnings.extend(warnings)
    node_id = read_node_id(settings.properties)
    folders, temporary = _folders(data, settings)
    if settings.member is not None and adopt:
        raise InvalidInput("a member of a cluster adopts nothing: its controllers decide which topics there are")
    if settings.member is None and not adopt:
        check_metadata(folders)
    # Listen first: opening a directory after a crash may take long, and clients that come meanwhile wait their turn.
    listeners: list[Listener] = []
    adopted: Sequence[TopicPartition] = ()
    try:
        listeners += _listen(addresses, settings.config.socket_listen_backlog_size)
        if settings.member is not None:
            from octavo.server.joining import open_as_member

            directory: DataDirectory = open_as_member(
                settings, addresses, folders, on_progress, on_wait, say or to_stderr
            )
        else:
            if adopt:
                from octavo.log.metadata.handover import adopt_strangers
                from octavo.log.metadata.store import FIRST_NODE

                adopted = adopt_strangers(folders, new_node_id=FIRST_NODE if node_id is None else node_id)
            # Without settings the directory knows best; with them they are those of a broker.
            directory = DataDirectory.open(
                folders,
                broker_config=settings.properties or None,
                node_id=node_id,
                on_progress=on_progress,
                as_broker=True,
                recover=Recover.AS_KAFKA,
            )
        try:
            server = Server(directory, listeners, settings, say=say, temporary=temporary, adopted=adopted)
        except BaseException:
            directory.close()
            raise
    except BaseException:
        for listener in listeners:
            listener.socket.close()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    if settings.member is not None:
        try:
            server.wait_until_joined(on_wait)
        except BaseException:
            server.hurry()
            server.close()
            raise
    return server


def _folders(data: str | os.PathLike[str] | None, settings: Settings) -> tuple[list[Path], Path | None]:
    """Return the folders to serve, and the one that is temporary."""
    if data is not None:
        if METADATA_DIR in settings.properties:
            settings.warnings.append(f"{METADATA_DIR} has no effect: the directory is given")
        return [Path(data)], None
    named = named_folders(settings.properties)
    if named:
        return named, None
    if settings.member is not None:
        raise InvalidConfig(
            "log.dirs", None, "a member of a cluster needs one: others count on what it has acknowledged"
        )
    temporary = Path(tempfile.mkdtemp(prefix="octavo-"))
    return [temporary / "data"], temporary


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listen(addresses: Sequence[Address], backlog: int) -> list[Listener]:
    listeners: list[Listener] = []
    try:
        for host, port, advertised, name in addresses:
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
            listeners.append(Listener(listening, (told, told_port), name))
    except BaseException:
        for listener in listeners:
            listener.socket.close()
        raise
    return listeners
