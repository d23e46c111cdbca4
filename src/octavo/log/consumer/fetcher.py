"""Fetches records from the logs, as objects or as Arrow columns, and keeps them until they are handed out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Final

from octavo.errors import FormatError, NotReady, OctavoError, OffsetOutOfRange
from octavo.log.consumer.assignment import Assigned
from octavo.log.consumer.config import ConsumerConfig
from octavo.log.consumer.consumed_logs import ConsumedLogs
from octavo.log.consumer.fetched_records import Deserializer, FetchDecoder
from octavo.log.consumer.starting_offset import StartingOffset
from octavo.log.consumer.visible_batches import Visible, visible
from octavo.log.reading.read_view import ReadResult

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.records.arrow.decoder import ArrowDecoder


class Fetcher:
    """Fetches records, from one partition at a time."""

    def __init__(
        self,
        logs: ConsumedLogs,
        start: StartingOffset,
        config: ConsumerConfig,
        deserializers: tuple[Deserializer | None, Deserializer | None],
    ) -> None:
        self._logs: Final = logs
        self._start: Final = start
        self._config: Final = config
        self._records: Final = FetchDecoder(verify=config.check_crcs, deserializers=deserializers)

    def has_records(self, state: Assigned) -> bool:
        """Whether a partition has records to hand out. Fetches some if there are none."""
        piece = state.fetched
        if piece is not None and not piece.left and piece.following is not None:
            piece = state.fetched = piece.following()
        if piece is not None and piece.left:
            return True
        return self._go_on(state, self._fetch_records)

    def has_columns(self, state: Assigned) -> bool:
        """Whether a partition has Arrow columns to hand out. Fetches some if there are none."""
        return state.arrow is not None or self._go_on(state, self._fetch_columns)

    def _go_on(self, state: Assigned, fetch: Callable[[Assigned, Visible, int], bool]) -> bool:
        """Fetch until there is a record that an application may see, or to the end. Return whether there is one."""
        while True:
            part = self._read(state)
            position = state.position
            if part is None or position is None:
                return False
            records = part.records
            seen = visible(records, position, part.aborted_ranges, verify=self._config.check_crcs)
            state.segment = part.segment
            try:
                if seen.data and fetch(state, seen, position):
                    return True
            except FormatError as error:
                error.add_note(f"in {state.partition}, where offset {position} was read")
                raise
            if seen.next_offset == position:
                return False
            state.move(seen.next_offset, part.segment)

    def _fetch_records(self, state: Assigned, seen: Visible, position: int) -> bool:
        found = self._records.decode(state.partition, seen.data, position, seen.next_offset)
        if not found.left:
            return False
        state.fetched, state.arrow = found, None
        return True

    @cached_property
    def _columns(self) -> ArrowDecoder:
        from octavo.records.arrow.decoder import ArrowDecoder

        return ArrowDecoder(verify=self._config.check_crcs)

    def _fetch_columns(self, state: Assigned, seen: Visible, position: int) -> bool:
        chunk = next(self._columns.read(seen.data, offsets=(position, None)), None)
        if chunk is None:
            return False
        state.fetched, state.arrow = None, chunk
        return True

    def take_columns(self, state: Assigned, count: int | None) -> pa.RecordBatch:
        """Return at most `count` rows of the columns that `has_columns` fetched, with topic and partition in front."""
        import pyarrow as pa

        assert state.arrow is not None
        chunk = state.arrow if count is None else state.arrow.slice(0, count)
        rest = state.arrow.slice(len(chunk))
        position = int(chunk.column("offset")[-1].as_py()) + 1
        state.go_on(position)
        state.arrow = rest if len(rest) else None
        topic, partition = state.partition
        named = {
            "topic": pa.repeat(pa.scalar(topic, pa.string()), len(chunk)),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), len(chunk)),
        }
        fields = [pa.field("topic", pa.string(), nullable=False), pa.field("partition", pa.int32(), nullable=False)]
        schema = pa.schema([*fields, *chunk.schema])
        return pa.RecordBatch.from_arrays([*named.values(), *chunk.columns], schema=schema)

    def has_enough(self, states: Iterable[Assigned]) -> bool:
        """Whether there is as much to read as `fetch.min.bytes` asks for."""
        total = 0
        for state in states:
            if state.is_paused:
                continue
            if state.is_fetched:
                return True
            try:
                part = self._read(state)
            except (OctavoError, OSError):
                return True  # reading it will raise the error
            total += 0 if part is None else part.size
        return total >= self._config.fetch_min_bytes

    def _read(self, state: Assigned) -> ReadResult | None:
        """Read from a partition's position on; None if there is nothing, or nothing yet."""
        try:
            if state.position is None:
                self._start.find(state)
            while True:
                try:
                    part = self._logs.read(state, self._config.max_partition_fetch_bytes)
                except OffsetOutOfRange:
                    if not self._start.can_reset:
                        raise
                    self._start.reset(state)  # the new position may have been deleted meanwhile, too
                else:
                    return part if part.size else None
        except NotReady:
            return None
