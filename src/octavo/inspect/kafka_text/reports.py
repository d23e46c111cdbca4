"""What Kafka's tool reports on standard error after all files: offsets and timestamps that do not fit together."""

from __future__ import annotations

from typing import Final

from octavo.inspect.kafka_text.java_names import JavaFile, in_hash_map_order
from octavo.inspect.kafka_text.output import Output

_Pairs = dict[str, list[tuple[int, int]]]


class Reports:
    """Collects the findings of all files, by absolute path."""

    def __init__(self) -> None:
        self._index: Final[dict[str, dict[int, int]]] = {}
        self._timestamps: Final[_Pairs] = {}
        self._out_of_order: Final[_Pairs] = {}
        self._not_found: Final[_Pairs] = {}
        self._gaps: Final[dict[str, dict[int, int]]] = {}

    def index_mismatch(self, file: JavaFile, indexed: int, found: int) -> None:
        """Note that the batch at the position of an index entry has another last offset."""
        self._index.setdefault(file.absolute, {})[indexed] = found

    def timestamp_mismatch(self, file: JavaFile, indexed: int, found: int) -> None:
        """Note that the largest timestamp of a batch is not that of the entry."""
        self._timestamps.setdefault(file.absolute, []).append((indexed, found))

    def out_of_order(self, file: JavaFile, timestamp: int, before: int) -> None:
        """Note that timestamps of a time index do not increase."""
        self._out_of_order.setdefault(file.absolute, []).append((timestamp, before))

    def offset_not_found(self, file: JavaFile, indexed: int, found: int) -> None:
        """Note that no batch ends at the offset of an entry of a time index."""
        self._not_found.setdefault(file.absolute, []).append((indexed, found))

    def gap(self, file: JavaFile, offset: int, following: int) -> None:
        """Note that a record's offset is not the one after that of the record before it."""
        self._gaps.setdefault(file.absolute, {})[offset] = following

    def print(self, output: Output) -> None:
        """Print everything, in the order in which Java iterates over its maps."""
        # Gaps are no damage: compaction leaves them, and a segment that does not begin at offset 0 has one.
        if self._index or self._timestamps or self._out_of_order or self._not_found:
            output.is_damaged = True
        for name in in_hash_map_order([*self._index]):
            output.error(f"Mismatches in :{name}")
            for indexed, found in sorted(self._index[name].items(), reverse=True):
                output.error(f"  Index offset: {indexed}, log offset: {found}")
        for name in in_hash_map_order([*self._timestamps]):
            output.error(f"Found timestamp mismatch in :{name}")
            for indexed, found in self._timestamps[name]:
                output.error(f"  Index timestamp: {indexed}, log timestamp: {found}")
        for name in in_hash_map_order([*self._out_of_order]):
            output.error(f"Found out of order timestamp in :{name}")
            for indexed, found in self._out_of_order[name]:
                output.error(f"  Index timestamp: {indexed}, Previously indexed timestamp: {found}")
        for name in in_hash_map_order([*self._not_found]):
            output.error(f"The following indexed offsets are not found in :{name}")
            for indexed, found in self._not_found[name]:
                output.error(f"Indexed offset: {indexed}, found log offset: {found}")
        for name in in_hash_map_order([*self._gaps]):
            output.error(f"Non-consecutive offsets in {name}")
            for offset, following in sorted(self._gaps[name].items()):
                output.error(f"  {offset} is followed by {following}")
