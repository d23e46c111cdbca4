"""`octavo serve`: serve a data directory to Kafka clients."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from octavo.cli.exits import COULD_NOT_RUN, FINE
from octavo.errors import BadDirectory, Corrupt, InvalidInput, OthersDecide

if TYPE_CHECKING:
    from octavo.log.recovery_report import Progress
    from octavo.server.serving import Server

_DESCRIPTION: Final = """\
Serves a data directory to Kafka clients, as a broker of a cluster of one, or, if the settings have
process.roles=broker, as a member of an Apache Kafka cluster. Clients produce, fetch, administer topics, consume in
groups, and use transactions.

The directory is the one that Apache Kafka would keep: the other commands and Spark read it while clients write, and
`octavo handover` lets Kafka take it over. The broker listens on the loopback interface unless told otherwise: it does
not know who its clients are.
"""

_EPILOG: Final = """\
examples:
  octavo serve --data /var/lib/octavo
  octavo serve --data /var/lib/octavo --listen 0.0.0.0:9092
  octavo serve server.properties --override log.retention.hours=168
  octavo serve                                   a temporary directory and a free port, to try things

It stops at SIGINT and SIGTERM, and marks the directory as cleanly shut down. A member of a cluster first has other
brokers lead its partitions; a second signal ends that. If the rest takes more than 10 seconds, it says what it gave up,
and ends: nothing that was acknowledged is lost, and the directory is checked at the next start. So it is where a full
disk leaves no room for the mark. Exit codes: 0 stopped, 2 could not run.
"""

_THRESHOLDS: Final = (20_000, 20, 100)  # of new objects, and of collections of younger ones
_ANY_SIZE: Final = 1 << 31
_LOOK_S: Final = 1.0
_TELL_S: Final = 2.0
_MOST_ON_A_MAC: Final = 10_240  # open files (OPEN_MAX), although its limit says that there is none
_SHORTLY_S: Final = 0.1
_PATIENCE_S = 10.0  # from a signal to the end
_SWITCH_S: Final = 0.0005  # how long another thread may compute before the one that serves gets its turn


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `octavo serve` and its options to the parser."""
    parser = commands.add_parser(
        "serve",
        help="serve a data directory to Kafka clients",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="settings with the names that Kafka has for them; --data and --listen replace its log.dirs and listeners",
    )
    parser.add_argument(
        "--override",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting that goes before that in FILE; may be repeated",
    )
    parser.add_argument(
        "--adopt",
        action="store_true",
        help="make topics of partitions that the metadata do not know, such as those that were copied here; folders "
        "that contradict each other are refused",
    )
    parser.add_argument("--data", metavar="DIR", help="the data directory; it is created if it is missing")
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to listen (default: 127.0.0.1, a free port)")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the same as FILE",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal says that it is enough."""
    leave_hypothesis_out()
    from octavo.log.storage import is_full
    from octavo.server.serving import serve
    from octavo.server.stderr import to_stderr

    config = settings_of(arguments)
    logging.getLogger("octavo.log").addHandler(logging.NullHandler())  # what it warns of is told to the operator
    _raise_limit()
    sys.setswitchinterval(_SWITCH_S)
    stop = _Signal()
    servers: list[Server] = []

    def stop_or_hurry(*_: object) -> None:
        if stop.is_set():
            for each in servers:
                each.hurry()
        stop.set()

    before = {each: signal.signal(each, stop_or_hurry) for each in (signal.SIGINT, signal.SIGTERM)}
    patience = _Patience(stop, servers, to_stderr)
    try:
        start = _Start(stop, to_stderr)
        with serve(
            arguments.data,
            listen=arguments.listen,
            config=config,
            say=to_stderr,
            on_progress=start.go_on,
            on_wait=start.wait,
            adopt=arguments.adopt,
        ) as server:
            servers.append(server)
            folders = ", ".join(map(str, server.directory.folders))
            print(f"serving {folders} at {server.bootstrap_servers}", flush=True)
            garbage = _Garbage()
            while not stop.wait(_LOOK_S):  # a signal that another thread was given does not end a wait
                garbage.look()
                if not server.is_serving:  # it has said why
                    return COULD_NOT_RUN
            to_stderr("stopping")
    except OSError as error:
        if not (servers and stop.is_set() and is_full(error)):
            raise
        to_stderr(f"stopped, but not marked as closed, so the directory is checked at the next start: {error}")
    except OthersDecide as error:  # whose message is for programmers
        raise BadDirectory(error.path, f"{error.problem}. It can be read, but not served") from None
    except _StoppedEarly as error:
        to_stderr(str(error))
    finally:
        patience.end()
        for each, handler in before.items():
            signal.signal(each, handler)
    return FINE


class _Signal:
    """Set by a signal handler, and waited for. An `Event` would not do: its lock may be held where the handler runs."""

    def __init__(self) -> None:
        from octavo.server.wakeup import make_wakeup

        self._wakeup: Final = make_wakeup()  # nobody clears it: it stays readable
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._wakeup.wake()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set, but not for more than `timeout` seconds. Returns whether it is set."""
        select.select([self._wakeup.descriptor], [], [], timeout)
        return self._is_set


class _Patience:
    """Ends the process some seconds after a signal, whatever it waits for then, and says what that was.

    A process may die at any moment without losing what was acknowledged: only the check at the next start is the price.
    """

    def __init__(self, stop: _Signal, servers: Sequence[Server], say: Callable[[str], None]) -> None:
        self._stop: Final = stop
        self._servers: Final = servers
        self._say: Final = say
        self._has_ended: Final = threading.Event()
        threading.Thread(target=self._run, name="octavo-patience", daemon=True).start()

    def end(self) -> None:
        """Have it end nothing."""
        self._has_ended.set()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_S):
            if self._has_ended.is_set():
                return
        until = time.monotonic() + _PATIENCE_S
        while not self._has_ended.wait(_SHORTLY_S):
            if any(each.is_leaving for each in self._servers):  # which has a limit of its own
                until = time.monotonic() + _PATIENCE_S
            elif time.monotonic() > until:
                waited_for = [each.waits_for or "the server" for each in self._servers] or [
                    "the directory to be opened"
                ]
                self._say(
                    f"gave up after {_PATIENCE_S:g} s: it still waited for {' and '.join(waited_for)}. Nothing that "
                    "was acknowledged is lost; the directory is not marked as closed, and is checked at the next start"
                )
                os._exit(FINE)


class _Garbage:
    """Has Python look for garbage in cycles rarely, and only among what is new.

    Requests leave none behind. With a thousand clients each look would take longer than hundreds of their requests.
    """

    def __init__(self) -> None:
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        self._is_settled = False

    def look(self) -> None:
        """Have it not look at what the first appends have loaded, which is most of what there is."""
        from octavo.log.append.readiness import is_quick

        if not self._is_settled and is_quick(_ANY_SIZE):
            self._is_settled = True
            gc.freeze()


class _StoppedEarly(Exception):
    """A signal came before the broker served."""


class _Start:
    """Tells what a start waits for, such as a directory that is being checked after a crash, and ends at a signal."""

    def __init__(self, stop: _Signal, say: Callable[[str], None]) -> None:
        self._stop = stop
        self._say = say
        self._told_at: float | None = None

    def go_on(self, progress: Progress) -> None:
        """Tell how far it is, now and then. Raises `_StoppedEarly`."""
        if self._stop.is_set():
            raise _StoppedEarly("stopped before the directory was open; it will be checked again")
        done, total = progress.bytes_done, progress.bytes_total
        self._tell(f"checking {progress.partition} after a crash: {done:,} of {total:,} bytes")

    def wait(self, sentence: str) -> None:
        """Tell what a member of a cluster waits for, now and then. Raises `_StoppedEarly`."""
        if self._stop.is_set():
            raise _StoppedEarly("stopped before the broker was a member of its cluster")
        if self._told_at is None:
            self._told_at = time.monotonic()  # mostly it takes a moment, and is not worth telling
        self._tell(sentence)

    def _tell(self, sentence: str) -> None:
        now = time.monotonic()
        if self._told_at is None or now - self._told_at >= _TELL_S:
            self._told_at = now
            self._say(sentence)


def _raise_limit() -> None:
    """Allow as many open files and connections as the system lets us have; the usual limit is that of programs."""
    import resource

    usual, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (most, _MOST_ON_A_MAC):
        if usual != resource.RLIM_INFINITY and (usual < wanted or wanted == resource.RLIM_INFINITY):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
                return


def leave_hypothesis_out() -> None:
    """Have this process do without Hypothesis.

    kio imports it where it is installed, to register its types for tests. That would be a third of the start.
    """
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type] # None is how Python says: it is not there


def settings_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the settings of the file, with those that go before them."""
    from octavo.cli.spark_job import pairs

    if arguments.file is not None and arguments.config is not None:
        raise InvalidInput(f"{arguments.file} and --config {arguments.config}: there is one file of settings")
    path = arguments.config if arguments.file is None else arguments.file
    config = {} if path is None else _read(path)
    config |= pairs(arguments.override, "--override")
    return config


def _read(path: str) -> dict[str, str]:
    from pathlib import Path

    from octavo.log.files.properties import read_properties

    try:
        return read_properties(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    except Corrupt as error:
        raise InvalidInput(f"{path} is no file of settings: {error}") from None
