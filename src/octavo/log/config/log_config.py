"""The configuration of a topic, with the names, units, limits and defaults of Apache Kafka 4.3.

    LogConfig.from_properties({"segment.ms": "3600000", "cleanup.policy": "compact"})
    LogConfig(segment_ms=3_600_000, cleanup_policy=frozenset({"compact"}))

A field has Kafka's name with `_` in place of `.`. There is one exception: `segment_bytes` holds the size that applies.
If `internal.segment.bytes` is given, `segment_bytes` holds that value. Kafka has that setting for tests: only it allows
segments below 1 MiB.

Settings for features that Octavo lacks (replication, tiered storage) are kept and checked, because other readers of
the directory use them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from octavo.errors import InvalidConfig
from octavo.log.config.options import Options, option
from octavo.log.config.values import Member, Ratio, Switch, Throttled, Word, Words, int32, int64
from octavo.records.layout import MAX_INT64, Codec, TimestampType

COMPACT: Final = "compact"
DELETE: Final = "delete"
UNLIMITED: Final = -1  # retention without a limit
AS_RETENTION: Final = -2  # local retention that equals retention

_SEGMENT_BYTES: Final = "segment.bytes"
_INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"
_MIN_SEGMENT_BYTES: Final = 1 << 20
_OLD_MIN_SEGMENT_BYTES: Final = 14  # before Kafka 4.0
_DAY_MS: Final = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The configuration of one topic's logs. Raises `InvalidConfig` for values that Kafka rejects."""

    # Segments and their indexes.
    segment_bytes: int = option(1 << 30, int32())
    segment_ms: int = option(7 * _DAY_MS, int64(1))
    segment_jitter_ms: int = option(0, int64(0))
    segment_index_bytes: int = option(10 << 20, int32(4))
    index_interval_bytes: int = option(4096, int32(0))
    preallocate: bool = option(False, Switch())
    file_delete_delay_ms: int = option(60_000, int64(0))

    # Flushing to disk.
    flush_messages: int = option(MAX_INT64, int64(1))
    flush_ms: int = option(MAX_INT64, int64(0))

    # Retention and compaction.
    cleanup_policy: frozenset[str] = option(frozenset({DELETE}), Words((COMPACT, DELETE)))
    retention_ms: int = option(7 * _DAY_MS, int64(-1))
    retention_bytes: int = option(-1, int64())
    delete_retention_ms: int = option(_DAY_MS, int64(0))
    min_compaction_lag_ms: int = option(0, int64(0))
    max_compaction_lag_ms: int = option(MAX_INT64, int64(1))
    min_cleanable_dirty_ratio: float = option(0.5, Ratio())

    # Which batches are accepted, and how they are stored.
    max_message_bytes: int = option((1 << 20) + 12, int32(0))
    compression_type: str = option(
        "producer",
        Word(
            ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
            {codec: "uncompressed" if codec is Codec.NONE else codec.name.lower() for codec in Codec},
        ),
    )
    compression_gzip_level: int = option(-1, int32(1, 9, also=-1))
    compression_lz4_level: int = option(9, int32(1, 17))
    compression_zstd_level: int = option(3, int32(-(1 << 17), 22))
    message_timestamp_type: TimestampType = option(  # noqa: RUF009 (a field, as the others)
        TimestampType.CREATE_TIME,
        Member({"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}),
    )
    message_timestamp_before_max_ms: int = option(MAX_INT64, int64(0))
    message_timestamp_after_max_ms: int = option(60 * 60 * 1000, int64(0))

    # Replication.
    min_insync_replicas: int = option(1, int32(1))
    unclean_leader_election_enable: bool = option(False, Switch())
    leader_replication_throttled_replicas: tuple[str, ...] = option((), Throttled())
    follower_replication_throttled_replicas: tuple[str, ...] = option((), Throttled())

    # Tiered storage.
    remote_storage_enable: bool = option(False, Switch())
    remote_log_copy_disable: bool = option(False, Switch())
    remote_log_delete_on_disable: bool = option(False, Switch())
    local_retention_ms: int = option(AS_RETENTION, int64(AS_RETENTION))
    local_retention_bytes: int = option(AS_RETENTION, int64(AS_RETENTION))

    def __post_init__(self) -> None:
        TOPIC_OPTIONS.check(self)
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            limit = f"it must not be above max.compaction.lag.ms, which is {self.max_compaction_lag_ms}"
            raise InvalidConfig("min.compaction.lag.ms", self.min_compaction_lag_ms, limit)
        if self.remote_storage_enable:
            self._check_tiers()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LogConfig:
        """Return the defaults, overridden by `properties`. Raises `InvalidConfig`."""
        return _parsed(frozenset(properties.items()), stored=False)

    @classmethod
    def from_stored(cls, properties: Mapping[str, str]) -> LogConfig:
        """Parse properties that an older Kafka may have accepted and stored.

        Names that are no longer known are skipped, as in Kafka. Segments may be as small as that Kafka allowed.
        """
        return _parsed(frozenset(properties.items()), stored=True)

    def to_properties(self) -> dict[str, str]:
        """Return the settings that differ from the defaults, by Kafka's names. `from_properties` is the inverse."""
        properties = {}
        for name, attribute, kind, default in TOPIC_OPTIONS.all:
            value = getattr(self, attribute)
            if value != default:
                small = name == _SEGMENT_BYTES and value < _MIN_SEGMENT_BYTES
                properties[_INTERNAL_SEGMENT_BYTES if small else name] = kind.write(value)
        return properties

    def with_properties(self, properties: Mapping[str, str | None]) -> LogConfig:
        """Return a copy with `properties` changed; None resets one to its default. Raises `InvalidConfig`."""
        merged = self.to_properties()
        if _SEGMENT_BYTES in properties:  # only the size that applies is stored, and the later setting wins
            merged.pop(_INTERNAL_SEGMENT_BYTES, None)
        for name, value in properties.items():
            if value is None:
                TOPIC_OPTIONS.check_name(name)
                merged.pop(name, None)
            else:
                merged[name] = value
        return self.from_properties(merged)

    @property
    def is_compacted(self) -> bool:
        """Whether compaction keeps only the last record of each key."""
        return COMPACT in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether old records may be deleted by age or by size."""
        return DELETE in self.cleanup_policy

    @property
    def max_segment_ms(self) -> int:
        """The age at which a segment rolls. Compacted topics roll within the maximum compaction lag."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms

    def random_jitter_ms(self) -> int:
        """Return how much earlier the next segment rolls, so that not all segments roll at once."""
        limit = min(self.segment_jitter_ms, self.segment_ms)
        return random.randrange(limit) if limit > 0 else 0

    def _check_tiers(self) -> None:
        """Check Kafka's rules for a broker with tiered storage. Raises `InvalidConfig`."""
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


def _options(min_segment_bytes: int) -> Options:
    return Options(
        LogConfig,
        "topic",
        parsed_as={_SEGMENT_BYTES: int32(min_segment_bytes), _INTERNAL_SEGMENT_BYTES: int32()},
        aliases={_INTERNAL_SEGMENT_BYTES: "segment_bytes"},
    )


TOPIC_OPTIONS: Final = _options(_MIN_SEGMENT_BYTES)
_STORED_OPTIONS: Final = _options(_OLD_MIN_SEGMENT_BYTES)

CONFIG_NAMES: Final = TOPIC_OPTIONS.names


@lru_cache(maxsize=4096)  # all partitions of a topic, and many topics, share one configuration
def _parsed(properties: frozenset[tuple[str, str]], *, stored: bool) -> LogConfig:
    options = _STORED_OPTIONS if stored else TOPIC_OPTIONS
    # In this order, internal.segment.bytes comes after segment.bytes, and takes precedence.
    given = sorted(properties, reverse=True)
    return LogConfig(**dict(options.parse(name, text) for name, text in given if not stored or name in CONFIG_NAMES))
