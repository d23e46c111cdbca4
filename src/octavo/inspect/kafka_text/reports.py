"""What Kafka's tool reports on standard error after all files: offsets and timestamps that do not fit together."""

from __future__ import annotations

from typing import Final

from octavo.inspect.kafka_text.java_names import HashMap, JavaFile
from octavo.inspect.kafka_text.output import Output

_Pairs = HashMap[list[tuple[int, int]]]


class Reports:
    """Collects the findings of all files, by absolute path."""

    def __init__(self) -> None:
        self._index: Final[HashMap[dict[int, int]]] = HashMap()
        self._timestamps: Final[_Pairs] = HashMap()
        self._out_of_order: Final[_Pairs] = HashMap()
        self._not_found: Final[_Pairs] = HashMap()
        self._gaps: Final[HashMap[dict[int, int]]] = HashMap()

    def index_mismatch(self, file: JavaFile, indexed: int, found: int) -> None:
        """Note that the batch at the position of an index entry has another last offset."""
        self._index.compute_if_absent(file.absolute, dict)[indexed] = found

    def timestamp_mismatch(self, file: JavaFile, indexed: int, found: int) -> None:
        """Note that the largest timestamp of a batch is not that of the entry."""
        self._timestamps.compute_if_absent(file.absolute, list).append((indexed, found))

    def out_of_order(self, file: JavaFile, timestamp: int, before: int) -> None:
        """Note that timestamps of a time index do not increase."""
        self._out_of_order.compute_if_absent(file.absolute, list).append((timestamp, before))

    def offset_not_found(self, file: JavaFile, indexed: int, found: int) -> None:
        """Note that no batch ends at the offset of an entry of a time index."""
        self._not_found.compute_if_absent(file.absolute, list).append((indexed, found))

    def gap(self, file: JavaFile, offset: int, following: int) -> None:
        """Note that a record's offset is not the one after that of the record before it."""
        self._gaps.compute_if_absent(file.absolute, dict)[offset] = following

    def print(self, output: Output) -> None:
        """Print everything, in the order in which Java iterates over its maps."""
        # Gaps are no damage: compaction leaves them, and a segment that does not begin at offset 0 has one.
        if self._index or self._timestamps or self._out_of_order or self._not_found:
            output.is_damaged = True
        for name, offsets in self._index.items():
            output.error(f"Mismatches in :{name}")
            for indexed, found in sorted(offsets.items(), reverse=True):
                output.error(f"  Index offset: {indexed}, log offset: {found}")
        for name, pairs in self._timestamps.items():
            output.error(f"Found timestamp mismatch in :{name}")
            for indexed, found in pairs:
                output.error(f"  Index timestamp: {indexed}, log timestamp: {found}")
        for name, pairs in self._out_of_order.items():
            output.error(f"Found out of order timestamp in :{name}")
            for indexed, found in pairs:
                output.error(f"  Index timestamp: {indexed}, Previously indexed timestamp: {found}")
        for name, pairs in self._not_found.items():
            output.error(f"The following indexed offsets are not found in :{name}")
            for indexed, found in pairs:
                output.error(f"Indexed offset: {indexed}, found log offset: {found}")
        for name, offsets in self._gaps.items():
            output.error(f"Non-consecutive offsets in {name}")
            for offset, following in sorted(offsets.items()):
                output.error(f"  {offset} is followed by {following}")
