"""What the configurations of `Producer` and `Consumer` have in common: how options are given, and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NO_INTERCEPTORS: Final = "there are no interceptors here"

# Options about brokers and connections. A name that ends in a dot stands for all that begin with it.
_OF_CONNECTIONS: Final = (
    "bootstrap.servers",
    "client.dns.lookup",
    "config.providers",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "metadata.",
    "metric.",
    "metrics.",
    "receive.buffer.bytes",
    "reconnect.",
    "sasl.",
    "security.",
    "send.buffer.bytes",
    "socket.",
    "ssl.",
)


def without_connections(client: str) -> dict[str, str]:
    """Return the options about connections, with the reason why this kind of client refuses them."""
    reason = f"it is about brokers and connections, and this {client} has none"
    return dict.fromkeys(_OF_CONNECTIONS, reason)


def given(properties: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return options by Kafka's names, from a mapping that has them and from keywords with `_` in place of `.`."""
    return {**(properties or {}), **{name.replace("_", "."): value for name, value in keywords.items()}}
