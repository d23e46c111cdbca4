"""What members subscribe to, by names and by regular expressions: `Subscribing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from octavo.coordinator.groups.consumer.changes import Changes
from octavo.coordinator.groups.consumer.group import ConsumerGroup, ConsumerMember, Resolved
from octavo.coordinator.groups.consumer.regex import check_regex, matching
from octavo.schemas.consumer_offsets.consumer_groups import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)

if TYPE_CHECKING:
    from octavo.coordinator.groups.group_shard import GroupShard

REGEX: Final = "consumer regex"  # the timer at which a group's regular expressions are resolved
_SHORTEST_MS: Final = 10_000  # between two times at which they are resolved, as in Kafka


class Subscribing:
    """Subscriptions of members of consumer groups."""

    def __init__(self, shard: GroupShard, changes: Changes) -> None:
        self._shard: Final = shard
        self._changes: Final = changes

    def update(self, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> bool:
        """Write what has changed of a member, and begin another epoch where that matters to others.

        Returns whether its subscription has changed.
        """
        old_regex, new_regex = old.subscribed_topic_regex, new.subscribed_topic_regex
        resolved = [*group.resolved.values()]  # as it was before the member changes it
        is_new_regex = bool(new_regex) and new_regex != old_regex and not group.regex_count(new_regex or "")
        are_names_changed = new.subscribed_topic_names != old.subscribed_topic_names
        if new != old:
            self._changes.put_member(group, new)
        is_regex_changed = new_regex != old_regex
        is_effective = False  # otherwise the epoch rises when the expression is resolved
        if is_regex_changed:
            if old_regex:
                self._changes.drop_unused_regex(group, old_regex)
            if is_new_regex:
                check_regex(new_regex or "")
            is_effective = new_regex in group.resolved if new_regex else bool(old_regex)
            is_effective = is_effective or new.classic is not None
        self._resolve_soon(group, resolved, is_needed=is_new_regex)
        self._changes.refresh(group, is_changed=are_names_changed or is_effective)
        return are_names_changed or is_regex_changed

    def _resolve_soon(self, group: ConsumerGroup, resolved: Sequence[Resolved], *, is_needed: bool) -> None:
        """Have all regular expressions be resolved together, if one is new, topics have come, or it is long ago."""
        key = (REGEX, group.group_id)
        if not group.regexes or self._shard.timers.get(key) is not None:
            return
        if resolved:
            now_ms = self._shard.now.wall_ms
            last_ms = max(each.timestamp_ms for each in resolved)
            if now_ms <= last_ms + _SHORTEST_MS:
                return
            is_needed = (
                is_needed
                or len(group.regexes) != len(resolved)
                or min(each.version for each in resolved) < group.topics.version
                or now_ms > last_ms + self._shard.config.group_consumer_regex_refresh_interval_ms
            )
        else:
            is_needed = True
        if is_needed:
            self._shard.timers.set(key, self._shard.now.clock_ms)

    def resolve(self, group: ConsumerGroup) -> None:
        """Look which topics the regular expressions of a group match; another set begins another epoch."""
        version = group.topics.version  # first: topics that come later are looked at later
        names = list(group.topics.names())
        is_changed = False
        for regex in group.regexes:
            topics = matching(regex, names)
            known = group.resolved.get(regex)
            is_changed |= topics != (frozenset() if known is None else known.topics)
            value = ConsumerGroupRegularExpressionValue(
                topics=tuple(sorted(topics)), version=version, timestamp=self._shard.now.wall_ms
            )
            key = ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=regex)
            self._shard.write(key, value)
        self._changes.refresh(group, is_changed=is_changed)
