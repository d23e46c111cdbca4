"""Configuration of a producer, with the names, limits and defaults of Apache Kafka 4.3's `ProducerConfig`.

    ProducerConfig.of({"linger.ms": 20, "compression.type": "lz4"})
    ProducerConfig.of({}, linger_ms=20)

Options about brokers and connections are refused: there are none here. Some options are accepted and checked but change
nothing, because they have no meaning for a log in the same process: `acks`, `max.in.flight.requests.per.connection`,
`request.timeout.ms`, `client.id` and those of adaptive partitioning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from octavo.errors import InvalidConfig
from octavo.log.clients.config import NO_INTERCEPTORS, given, without_connections
from octavo.log.config.options import Options, option
from octavo.log.config.values import Member, Name, Switch, Text, Word, int32, int64
from octavo.records.layout import CODEC_WORDS, MAX_INT32, Codec

_MAX_IN_FLIGHT: Final = 5  # as many batches as a log remembers of each producer
_TO_SEND: Final = "give it to each send, as on_delivery"
_ELSEWHERE: Final = {
    **without_connections("producer"),
    "key.serializer": "give the producer a function as key_serializer",
    "value.serializer": "give the producer a function as value_serializer",
    "partitioner.class": "give the producer a function as partitioner",
    "interceptor.classes": NO_INTERCEPTORS,
    "allow.auto.create.topics": "a producer makes no topics here: write DataDirectory.create_topic",
    "on_delivery": _TO_SEND,
    "on.delivery": _TO_SEND,
    "dr_cb": _TO_SEND,
    "delivery.report.only.error": "on_delivery is called for every record that is sent with it",
    "queue.buffering.max.ms": "write linger.ms",
    "queue.buffering.max.kbytes": "write buffer.memory, in bytes",
    "queue.buffering.max.messages": "write buffer.memory, in bytes",
    "batch.num.messages": "write batch.size, in bytes",
    "message.max.bytes": "write max.request.size",
    "message.timeout.ms": "write delivery.timeout.ms",
    "message.send.max.retries": "write retries",
    "request.required.acks": "write acks",
    "compression.codec": "write compression.type",
    "compression.level": "write compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "partitioner": "give the producer a function as partitioner",
    "transaction.two.phase.commit.enable": "transactions in two phases are not known here",
}


class _Acks(Word):
    """The kind of Kafka's words for `acks`. Those that are numbers may also be given as `int`."""

    def accepts(self, value: Any) -> bool:
        return super().accepts(str(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """The configuration of a producer. Fields have Kafka's names, with `_` for `.`. Raises `InvalidConfig`."""

    # What goes into a batch, and when the batch is appended.
    batch_size: int = option(16_384, int32(0))
    linger_ms: int = option(5, int64(0))
    buffer_memory: int = option(32 << 20, int64(0))
    max_block_ms: int = option(60_000, int64(0))
    max_request_size: int = option(1 << 20, int32(0))
    compression_type: Codec = option(  # noqa: RUF009 (a field, as the others)
        Codec.NONE,
        Member(CODEC_WORDS),
    )
    compression_gzip_level: int = option(-1, int32(1, 9, also=-1))
    compression_lz4_level: int = option(9, int32(1, 17))
    compression_zstd_level: int = option(3, int32(-(1 << 17), 22))

    # Which partition a record goes to.
    partitioner_ignore_keys: bool = option(False, Switch())
    partitioner_adaptive_partitioning_enable: bool = option(True, Switch())
    partitioner_availability_timeout_ms: int = option(0, int64(0))

    # What happens on failure.
    acks: str = option("all", _Acks(("all", "-1", "0", "1")))
    retries: int = option(MAX_INT32, int32(0))
    retry_backoff_ms: int = option(100, int64(0))
    retry_backoff_max_ms: int = option(1_000, int64(0))
    delivery_timeout_ms: int = option(120_000, int32(0))
    request_timeout_ms: int = option(30_000, int32(0))
    max_in_flight_requests_per_connection: int = option(5, int32(1))

    # Identity of the producer.
    client_id: str = option("", Text())
    enable_idempotence: bool = option(True, Switch())
    transactional_id: str | None = option(None, Name())
    transaction_timeout_ms: int = option(60_000, int32())

    def __post_init__(self) -> None:
        _OPTIONS.check(self)

    @classmethod
    def of(cls, properties: Mapping[str, Any] | None = None, **more: Any) -> ProducerConfig:
        """Build a configuration: the defaults, overridden by `properties`, then by `more` (names with `_` for `.`).

        A value is a string, as in a properties file, or the parsed value itself. Raises `InvalidConfig`.
        """
        values = _OPTIONS.read(given(properties, more))
        config = cls(**_settled(values))
        config._check(values)
        return config

    def _check(self, given: Mapping[str, Any]) -> None:
        """Check Kafka's rules on which options go together."""
        least = min(self.linger_ms + self.request_timeout_ms, MAX_INT32)
        if self.delivery_timeout_ms < least:
            limit = f"it must not be below linger.ms and request.timeout.ms together, which is {least}"
            raise InvalidConfig("delivery.timeout.ms", self.delivery_timeout_ms, limit)
        if not self.enable_idempotence:
            if self.transactional_id is not None:
                raise InvalidConfig("transactional.id", self.transactional_id, "it needs enable.idempotence")
            return
        for name, value, allowed, limit in _against_idempotence(self):
            if not allowed:
                raise InvalidConfig(name, value, f"{limit} with enable.idempotence")

    @property
    def level(self) -> int | None:
        """The compression level; None means the codec's default."""
        codec = self.compression_type
        if codec == Codec.GZIP:
            return None if self.compression_gzip_level == -1 else self.compression_gzip_level
        if codec == Codec.LZ4:
            return self.compression_lz4_level
        return self.compression_zstd_level if codec == Codec.ZSTD else None


_OPTIONS: Final = Options(ProducerConfig, "producer", refused=_ELSEWHERE)


def _settled(values: dict[str, Any]) -> dict[str, Any]:
    """Adjust options that were not given, as Kafka does: lengthen the timeout, turn off idempotence if impossible."""
    config = ProducerConfig(**values)
    settled = dict(values)
    least = min(config.linger_ms + config.request_timeout_ms, MAX_INT32)
    if "delivery_timeout_ms" not in values and config.delivery_timeout_ms < least:
        settled["delivery_timeout_ms"] = least
    if "enable_idempotence" not in values and config.transactional_id is None:
        settled["enable_idempotence"] = all(allowed for _, _, allowed, _ in _against_idempotence(config))
    return settled


def _against_idempotence(config: ProducerConfig) -> list[tuple[str, Any, bool, str]]:
    """Return what idempotence requires: option name, value, whether the value is allowed, and what it must be."""
    in_flight = config.max_in_flight_requests_per_connection
    return [
        ("acks", config.acks, str(config.acks) in ("all", "-1"), "it must be all"),
        ("retries", config.retries, config.retries > 0, "it must be above 0"),
        (
            "max.in.flight.requests.per.connection",
            in_flight,
            in_flight <= _MAX_IN_FLIGHT,
            f"it must be at most {_MAX_IN_FLIGHT}",
        ),
    ]
