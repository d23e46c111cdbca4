"""Choose the log to clean next: of those that are due, the one with the highest dirty ratio (Kafka's order)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from octavo.errors import CompactionAborted, FormatError, LogError
from octavo.log.compaction.stats import CompactionStats
from octavo.log.compaction.throttle import Throttle
from octavo.log.names import TopicPartition

if TYPE_CHECKING:
    from octavo.log.log import Log


OnError = Callable[[TopicPartition, FormatError | OSError], object]


def filthiest(logs: Iterable[Log], now_ms: int, on_error: OnError = lambda _, __: None) -> Log | None:
    """Return the log to clean next; None if none is due. Uncleanable logs, and logs being cleaned, are skipped.

    `on_error` is called for logs that cannot be examined. A log with damaged data becomes `uncleanable`.
    """
    due: list[tuple[float, Log]] = []
    for log in logs:
        if not (log.config_is_known and log.config.is_compacted) or log.uncleanable is not None or log.is_compacting:
            continue
        try:
            plan = log.compaction_plan(now_ms)
        except LogError:
            continue  # closed meanwhile, or waiting to be reopened
        except (FormatError, OSError) as error:
            on_error(log.partition, error)
            continue
        if plan.is_due(log.config):
            due.append((plan.dirty_ratio, log))
    return max(due, key=lambda found: found[0])[1] if due else None


def clean(log: Log, now_ms: int, *, map_memory: int, throttle: Throttle | None) -> CompactionStats | None:
    """Clean a log if that is still due. Raises as `Log.compact`, except `CompactionAborted`.

    Return statistics; None if it was not due, or was aborted.
    """
    try:
        return log.compact(now_ms, map_memory=map_memory, throttle=throttle, only_if_due=True)
    except CompactionAborted:
        return None
