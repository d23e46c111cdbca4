"""Configuration of a consumer, with the names, limits and defaults of Apache Kafka 4.3's `ConsumerConfig`.

    ConsumerConfig.of({"group.id": "g", "auto.offset.reset": "earliest"})
    ConsumerConfig.of({}, group_id="g")

Options about brokers and connections are refused: there are none here. Members of groups speak the consumer protocol of
KIP-848, in which the coordinator has the settings of sessions and heartbeats. `fetch.max.bytes` is accepted and checked
but changes nothing: one partition is read at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from octavo.errors import InvalidConfig
from octavo.log.clients.config import NO_INTERCEPTORS, given, without_connections
from octavo.log.config.options import Options, option
from octavo.log.config.values import Choice, Member, Name, Switch, Text, Word, int32
from octavo.log.view import ISOLATION_WORDS, Isolation

_HERE: Final = "it is about brokers and connections, and this consumer has none"
_OF_GROUPS: Final = "members speak the consumer protocol here, in which the broker has it, as group.consumer."
_ELSEWHERE: Final = {
    **without_connections("consumer"),
    "client.rack": _HERE,
    "default.api.timeout.ms": _HERE,
    "request.timeout.ms": _HERE,
    "retry.backoff.ms": _HERE,
    "retry.backoff.max.ms": _HERE,
    "heartbeat.interval.ms": f"{_OF_GROUPS}heartbeat.interval.ms",
    "partition.assignment.strategy": "write group.remote.assignor, uniform or range",
    "session.timeout.ms": f"{_OF_GROUPS}session.timeout.ms",
    "allow.auto.create.topics": "a consumer makes no topics here",
    "key.deserializer": "give the consumer a function as key_deserializer",
    "value.deserializer": "give the consumer a function as value_deserializer",
    "interceptor.classes": NO_INTERCEPTORS,
    "consumer.timeout.ms": "iterate over consumer.records(timeout=...), in seconds",
    "default.offset.commit.callback": "commit() raises its errors",
    "enable.auto.offset.store": "write enable.auto.commit, and commit({partition: offset})",
    "enable.partition.eof": "poll returns an empty list at the end",
    "fetch.message.max.bytes": "write max.partition.fetch.bytes",
    "fetch.wait.max.ms": "write fetch.max.wait.ms",
    "enable.incremental.fetch.sessions": _HERE,
    "max.in.flight.requests.per.connection": _HERE,
}

_DURATION: Final = re.compile(
    r"P(?:(?P<days>[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+)(?:\.(?P<part>[0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
_BY_DURATION: Final = "by_duration:"
_MAX_MS: Final = 1 << 62
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
NONE: Final = "none"


class OffsetReset(NamedTuple):
    """Where a consumer begins when there is no committed offset (`auto.offset.reset`)."""

    where: str  # earliest, latest, none, or by_duration:
    duration_ms: int = 0  # duration of by_duration


class _Resets(Choice):
    """Parses earliest, latest, none, or by_duration with a duration in the syntax of Java's `Duration` (KIP-1106)."""

    allowed = "earliest, latest, none, or by_duration:P<days>DT<hours>H<minutes>M<seconds>S"

    def read(self, text: str) -> OffsetReset:
        if text in (EARLIEST, LATEST, NONE):
            return OffsetReset(text)
        if not text.startswith(_BY_DURATION):
            raise ValueError(text)
        return OffsetReset(_BY_DURATION, _milliseconds(text[len(_BY_DURATION) :]))

    def accepts(self, value: Any) -> bool:
        return isinstance(value, OffsetReset) and value.where in (EARLIEST, LATEST, NONE, _BY_DURATION)

    def write(self, value: OffsetReset) -> str:
        seconds, ms = divmod(value.duration_ms, 1000)
        return value.where if value.where != _BY_DURATION else f"{_BY_DURATION}PT{seconds}.{ms:03d}S"


class _Perhaps(Switch):
    """Accepts `true`, `false`, or no value."""

    def accepts(self, value: Any) -> bool:
        return value is None or type(value) is bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """The configuration of a consumer. Fields have Kafka's names, with `_` for `.`. Raises `InvalidConfig`."""

    # Where it begins, and where it keeps its position.
    group_id: str | None = option(None, Name())
    auto_offset_reset: OffsetReset = option(OffsetReset(LATEST), _Resets())  # noqa: RUF009 (a field, as the others)
    enable_auto_commit: bool | None = option(None, _Perhaps())  # None: true if there is a group
    auto_commit_interval_ms: int = option(5_000, int32(0))

    # What it is in its group.
    group_instance_id: str | None = option(None, Name())
    group_protocol: str = option("consumer", Word(("consumer",)))
    group_remote_assignor: str | None = option(None, Name())
    max_poll_interval_ms: int = option(300_000, int32(1))

    # Which records it gets.
    isolation_level: Isolation = option(  # noqa: RUF009 (a field, as the others)
        Isolation.HIGH_WATERMARK,
        Member(ISOLATION_WORDS),
    )
    exclude_internal_topics: bool = option(True, Switch())

    # How much it reads at once.
    max_poll_records: int = option(500, int32(1))
    max_partition_fetch_bytes: int = option(1 << 20, int32(0))
    fetch_min_bytes: int = option(1, int32(0))
    fetch_max_bytes: int = option(50 << 20, int32(0))
    fetch_max_wait_ms: int = option(500, int32(0))
    check_crcs: bool = option(True, Switch())

    client_id: str = option("", Text())

    def __post_init__(self) -> None:
        _OPTIONS.check(self)

    @classmethod
    def of(cls, properties: Mapping[str, Any] | None = None, **more: Any) -> ConsumerConfig:
        """Build a configuration: the defaults, overridden by `properties`, then by `more` (names with `_` for `.`).

        A value is a string, as in a properties file, or the parsed value itself. Raises `InvalidConfig`.
        """
        values = _OPTIONS.read(given(properties, more))
        config = cls(**values)
        if config.enable_auto_commit and config.group_id is None:
            raise InvalidConfig("enable.auto.commit", True, "without group.id it must be false")
        return config


_OPTIONS: Final = Options(ConsumerConfig, "consumer", refused=_ELSEWHERE)


def _milliseconds(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration without years and months. Raises `ValueError`."""
    found = _DURATION.fullmatch(text)
    if found is None or len(text) == 1 or text[-1] in "tT":
        raise ValueError(text)
    days, hours, minutes, seconds = (int(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    part_ms = int((found["part"] or "").ljust(3, "0")[:3])
    total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + part_ms
    if total > _MAX_MS:
        raise ValueError(text)
    return total
