"""Decide which of a log's oldest segments may be deleted, by Kafka's policies and by policies of other packages.

A policy gets a view of the log at one moment. It answers how many segments, starting with the oldest, may be deleted.
Kafka's own three come first, in Kafka's order: segments before the log's start offset, segments above
`retention.bytes`, segments older than `retention.ms`. Each policy sees only what the ones before it left. Policies of
other packages follow, ordered by name:

    [project.entry-points."octavo.retention"]
    tidy = "my_package:TidyPolicy"        # a policy, or a class or function that makes one

Entry points are looked up when they are first needed. Whatever a policy answers, a segment is deleted only if all of
it is below the high watermark, and the last segment only if it is not empty. If `cleanup.policy` does not include
`delete`, only the start offset counts. This module only decides; the log rolls, renames and removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, NamedTuple, Protocol, runtime_checkable

from octavo.errors import BadPolicy
from octavo.log.config.log_config import LogConfig
from octavo.log.names import TopicPartition
from octavo.log.view import View

ENTRY_POINTS: Final = "octavo.retention"


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentView:
    """One segment of a log at one moment."""

    base_offset: int
    next_offset: int  # the base offset of the next segment; the log end offset for the last
    size: int
    largest_timestamp_ms: int  # the largest timestamp of its records; -1 if they have none
    last_modified_ms: int

    @property
    def age_timestamp_ms(self) -> int:
        """The time from which the segment's age counts: its largest timestamp, or else the time of the last write."""
        return self.largest_timestamp_ms if self.largest_timestamp_ms >= 0 else self.last_modified_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """A log at one moment. The last segment is the active one."""

    partition: TopicPartition
    config: LogConfig
    start_offset: int
    end_offset: int
    high_watermark: int
    segments: tuple[SegmentView, ...]

    @classmethod
    def of(cls, partition: TopicPartition, config: LogConfig, view: View) -> LogView:
        """Make the view that policies get, from the view that readers get."""
        return cls(
            partition=partition,
            config=config,
            start_offset=view.start_offset,
            end_offset=view.end_offset,
            high_watermark=view.high_watermark,
            segments=tuple(
                SegmentView(
                    base_offset=segment.base_offset,
                    next_offset=view.segment_end(number),
                    size=segment.size,
                    largest_timestamp_ms=segment.largest.timestamp_ms,
                    last_modified_ms=segment.modified_ms(),
                )
                for number, segment in enumerate(view.segments)
            ),
        )

    @property
    def size(self) -> int:
        """The number of bytes in all segments."""
        return sum(segment.size for segment in self.segments)

    def without_oldest(self, count: int) -> LogView:
        """Return the log as it would be without its first `count` segments."""
        if not count:
            return self
        start = max(self.start_offset, self.segments[count - 1].next_offset)
        return replace(self, start_offset=start, segments=self.segments[count:])


class Expiry(NamedTuple):
    """The answer of a policy: how many of the oldest segments may be deleted, and a reason for people to read."""

    segment_count: int
    reason: str = ""


@runtime_checkable
class RetentionPolicy(Protocol):
    """A rule that says which segments are no longer wanted."""

    @property
    def name(self) -> str:
        """The name of the policy in reports and errors."""

    def expired(self, log: LogView, now_ms: int) -> Expiry:
        """Return how many of the oldest segments may be deleted."""


class ByStartOffset:
    """Expires segments that lie entirely before the log's start offset, whatever moved that offset."""

    name: Final = "start-offset"

    def expired(self, log: LogView, now_ms: int) -> Expiry:
        """Count the segments that end before the start offset."""
        count = 0
        while count < len(log.segments) - 1 and log.segments[count].next_offset <= log.start_offset:
            count += 1
        return Expiry(count, f"all of it is before the log's start offset {log.start_offset}")


class BySize:
    """Expires segments as long as at least `retention.bytes` are left in the log."""

    name: Final = "size"

    def expired(self, log: LogView, now_ms: int) -> Expiry:
        """Count the oldest segments that may go while at least `retention.bytes` stay."""
        limit = log.config.retention_bytes
        surplus = log.size - limit
        count = 0
        if limit >= 0:
            while count < len(log.segments) and surplus >= log.segments[count].size:
                surplus -= log.segments[count].size
                count += 1
        return Expiry(count, f"without it the log still has retention.bytes, {limit}")


class ByTime:
    """Expires segments older than `retention.ms`. A record from the future keeps its segment and all that follow it."""

    name: Final = "time"

    def expired(self, log: LogView, now_ms: int) -> Expiry:
        """Count the oldest segments, up to the first that is not older than `retention.ms`."""
        limit = log.config.retention_ms
        count = 0
        if limit >= 0:
            while count < len(log.segments) and now_ms - log.segments[count].age_timestamp_ms > limit:
                count += 1
        return Expiry(count, f"all of it is older than retention.ms, {limit}")


class Expired(NamedTuple):
    """A segment that may be deleted, with the policy that says so and its reason."""

    segment: SegmentView
    policy: str
    reason: str


_ALWAYS: Final[tuple[RetentionPolicy, ...]] = (ByStartOffset(),)
BUILT_IN: Final[tuple[RetentionPolicy, ...]] = (*_ALWAYS, BySize(), ByTime())


def expired_segments(
    log: LogView, now_ms: int, policies: Sequence[RetentionPolicy] | None = None
) -> tuple[Expired, ...]:
    """Return the segments that may be deleted, oldest first. `policies`: by default, all that apply to the topic.

    If all segments may be deleted, the log must roll first, because it always has a segment. Raises `BadPolicy`.
    """
    if policies is None:
        policies = policies_for(log.config)
    expired: list[Expired] = []
    for policy in policies:
        count, reason = _ask(policy, log, now_ms)
        count = min(count, _deletable_count(log))
        expired += [Expired(segment, policy.name, reason) for segment in log.segments[:count]]
        log = log.without_oldest(count)
    return tuple(expired)


def policies_for(config: LogConfig) -> tuple[RetentionPolicy, ...]:
    """Return the policies that apply to a topic. Raises `BadPolicy`."""
    # Segments of tiered topics are deleted once they are copied, and it is not known here whether they are.
    is_tiered = config.remote_storage_enable and not config.remote_log_copy_disable
    if not config.is_deleted or is_tiered:
        return _ALWAYS
    return (*BUILT_IN, *_installed())


def _deletable_count(log: LogView) -> int:
    count = 0
    last = len(log.segments) - 1
    for index, segment in enumerate(log.segments):
        if segment.next_offset > log.high_watermark or (index == last and not segment.size):
            break
        count += 1
    return count


def _ask(policy: RetentionPolicy, log: LogView, now_ms: int) -> Expiry:
    try:
        answer: object = policy.expired(log, now_ms)
    except Exception as error:
        raise BadPolicy(policy.name, f"fails: {error!r}") from error
    match answer:
        case Expiry(int(count), _) if count >= 0:
            return answer
    raise BadPolicy(policy.name, f"answers {answer!r}, which is no Expiry of 0 or more segments")


@cache
def _installed() -> tuple[RetentionPolicy, ...]:
    """Return the policies of other packages. The entry points are read once per process."""
    from importlib.metadata import entry_points  # takes longer to import than this whole module

    policies: dict[str, RetentionPolicy] = {}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        if entry.name in policies:
            raise BadPolicy(entry.name, "is there twice")
        try:
            found = entry.load()
            policy = found if isinstance(found, RetentionPolicy) and not isinstance(found, type) else found()
        except Exception as error:
            raise BadPolicy(entry.name, f"cannot be loaded from {entry.value}: {error!r}") from error
        if not isinstance(policy, RetentionPolicy):
            raise BadPolicy(entry.name, f"is {policy!r}, which has no name or no method expired")
        policies[entry.name] = policy
    return tuple(policies.values())
