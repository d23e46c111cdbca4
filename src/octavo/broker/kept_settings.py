"""Settings that Kafka can change while it runs, and that have no effect here: `KEPT_SETTINGS`.

They are kept in the metadata, for a Kafka that takes the directory over. It would not start with a malformed value, so
values are checked.
"""

from __future__ import annotations

from typing import Any, Final

from octavo.log.config.values import Kind, Ratio, Switch, Text, int32, int64


class Number(Ratio):
    """The kind of all numbers of Java's type double."""

    allowed = "a number"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, (int, float))


KEPT_SETTINGS: Final[dict[str, Kind]] = {
    "background.threads": int32(1),
    "config.providers": Text(),
    "cordoned.log.dirs": Text(),
    "follower.fetch.last.tiered.offset.enable": Switch(),
    "group.coordinator.cached.buffer.max.bytes": int32(524288),
    "group.share.assignment.interval.ms": int32(0),
    "group.streams.assignment.interval.ms": int32(0),
    "log.cleaner.io.buffer.load.factor": Number(),
    "log.cleaner.io.buffer.size": int32(0),
    "log.cleaner.io.max.bytes.per.second": Number(),
    "log.cleaner.threads": int32(0),
    "metric.reporters": Text(),
    "num.io.threads": int32(1),
    "num.network.threads": int32(1),
    "num.recovery.threads.per.data.dir": int32(1),
    "num.replica.fetchers": int32(1),
    "producer.id.expiration.ms": int32(1),
    "remote.fetch.max.wait.ms": int32(1),
    "remote.list.offsets.request.timeout.ms": int64(1),
    "remote.log.index.file.cache.total.size.bytes": int64(1),
    "remote.log.manager.copier.thread.pool.size": int32(1),
    "remote.log.manager.copy.max.bytes.per.second": int64(1),
    "remote.log.manager.expiration.thread.pool.size": int32(1),
    "remote.log.manager.fetch.max.bytes.per.second": int64(1),
    "remote.log.manager.follower.thread.pool.size": int32(1),
    "remote.log.reader.threads": int32(1),
    "share.coordinator.cached.buffer.max.bytes": int32(524288),
}
