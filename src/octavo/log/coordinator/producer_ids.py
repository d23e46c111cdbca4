"""Producer ids: each is given out once, whoever gives it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from octavo.log.fork_safe import make_rlock

if TYPE_CHECKING:
    from octavo.log.directory import DataDirectory


class ProducerIds:
    """Gives out producer ids of blocks that the metadata log says are taken.

    What is left of a block when the directory is closed is never given out, as with a broker of Kafka. Where logs hold
    ids that the metadata know nothing of (they came from somewhere else), the next block begins behind them.
    """

    def __init__(self, data: DataDirectory) -> None:
        self._data = data
        self._lock = make_rlock()
        self._left = range(0)

    def next(self) -> int:
        """An id that nobody had before. Raises as `DataDirectory.allocate_producer_ids`."""
        with self._lock:
            self._data.check_open()  # a fork would give out the same ids as its parent
            if not self._left:
                self._left = self._data.allocate_producer_ids(self._behind_logs())
            producer_id, self._left = self._left[0], self._left[1:]
            return producer_id

    def _behind_logs(self) -> int:
        return 1 + max((max(log.producers.entries, default=-1) for log in self._data.logs), default=-1)
