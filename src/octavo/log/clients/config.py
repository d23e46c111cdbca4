"""What the configurations of `Producer` and `Consumer` have in common: how options are given, and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NO_INTERCEPTORS: Final = "there are no interceptors here"

# Options about brokers and connections, of Kafka, kafka-python (whose names are given with `_`) and librdkafka. A name
# that ends in a dot stands for all that begin with it.
_OF_CONNECTIONS: Final = (
    "api.version",
    "api.version.",
    "bootstrap.servers",
    "bootstrap.timeout.ms",
    "broker.",
    "client.dns.lookup",
    "config.providers",
    "connections.max.idle.ms",
    "enable.metrics.push",
    "kafka.client",
    "metadata.",
    "metric.",
    "metrics.",
    "proxy.url",
    "receive.buffer.bytes",
    "receive.message.max.bytes",
    "reconnect.",
    "sasl.",
    "security.",
    "selector",
    "send.buffer.bytes",
    "socket.",
    "socks5.proxy",
    "ssl.",
)


# Callbacks that confluent-kafka takes as options, in a mapping or as keywords.
_CALLBACKS: Final = ("error_cb", "logger", "oauth_cb", "on_commit", "stats_cb", "throttle_cb")


def without_connections(client: str) -> dict[str, str]:
    """Return the options for connections and callbacks, which this kind of client refuses, each with the reason."""
    reason = f"it is about brokers and connections, and this {client} has none"
    callbacks = (*_CALLBACKS, *(name.replace("_", ".") for name in _CALLBACKS))
    return dict.fromkeys(_OF_CONNECTIONS, reason) | dict.fromkeys(callbacks, "methods raise their errors here")


def given(properties: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options by Kafka's names. Keywords have `_` in place of `.`, and take precedence over `properties`."""
    return {**(properties or {}), **{name.replace("_", "."): value for name, value in keywords.items()}}
