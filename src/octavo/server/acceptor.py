"""Accept connections, within the limits that Kafka has: `Acceptor`.

    max.connections                   above it, the acceptor waits until a connection is closed
    max.connections.per.ip            above it, and its overrides, a connection is closed at once
    max.connection.creation.rate      above it, the acceptor waits; there may be a burst of ten seconds' worth
    open files of the process         a few are left for the log; then the acceptor waits

Who waits is in the backlog of the listening socket.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from octavo.broker.config import BrokerConfig
from octavo.broker.notices import Notices
from octavo.errors import InvalidConfig
from octavo.server.poller import READ, Poller

_ACCEPTS_PER_TURN: Final = 64
_EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RESERVE: Final = 64  # descriptors for files
_PATIENCE_S: Final = 1.0  # with descriptors, which others than connections may free
_MAPPED: Final = "::ffff:"  # an IPv4 address at a socket for both kinds
_BURST_S: Final = 10  # Kafka measures rates over so long


class Listener:
    """A socket that accepts connections, and the address and name that others know it by."""

    def __init__(self, accepting: socket.socket, advertised: tuple[str, int], name: str) -> None:
        self.socket: Final = accepting
        self.advertised: Final = advertised
        self.name: Final = name


class Acceptor:
    """Accepts the connections of some listeners, and counts them by their addresses."""

    def __init__(
        self,
        listeners: Sequence[Listener],
        poller: Poller,
        get_config: Callable[[], BrokerConfig],
        notices: Notices,
        connect: Callable[[socket.socket, str, Listener], None],
        do_elsewhere: Callable[[Callable[[], None]], object],
    ) -> None:
        """Accept nothing yet; see `begin`.

        get_config: returns the limits, which may change
        connect: takes a new connection over: its socket, the address of the client, and the listener
        do_elsewhere: has another thread do something
        """
        config = get_config()
        self._listeners: Final = {each.socket.fileno(): each for each in listeners}
        self._poller: Final = poller
        self._get_config: Final = get_config
        self._notices: Final = notices
        self._connect: Final = connect
        self._do_elsewhere: Final = do_elsewhere
        self._peers: Final[Counter[str]] = Counter()
        self._looked_up = config  # whose overrides hold, or are being looked up
        self._overridden: dict[str, int] = {}  # by address
        self._count = 0
        self._is_paused = False
        self._paused_until = 0.0
        self._tokens = float(_BURST_S * config.max_connection_creation_rate)
        self._counted_at = time.monotonic()
        self._look_up(config)

    def begin(self) -> None:
        """Begin to accept connections. Who has come before is in the backlog."""
        for descriptor in self._listeners:
            self._poller.register(descriptor, READ)

    def accept(self, descriptor: int) -> None:
        """Accept connections that a listener has, if it is one of ours."""
        listener = self._listeners.get(descriptor)
        for _ in range(_ACCEPTS_PER_TURN):
            if listener is None or not self._may_accept():
                return
            try:
                client, address = listener.socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(f"no connection can be accepted: {error.strerror}")
                    return
                continue  # the client is gone already
            self._tokens -= 1
            self._admit(client, str(address[0]).removeprefix(_MAPPED), listener)

    @property
    def _config(self) -> BrokerConfig:
        return self._get_config()

    @property
    def _overrides(self) -> dict[str, int]:
        """The numbers of connections that single addresses may have.

        While the names of hosts are looked up, which can take many seconds, those of before hold.
        """
        config = self._config
        if self._looked_up is not config:
            self._looked_up = config
            try:
                self._overridden = overrides_by_address(config, socket.AI_NUMERICHOST)
            except InvalidConfig:
                self._do_elsewhere(lambda: self._look_up(config))
        return self._overridden

    def _look_up(self, config: BrokerConfig) -> None:
        try:
            found = overrides_by_address(config)
        except InvalidConfig as error:  # of settings in the metadata, which must not keep the broker from its work
            self._notices.say("overrides", str(error))  # those of before hold
            return
        if self._looked_up is config:
            self._overridden = found

    def _may_accept(self) -> bool:
        if self._is_paused:
            return False
        if self._count >= self._config.max_connections:
            self._pause(f"max.connections={self._config.max_connections} are open, and further ones have to wait")
            return False
        now, rate = time.monotonic(), self._config.max_connection_creation_rate
        self._tokens = min(_BURST_S * rate, self._tokens + (now - self._counted_at) * rate)
        self._counted_at = now
        if self._tokens < 1:
            self._pause(f"more than max.connection.creation.rate={rate} connections a second are coming")
            return False
        return True

    def _admit(self, client: socket.socket, peer: str, listener: Listener) -> None:
        most = self._overrides.get(peer, self._config.max_connections_per_ip)
        if self._peers[peer] >= most:
            client.close()
            self._notices.say("per ip", f"a connection from {peer} was refused: it has {most}, which is the maximum")
            return
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit != resource.RLIM_INFINITY and client.fileno() >= limit - min(_RESERVE, limit // 4):
            client.close()
            self._pause(f"a connection from {peer} was refused: nearly all of {limit} descriptors are in use")
            return
        try:
            client.setblocking(False)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._size_buffers(client)
            self._connect(client, peer, listener)
        except OSError:  # it is gone already
            client.close()
            return
        self._peers[peer] += 1
        self._count += 1

    def _size_buffers(self, client: socket.socket) -> None:
        config = self._config
        if config.socket_send_buffer_bytes > 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)
        if config.socket_receive_buffer_bytes > 0:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)

    def forget(self, peer: str) -> None:
        """Count a connection no more: it was closed."""
        self._count -= 1
        self._peers[peer] -= 1
        if not self._peers[peer]:
            del self._peers[peer]
        if self._is_paused:
            self._resume()

    def check(self, now: float) -> None:
        """Try again after a pause, and follow the limits. Call this now and then."""
        _ = self._overrides
        if self._is_paused and now >= self._paused_until and self._count < self._config.max_connections:
            self._resume()

    def _pause(self, why: str) -> None:
        """Let clients wait: otherwise the poller would say without end that they are there."""
        self._notices.say("accept", why)
        self._is_paused, self._paused_until = True, time.monotonic() + _PATIENCE_S
        for descriptor in self._listeners:
            self._poller.modify(descriptor, 0)

    def _resume(self) -> None:
        self._is_paused = False
        for descriptor in self._listeners:
            with contextlib.suppress(OSError):  # at the end
                self._poller.modify(descriptor, READ)

    def close(self) -> None:
        """Close the listeners. May be called again."""
        self._is_paused = False  # nothing is resumed any more
        for descriptor, listener in self._listeners.items():
            if listener.socket.fileno() >= 0:
                with contextlib.suppress(OSError):  # nothing was accepted yet
                    self._poller.unregister(descriptor)
        self.abandon()

    def abandon(self) -> None:
        """Close the listeners of this process only: after a fork, its parent may have the same poller."""
        for listener in self._listeners.values():
            listener.socket.close()


def overrides_by_address(config: BrokerConfig, flags: int = 0) -> dict[str, int]:
    """Return the numbers of connections that single addresses may have. Raises `InvalidConfig` for unknown hosts.

    flags: for `getaddrinfo`
    """
    return {_address(host, flags): most for host, most in config.overrides_per_ip.items()}


def _address(host: str, flags: int) -> str:
    """Return the address of a host, which may be given by its name. Raises `InvalidConfig`."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)[0][4][0])
    except (OSError, UnicodeError):  # the latter if it cannot be a name, such as one with an empty part
        raise InvalidConfig("max.connections.per.ip.overrides", host, "it is no address and no known host") from None
