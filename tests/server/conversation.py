"""Ask a broker anything, and compare what two brokers answer."""

from __future__ import annotations

from types import SimpleNamespace, TracebackType
from typing import Any, Self

from octavo.broker.wire.api_keys import API_VERSIONS, APIS
from octavo.broker.wire.messages import read_response, write_request
from octavo.errors import MalformedRequest
from tests.server.raw import PATIENCE_S, RawClient, header

CLOSED = "the connection was closed"
SILENT = "no answer"

# What may differ between two brokers without anybody being wrong.
_OWN = {
    "throttle_time_ms",
    "cluster_id",
    "host",
    "port",
    "node_id",
    "broker_id",
    "controller_id",
    "log_dir",
    "total_bytes",
    "usable_bytes",
    "finalized_features_epoch",
    "producer_id",
    "session_id",
}
_KEYS = (  # what tells the items of a list apart
    "name",
    "topic",
    "topic_name",
    "partition_index",
    "index",
    "api_key",
    "resource_name",
    "resource_type",
    "partition",
    "partition_id",
    "user",
    "entity",
    "entity_type",
    "topic_id",
    "error_code",
)
_NODES = {"leader_id", "replica_nodes", "isr_nodes"}


class Conversation:
    """One client of one broker. It connects again when the broker has closed the connection."""

    def __init__(self, address: str, patience_s: float = PATIENCE_S) -> None:
        self._address = address
        self._patience_s = patience_s
        self._client: RawClient | None = None
        self._ids: dict[bytes, str] = {bytes(16): "no id"}

    def ask(self, api_key: int, version: int, content: dict[str, Any]) -> Any:
        """Return the answer as nested dicts, without what may differ, or `CLOSED`."""
        return self.ask_raw(api_key, version, write_request(api_key, version, content))

    def ask_raw(self, api_key: int, version: int, body: bytes) -> Any:
        """The same for a body in bytes."""
        if self._client is None:
            self._client = RawClient(self._address, self._patience_s)
        flexible = version >= APIS[api_key].flexible
        answer = self._client.ask(header(api_key, version, flexible=flexible) + body)
        if answer is None:
            self._client.socket.close()
            self._client = None
            return CLOSED
        return self._plain(self._read(api_key, version, flexible, answer))

    def raw_answer(self, api_key: int, version: int, content: dict[str, Any]) -> SimpleNamespace:
        """Return the whole answer."""
        flexible = version >= APIS[api_key].flexible
        if self._client is None:
            self._client = RawClient(self._address, self._patience_s)
        answer = self._client.ask(
            header(api_key, version, flexible=flexible) + write_request(api_key, version, content)
        )
        assert answer is not None
        return self._read(api_key, version, flexible, answer)

    def _read(self, api_key: int, version: int, flexible: bool, answer: bytes) -> SimpleNamespace:
        begin = 5 if flexible and api_key != API_VERSIONS else 4
        try:
            return read_response(api_key, version, memoryview(answer)[begin:])
        except MalformedRequest:
            return read_response(api_key, 0, memoryview(answer)[begin:])

    def _plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, SimpleNamespace):
            topic_id, topic = getattr(value, "topic_id", bytes(16)), getattr(value, "name", None)
            if topic_id != bytes(16) and topic is not None:
                self._ids[topic_id] = f"the id of {topic}"
            return {key: self._plain(each, key) for key, each in vars(value).items() if key not in _OWN}
        if name in _NODES:
            return len(value) if isinstance(value, tuple) else value >= 0
        if isinstance(value, tuple):
            return [self._plain(each, name) for each in value]
        if name == "topic_id":
            return self._ids.get(value, value)
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.socket.close()


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """What is different, one line for each place."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            line
            for key in sorted({*ours, *theirs})
            for line in differences(ours.get(key, "nothing"), theirs.get(key, "nothing"), f"{path}.{key}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            line
            for number, pair in enumerate(zip(_sorted(ours), _sorted(theirs), strict=True))
            for line in differences(*pair, f"{path}[{number}]")
        ]
    return [] if ours == theirs else [f"{path}: {ours!r}, and Kafka {theirs!r}"]


def _sorted(values: list[Any]) -> list[Any]:
    """Lists in an order that does not depend on the broker."""
    return sorted(values, key=lambda each: [_text(each.get(key)) for key in _KEYS] if isinstance(each, dict) else [])


def _text(value: Any) -> str:
    return str(sorted(map(str, value)) if isinstance(value, list) else value)
