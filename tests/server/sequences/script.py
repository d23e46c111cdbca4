"""One run of a sequence against one broker: `Script`, with its clients and what they were answered.

A sequence is a function that is given a `Script`. It is run against two brokers, and may be stopped before any of its
requests until the broker has been restarted. What was answered is kept in `Script.trace`, without what may differ.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Final

from octavo.broker.wire import api_keys as keys
from octavo.broker.wire.api_keys import APIS
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import ErrorCode, MalformedRequest
from tests.server.conversation import CLOSED, SILENT
from tests.server.raw import RawClient, header
from tests.server.sequences.plain import Plain

PATIENCE_S: Final = 10  # some sequences wait that long for what does not come
_ASK_AGAIN_S: Final = 0.02
# What no step is meant to be answered: the coordinators were there before.
_NOT_READY: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class Script:
    """The clients of one run, and the answers that they got."""

    def __init__(self, prefix: str, address: Callable[[], str], rest: Callable[[int], None]) -> None:
        """`address`: where the broker is now. `rest`: called before each request with the number of those before."""
        self.prefix: Final = prefix
        self.trace: list[tuple[str, Any]] = []
        self.steps = 0
        self.plain: Final = Plain(prefix)
        self._address: Final = address
        self._rest: Final = rest
        self._clients: Final[list[Client]] = []

    def named(self, name: str) -> str:
        """Return a name that no other run uses: of a group, a transactional id or a topic."""
        return f"{self.prefix}{name}"

    @property
    def group(self) -> str:
        """The group of most sequences."""
        return self.named("g")

    @property
    def topic(self) -> str:
        """The topic of most sequences."""
        return self.named("t")

    def topic_id(self, name: str = "t") -> bytes:
        """Return the id of a topic of this run; zeros if there is none."""
        return self.plain.topic_ids.get(self.named(name), bytes(16))

    def client(self, name: str) -> Client:
        """Return a new connection of a client with this id."""
        client = Client(self, name, self._address)
        self._clients.append(client)
        return client

    def before_request(self) -> None:
        """Count a request, and rest before it if it is time for that."""
        if self._rest is not None:
            self._rest(self.steps)
        self.steps += 1

    def reconnect(self) -> None:
        """Have everybody connect again: the broker was restarted. Who waits for an answer gets none."""
        self.plain.is_restarted = True
        for each in self._clients:
            each.lose()

    def note(self, label: str, answer: Any) -> None:
        """Keep an answer."""
        self.trace.append((label, self.plain(answer)))

    def close(self) -> None:
        """Close all connections."""
        for each in self._clients:
            each.close()


class Client:
    """One connection. An answer may be awaited later: `send`, then `receive`."""

    def __init__(self, script: Script, name: str, address: Callable[[], str]) -> None:
        self.script: Final = script
        self.name: Final = name
        self._address: Final = address
        self.patience_s: float = PATIENCE_S
        self._raw: RawClient | None = None
        self._sent: list[tuple[int, int, str]] = []
        self._lost = 0

    def send(self, api_key: int, version: int, content: dict[str, Any]) -> None:
        """Send a request."""
        self.script.before_request()
        self._send(api_key, version, content)

    def _send(self, api_key: int, version: int, content: dict[str, Any]) -> None:
        if self._raw is None:
            self._raw = RawClient(self._address(), self.patience_s)
        flexible = version >= APIS[api_key].flexible
        body = write_request(api_key, version, content)
        self._sent.append((api_key, version, f"{self.name}: {APIS[api_key].name} {version} {self._shown(content)}"))
        with contextlib.suppress(OSError):  # closed: `receive` finds that out
            self._raw.send(header(api_key, version, client_id=self.name, flexible=flexible) + body)

    def _shown(self, content: dict[str, Any]) -> str:
        return repr(self.script.plain(content))

    def receive(self) -> Any:
        """Return the next answer, or what happened instead, and keep it."""
        _, _, label = self._sent[0]
        answer = self._receive()
        self.script.note(label, answer)
        return answer

    def _receive(self) -> Any:
        api_key, version, _ = self._sent.pop(0)
        if self._lost:
            self._lost -= 1
            return CLOSED
        assert self._raw is not None
        try:
            answer = self._raw.receive()
        except TimeoutError:
            self.close()
            return SILENT
        if answer is None:
            self.close()
            return CLOSED
        begin = 5 if version >= APIS[api_key].flexible and api_key != keys.API_VERSIONS else 4
        body = memoryview(answer)[begin:]
        try:
            return read_response(api_key, version, body)
        except MalformedRequest:
            return read_response(api_key, 0, body)

    def ask(self, api_key: int, version: int, content: dict[str, Any]) -> Any:
        """Send a request, and return its answer."""
        self.send(api_key, version, content)
        return self.receive()

    def quietly(self, api_key: int, version: int, content: dict[str, Any]) -> Any:
        """Ask without that being a step."""
        self._send(api_key, version, content)
        return self._receive()

    def until(self, is_so: Callable[[Any], bool], api_key: int, version: int, content: dict[str, Any]) -> Any:
        """Ask until the answer is as wanted, and keep that one."""
        self.script.before_request()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self._send(api_key, version, content)
            label = self._sent[-1][2]
            answer = self._receive()
            if (isinstance(answer, SimpleNamespace) and is_so(answer)) or time.monotonic() > deadline:
                self.script.note(label, answer)
                return answer
            time.sleep(_ASK_AGAIN_S)

    def lose(self) -> None:
        """Lose the connection, and all answers that are awaited."""
        self.close()
        self._lost = len(self._sent)

    def close(self) -> None:
        """Close the connection."""
        if self._raw is not None:
            self._raw.socket.close()
            self._raw = None


def error_codes(answer: Any) -> Iterator[int]:
    """All error codes in an answer that was made plain."""
    if isinstance(answer, dict):
        for name, each in answer.items():
            if name.endswith("error_code"):
                yield each
            else:
                yield from error_codes(each)
    elif isinstance(answer, list):
        for each in answer:
            yield from error_codes(each)


def is_unready(answer: Any) -> bool:
    """Return whether an answer says that there is no coordinator."""
    return not _NOT_READY.isdisjoint(error_codes(answer))
