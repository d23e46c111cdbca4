"""The configuration of a topic, by Kafka's names, units, limits and defaults (those of Apache Kafka 4.3).

    LogConfig.from_properties({"segment.ms": "3600000", "cleanup.policy": "compact"})
    LogConfig(segment_ms=3_600_000, cleanup_policy=frozenset({"compact"}))

A field has the name that Kafka has, with `_` for `.`. One is different: `segment_bytes` is the size that counts. It
holds `internal.segment.bytes` where that is given, which Kafka has for tests: only so can a segment be below 1 MiB.

Settings of what is not here (replication, tiered storage) are kept and checked, for the sake of who else reads them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Final

from octavo.errors import InvalidConfig
from octavo.log.options import Kind, Member, Ratio, Switch, Throttled, Word, Words, int32, int64
from octavo.records.layout import MAX_INT64, TimestampType

COMPACT: Final = "compact"
DELETE: Final = "delete"
UNLIMITED: Final = -1  # of retention
AS_RETENTION: Final = -2  # of local retention: what retention itself is

_SEGMENT_BYTES: Final = "segment.bytes"
_INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"
_MIN_SEGMENT_BYTES: Final = 1 << 20
_OLD_MIN_SEGMENT_BYTES: Final = 14  # before Kafka 4.0
_DAY_MS: Final = 24 * 60 * 60 * 1000


def _option(default: Any, kind: Kind) -> Any:
    return field(default=default, metadata={"kind": kind})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """How the logs of one topic are kept. Raises `InvalidConfig` for what Kafka would not take."""

    # Segments, and what is beside them.
    segment_bytes: int = _option(1 << 30, int32())
    segment_ms: int = _option(7 * _DAY_MS, int64(1))
    segment_jitter_ms: int = _option(0, int64(0))
    segment_index_bytes: int = _option(10 << 20, int32(4))
    index_interval_bytes: int = _option(4096, int32(0))
    preallocate: bool = _option(False, Switch())
    file_delete_delay_ms: int = _option(60_000, int64(0))

    # When it must be on the disk.
    flush_messages: int = _option(MAX_INT64, int64(1))
    flush_ms: int = _option(MAX_INT64, int64(0))

    # What may go.
    cleanup_policy: frozenset[str] = _option(frozenset({DELETE}), Words((COMPACT, DELETE)))
    retention_ms: int = _option(7 * _DAY_MS, int64(-1))
    retention_bytes: int = _option(-1, int64())
    delete_retention_ms: int = _option(_DAY_MS, int64(0))
    min_compaction_lag_ms: int = _option(0, int64(0))
    max_compaction_lag_ms: int = _option(MAX_INT64, int64(1))
    min_cleanable_dirty_ratio: float = _option(0.5, Ratio())

    # What may come.
    max_message_bytes: int = _option((1 << 20) + 12, int32(0))
    compression_type: str = _option("producer", Word(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")))
    compression_gzip_level: int = _option(-1, int32(1, 9, also=-1))
    compression_lz4_level: int = _option(9, int32(1, 17))
    compression_zstd_level: int = _option(3, int32(-(1 << 17), 22))
    message_timestamp_type: TimestampType = _option(  # noqa: RUF009 (a field, as the others)
        TimestampType.CREATE_TIME,
        Member({"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}),
    )
    message_timestamp_before_max_ms: int = _option(MAX_INT64, int64(0))
    message_timestamp_after_max_ms: int = _option(60 * 60 * 1000, int64(0))

    # Of a cluster.
    min_insync_replicas: int = _option(1, int32(1))
    unclean_leader_election_enable: bool = _option(False, Switch())
    leader_replication_throttled_replicas: tuple[str, ...] = _option((), Throttled())
    follower_replication_throttled_replicas: tuple[str, ...] = _option((), Throttled())

    # Of tiered storage.
    remote_storage_enable: bool = _option(False, Switch())
    remote_log_copy_disable: bool = _option(False, Switch())
    remote_log_delete_on_disable: bool = _option(False, Switch())
    local_retention_ms: int = _option(AS_RETENTION, int64(AS_RETENTION))
    local_retention_bytes: int = _option(AS_RETENTION, int64(AS_RETENTION))

    def __post_init__(self) -> None:
        for name, attribute, kind, default in _OPTIONS:
            value = getattr(self, attribute)
            if value is not default and not kind.takes(value):
                raise InvalidConfig(name, value, f"it must be {kind.allowed}")
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            limit = f"it must not be above max.compaction.lag.ms, which is {self.max_compaction_lag_ms}"
            raise InvalidConfig("min.compaction.lag.ms", self.min_compaction_lag_ms, limit)
        if self.remote_storage_enable:
            self._check_tiers()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LogConfig:
        """The configuration that differs from the defaults in `properties`. Raises `InvalidConfig`."""
        return _parsed(frozenset(properties.items()), stored=False)

    @classmethod
    def from_stored(cls, properties: Mapping[str, str]) -> LogConfig:
        """The same for what an older Kafka may have accepted and stored.

        Names that are no longer known are left out, as Kafka does, and a segment may be as small as it was then.
        """
        return _parsed(frozenset(properties.items()), stored=True)

    def to_properties(self) -> dict[str, str]:
        """Whatever differs from the defaults, by Kafka's names; `from_properties` makes the same of it again."""
        properties = {}
        for name, attribute, kind, default in _OPTIONS:
            value = getattr(self, attribute)
            if value != default:
                small = name == _SEGMENT_BYTES and value < _MIN_SEGMENT_BYTES
                properties[_INTERNAL_SEGMENT_BYTES if small else name] = kind.write(value)
        return properties

    def with_properties(self, properties: Mapping[str, str | None]) -> LogConfig:
        """With some properties changed, and those that are None back at their defaults. Raises `InvalidConfig`."""
        merged = self.to_properties()
        if _SEGMENT_BYTES in properties:  # only the size that counts is known: the later word has it
            merged.pop(_INTERNAL_SEGMENT_BYTES, None)
        for name, value in properties.items():
            if value is None:
                _kind(name, value)  # raises
                merged.pop(name, None)
            else:
                merged[name] = value
        return self.from_properties(merged)

    @property
    def is_compacted(self) -> bool:
        """Whether only the last record of each key must stay."""
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether old records may go, by age or by size."""
        return DELETE in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """How long a segment may be appended to: on compacted topics so that nothing waits too long for compaction."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    def random_jitter_ms(self) -> int:
        """By how much the next segment rolls before its time, so that not all segments do at once."""
        limit = min(self.segment_jitter_ms, self.segment_ms)
        return random.randrange(limit) if limit > 0 else 0

    def _check_tiers(self) -> None:
        """Kafka's rules on a broker with tiered storage."""
        if self.is_compacted:
            raise InvalidConfig("cleanup.policy", COMPACT, "with remote.storage.enable it must be delete, or nothing")
        for unit in ("ms", "bytes"):
            name = f"local.retention.{unit}"
            local: int = getattr(self, f"local_retention_{unit}")
            whole: int = getattr(self, f"retention_{unit}")
            if local == AS_RETENTION:
                continue
            if whole > UNLIMITED and (local == UNLIMITED or local > whole):
                raise InvalidConfig(name, local, f"it must not be above retention.{unit}, which is {whole}")
            if self.remote_log_copy_disable and local != whole:
                same = f"with remote.log.copy.disable it must be as retention.{unit}, which is {whole}"
                raise InvalidConfig(name, local, same)


# Kafka's name, the attribute, what it takes, its default.
_OPTIONS: Final[tuple[tuple[str, str, Kind, Any], ...]] = tuple(
    (option.name.replace("_", "."), option.name, option.metadata["kind"], option.default)
    for option in fields(LogConfig)
)
_ATTRIBUTES: Final = {name: attribute for name, attribute, _, _ in _OPTIONS} | {
    _INTERNAL_SEGMENT_BYTES: "segment_bytes"
}
_KINDS: Final[dict[str, Kind]] = {name: kind for name, _, kind, _ in _OPTIONS} | {
    _SEGMENT_BYTES: int32(_MIN_SEGMENT_BYTES),
    _INTERNAL_SEGMENT_BYTES: int32(),
}
_KINDS_OF_OLD: Final = _KINDS | {_SEGMENT_BYTES: int32(_OLD_MIN_SEGMENT_BYTES)}

CONFIG_NAMES: Final = frozenset(_KINDS)


def _kind(name: str, value: object) -> Kind:
    try:
        return _KINDS[name]
    except KeyError:
        raise InvalidConfig(name, value, "Kafka has no topic configuration of this name") from None


@lru_cache(maxsize=4096)  # the partitions of a topic, and many topics, have the same
def _parsed(properties: frozenset[tuple[str, str]], *, stored: bool) -> LogConfig:
    values: dict[str, Any] = {}
    for name, text in sorted(properties, reverse=True):  # so that internal.segment.bytes comes after segment.bytes
        if stored and name not in _KINDS:
            continue
        kind = _KINDS_OF_OLD[name] if stored else _kind(name, text)
        try:
            value = kind.read(text)
        except (ValueError, AttributeError):
            raise InvalidConfig(name, text, f"it must be {kind.allowed}") from None
        if not kind.takes(value):
            raise InvalidConfig(name, text, f"it must be {kind.allowed}")
        values[_ATTRIBUTES[name]] = value
    return LogConfig(**values)
