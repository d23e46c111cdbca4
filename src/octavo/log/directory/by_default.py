"""Tell what Kafka's default of `retention.ms` would delete, where nobody has said how long records are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from octavo.errors import OctavoError
from octavo.log.config.log_config import LogConfig
from octavo.log.names import TopicPartition
from octavo.log.recovery_report import in_lines
from octavo.log.retention import LogView, expired_segments
from octavo.log.view import View

DEFAULT_RETENTION_MS: Final = LogConfig().retention_ms


def expiring_bytes(views: Iterable[tuple[TopicPartition, LogConfig, View]], now_ms: int) -> dict[str, int]:
    """Return how many bytes of each topic Kafka's default would delete now, by the names of the topics.

    views: the logs of the topics that have no retention of their own; what cannot be read of them does not count
    """
    sizes: dict[str, int] = {}
    for partition, config, view in views:
        sizes.setdefault(partition.topic, 0)
        with suppress(OctavoError, OSError):  # a damaged log is no reason not to serve the others
            log = LogView.of(partition, replace(config, retention_ms=DEFAULT_RETENTION_MS), view)
            sizes[partition.topic] += sum(expired.segment.size for expired in expired_segments(log, now_ms))
    return dict(sorted(sizes.items()))


def list_sizes(sizes: Mapping[str, int]) -> list[str]:
    """Return lists of topics with their bytes, for people. None of them is too long for a line of a log."""
    return in_lines(f"{topic} ({size:,} bytes)" for topic, size in sizes.items())
