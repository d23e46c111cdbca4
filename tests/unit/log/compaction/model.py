"""Compaction in a few lines of plain Python, over batches that are lists: what a log is held against."""

from __future__ import annotations

from dataclasses import dataclass, field

Row = tuple[int, bytes | None, bytes | None]  # offset, key and value


@dataclass
class ModelBatch:
    """A batch and what is left of it."""

    base_offset: int
    last_offset: int
    rows: list[Row]
    segment: int  # the first offset of the segment that holds it
    horizon_ms: int | None = None


@dataclass
class ModelLog:
    """A log without transactions and producers. All segments that a clean reaches become one."""

    batches: list[ModelBatch] = field(default_factory=list)
    first_dirty_offset: int = 0

    @property
    def rows(self) -> list[Row]:
        """All that there is."""
        return [row for batch in self.batches for row in batch.rows]

    def compact(self, end_offset: int, now_ms: int, retention_ms: int, max_keys: int) -> None:
        """One clean of what is before `end_offset`, where the active segment begins."""
        latest: dict[bytes, int] = {}
        map_end = self._fill(latest, end_offset, max_keys)
        left = []
        for batch in self.batches:
            if batch.segment < map_end:
                batch.segment = 0
                batch.rows = [row for row in batch.rows if self._stays(row, batch, latest, map_end, now_ms)]
                if batch.horizon_ms is None and any(value is None for _, _, value in batch.rows):
                    batch.horizon_ms = now_ms + retention_ms
            if batch.rows or batch.last_offset + 1 == end_offset:
                left.append(batch)
        self.batches = left
        self.first_dirty_offset = map_end

    def _fill(self, latest: dict[bytes, int], end_offset: int, max_keys: int) -> int:
        """Note the last offset of each key; where the map ends."""
        map_end = self.first_dirty_offset
        for batch in self.batches:
            if batch.base_offset >= end_offset:
                break
            for offset, key, _ in batch.rows:
                if key is not None and offset >= self.first_dirty_offset:
                    if len(latest) >= max_keys:
                        return map_end
                    latest[key] = offset
                    map_end = offset + 1
            map_end = max(map_end, batch.last_offset + 1)
        return end_offset

    @staticmethod
    def _stays(row: Row, batch: ModelBatch, latest: dict[bytes, int], map_end: int, now_ms: int) -> bool:
        offset, key, value = row
        if offset >= map_end:
            return True
        if key is None or offset < latest.get(key, -1):
            return False
        return value is not None or batch.horizon_ms is None or now_ms < batch.horizon_ms
