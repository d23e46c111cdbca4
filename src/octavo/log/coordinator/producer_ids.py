"""Allocate producer ids. Each is given out only once, by Octavo or by Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.log.ownership.fork_safe import make_rlock

if TYPE_CHECKING:
    from octavo.log.directory.data_directory import DataDirectory


class ProducerIds:
    """Gives out producer ids from blocks that are marked as taken in the metadata log.

    When the directory is closed, the rest of a block is lost, as with Kafka's brokers. If logs hold ids that
    the metadata do not know (the logs came from elsewhere), the next block begins after them.
    """

    def __init__(self, data: DataDirectory) -> None:
        self._data = data
        self._lock = make_rlock()
        self._left = range(0)

    def next(self) -> int:
        """Return an id that was never used before. Raises the errors of `DataDirectory.allocate_producer_ids`."""
        with self._lock:
            self._data.check_open()  # a fork would give out the same ids as its parent
            if not self._left:
                self._left = self._data.allocate_producer_ids(self._behind_logs())
            producer_id, self._left = self._left[0], self._left[1:]
            return producer_id

    def _behind_logs(self) -> int:
        return 1 + max((max(log.producers.entries, default=-1) for log in self._data.logs), default=-1)
