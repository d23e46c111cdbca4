"""Settings of the coordinator of groups: `GroupConfig`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

MIGRATION_POLICIES: Final = ("bidirectional", "upgrade", "downgrade", "disabled")
ASSIGNORS: Final = ("uniform", "range")
# What single groups can have for themselves: the first part of the name in a `GroupConfig` is missing, and this is it.
_OF_ALL: Final = "group."
_BOUNDED: Final = ("consumer.heartbeat.interval.ms", "consumer.session.timeout.ms", "consumer.assignment.interval.ms")
_MINUTE_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Settings by the names that Kafka has for them, with underscores, and with its defaults."""

    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 0x7FFFFFFF
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_min_session_timeout_ms: int = 45_000
    group_consumer_max_session_timeout_ms: int = 60_000
    group_consumer_heartbeat_interval_ms: int = 5_000
    group_consumer_min_heartbeat_interval_ms: int = 5_000
    group_consumer_max_heartbeat_interval_ms: int = 15_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_min_assignment_interval_ms: int = 0
    group_consumer_max_assignment_interval_ms: int = 15_000
    group_consumer_max_size: int = 0x7FFFFFFF
    group_consumer_regex_refresh_interval_ms: int = 600_000
    group_consumer_migration_policy: str = "bidirectional"
    group_consumer_assignors: tuple[str, ...] = ASSIGNORS

    @property
    def offsets_retention_ms(self) -> int:
        """For how long committed offsets are kept that nobody uses."""
        return self.offsets_retention_minutes * _MINUTE_MS

    def of_group(self, own: Mapping[str, str]) -> GroupConfig:
        """Return the settings of a group that has some for itself, by Kafka's names.

        Values outside the bounds of the broker count as the nearest bound, as in Kafka: the bounds may have been other
        ones when the values were set.
        """
        if not own:
            return self
        changes: dict[str, int] = {}
        for name in _BOUNDED:
            text = own.get(name, "").strip()
            if text.removeprefix("-").isdecimal():
                least, most = (self._value(bound) for bound in bounds(_OF_ALL + name))
                changes[_field(_OF_ALL + name)] = min(max(int(text), least), most)
        return replace(self, **changes)  # type: ignore[arg-type] # mypy takes it for any of the fields

    def contradictions(self) -> Iterator[tuple[str, str, str]]:
        """Yield settings that contradict others: a name, a relation that does not hold, and the other name."""
        for each in _BOUNDED:
            name = _OF_ALL + each
            least, most = bounds(name)
            for first, second in ((most, least), (name, least)):
                if self._value(first) < self._value(second):
                    yield first, "greater than or equal to", second
            if self._value(name) > self._value(most):
                yield name, "less than or equal to", most
        heartbeat, session, _ = (_OF_ALL + each for each in _BOUNDED)
        if self._value(heartbeat) >= self._value(session):
            yield heartbeat, "less than", session

    def _value(self, name: str) -> int:
        value: int = getattr(self, _field(name))
        return value


def bounds(name: str) -> tuple[str, str]:
    """Return the names of the settings of a broker between which a setting of a group must be."""
    kind, rest = name.removeprefix(_OF_ALL).split(".", 1)
    return f"{_OF_ALL}{kind}.min.{rest}", f"{_OF_ALL}{kind}.max.{rest}"


def _field(name: str) -> str:
    return name.replace(".", "_")
