"""Parsing and checking of settings, shared by the configurations of `Producer` and `Consumer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any, Final

from octavo.errors import InvalidConfig
from octavo.log.config_values import Kind

_OF_CONNECTIONS: Final = ("sasl.", "ssl.", "security.", "socket.", "reconnect.", "metadata.", "metrics.", "metric.")
_ALSO_OF_CONNECTIONS: Final = frozenset(
    {
        "bootstrap.servers",
        "client.dns.lookup",
        "config.providers",
        "connections.max.idle.ms",
        "enable.metrics.push",
        "receive.buffer.bytes",
        "send.buffer.bytes",
    }
)
NO_INTERCEPTORS: Final = "there are no interceptors here"


class Text:
    """Any text."""

    allowed = "a text"

    def read(self, text: str) -> str:
        return text

    def takes(self, value: Any) -> bool:
        return isinstance(value, str)

    def write(self, value: str) -> str:
        return value


class Name(Text):
    """A text that is not empty, or None."""

    allowed = "a text that is not empty"

    def takes(self, value: Any) -> bool:
        return value is None or (isinstance(value, str) and value.strip() != "")


def option(default: Any, kind: Kind) -> Any:
    """Declare a field of a configuration dataclass."""
    return field(default=default, metadata={"kind": kind})


class Options:
    """The settings of one kind of client: the fields of a dataclass, named like Kafka's with `_` in place of `.`."""

    def __init__(self, config: type, client: str, elsewhere: Mapping[str, str]) -> None:
        """`elsewhere`: settings of Kafka's client that do not exist here, each with the reason."""
        self._client = client
        self._elsewhere = elsewhere
        self._kinds: Final[dict[str, Kind]] = {
            option.name.replace("_", "."): option.metadata["kind"] for option in fields(config)
        }

    def read(self, properties: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given values by field name. `properties` has Kafka's names, `more` has `_` in place of `.`.

        A value is either a text, as in a properties file, or already parsed. Raises `InvalidConfig`.
        """
        given = dict(properties or {}) | {name.replace("_", "."): value for name, value in more.items()}
        values = {}
        for name, value in given.items():
            kind = self._kind(name, value)
            try:
                read = kind.read(value) if isinstance(value, str) else value
            except ValueError:
                raise InvalidConfig(name, value, f"it must be {kind.allowed}") from None
            if not kind.takes(read):
                raise InvalidConfig(name, value, f"it must be {kind.allowed}")
            values[name.replace(".", "_")] = read
        return values

    def _kind(self, name: str, value: object) -> Kind:
        kind = self._kinds.get(name)
        if kind is not None:
            return kind
        if name in _ALSO_OF_CONNECTIONS or name.startswith(_OF_CONNECTIONS):
            raise InvalidConfig(name, value, f"it is about brokers and connections, and this {self._client} has none")
        reason = f"Kafka has no {self._client} configuration of this name"
        raise InvalidConfig(name, value, self._elsewhere.get(name, reason))
