"""The settings of a broker that handlers and connections use, with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """The settings of a broker. The comment behind each is Kafka's name."""

    auto_create_topics: bool = True  # auto.create.topics.enable
    num_partitions: int = 1  # num.partitions
    fetch_max_bytes: int = 57_671_680  # fetch.max.bytes
    fetch_session_slots: int = 1000  # max.incremental.fetch.session.cache.slots
    request_max_bytes: int = 104_857_600  # socket.request.max.bytes
    idle_s: float = 600.0  # connections.max.idle.ms
    max_connections: int = 0x7FFFFFFF  # max.connections
    max_connections_per_ip: int = 0x7FFFFFFF  # max.connections.per.ip
    delete_topics: bool = True  # delete.topic.enable
