"""Assign offsets and leader epochs to appended batches: the slow path, for everything but one plain batch.

`AppendRules` holds what the kernel `validate` needs to know about a topic. `LeaderAppend` processes one call of
`Validator.assign`: several batches, compressed batches, batches that must be rewritten, and batches that are refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from octavo.errors import AppendRefused, FormatError, LimitExceeded
from octavo.log.append.readiness import ALLOWANCE, TakesLong
from octavo.log.append.refusals import JUMPING, MAX_LISTED, MIXED, records_refused, refused, undecodable
from octavo.log.append.rewriting import Rewriter, target_codec
from octavo.log.config.log_config import LogConfig
from octavo.log.producer_state.producer_batch import ProducerBatch, batch_of_fields, has_producer, producer_batch
from octavo.log.segment.batch_span import BatchSpan
from octavo.records.compression import Inflater
from octavo.records.kernels import Kernel, scan, validate
from octavo.records.kernels.batch_checksums import checksum_tables
from octavo.records.layout import (
    BATCH_HEADER,
    FLAGS_AT,
    HEADER_SIZE,
    MAGIC_AT,
    Attributes,
    Buffer,
    Codec,
    TimestampType,
)

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Judged = tuple[int, int, int, int, int, int, int, int, int, int]  # the result of the kernel

NO_BYTES: Final = np.empty(0, np.uint8)
NOT_AS_IT_IS: Final = validate.ANOTHER_CODEC | validate.JUMPS  # found in decompressed records: rewrite the batch
NEW: Final = tuple.__new__  # what a named tuple's own constructor does, without a Python call
CURRENT_MAGIC: Final = 2

_HEADER_BYTES: Final = np.dtype(f"V{HEADER_SIZE}")  # a header as one item
_CODEC: Final = int(Attributes.CODEC)
_NONE: Final = int(Codec.NONE)
_SPAN_OF: Final = partial(NEW, BatchSpan)
_ROWS: Final = 128  # batches per call of the kernel
_KEPT: Final = 4 << 20  # up to this many bytes, the memory of decompressed records is reused


class Scratch(threading.local):
    """Buffers that kernels write to. Each thread has its own, so that a thousand logs need no more than one."""

    def __init__(self) -> None:
        memory = memoryview(bytearray(_ROWS * HEADER_SIZE))
        self.first_header = memory[:HEADER_SIZE]
        self.headers = np.frombuffer(memory, np.uint8)
        self.spans = np.empty((_ROWS, validate.SPAN_COLUMNS), np.int64)
        self.inflater = Inflater()


SCRATCH: Final = Scratch()


class AppendRules:
    """The validation settings that all appends to a log share."""

    def __init__(self, config: LogConfig) -> None:
        self.tables: Final = _packed_tables()
        self.limits: Final = _limits(config)
        self.rewriter: Final = Rewriter(config, self.limits.tolist())
        self.max_size: Final = config.max_message_bytes
        self.has_append_time: Final = config.message_timestamp_type == TimestampType.LOG_APPEND_TIME

    def plain_records(self, view: memoryview, position: int, *, wanted: bool = False) -> tuple[Bytes, int]:
        """Return the plain records of the batch at `position`, and how the kernel should judge the batch.

        Compressed records are decompressed before anything else is known of the batch, which saves a kernel call. If
        that fails, the kernel looks for other errors first. If it finds none, the records are `wanted`: this is called
        again, and a failure raises `AppendRefused`. Records are also `wanted` if they are plain but must be compressed.
        Raises `TakesLong` if they are longer than the thread's `ALLOWANCE`.
        """
        outcome, size, _ = scan.entry_extent(view, position, len(view))
        if outcome != scan.MORE or view[position + MAGIC_AT] != CURRENT_MAGIC:
            return NO_BYTES, validate.AS_IT_IS
        codec = view[position + FLAGS_AT] & _CODEC
        records = view[position + HEADER_SIZE : position + size]
        if codec == _NONE and wanted:
            return np.frombuffer(records, np.uint8), validate.IN_PLAIN
        if codec == _NONE or size > self.max_size:
            return NO_BYTES, validate.AS_IT_IS
        inflater = SCRATCH.inflater
        inflater.clear(most=_KEPT)
        left, limit = ALLOWANCE.left, inflater.limit
        if left is not None:
            inflater.limit = min(left, limit)
        try:
            _, end = inflater.add(codec, records)
        except FormatError as error:
            inflater.clear(most=_KEPT)
            if left is not None and left < limit and isinstance(error, LimitExceeded):
                raise TakesLong from error
            if wanted:
                raise undecodable(error, position) from error
            return NO_BYTES, validate.AS_IT_IS
        finally:
            inflater.limit = limit
        if left is not None:
            ALLOWANCE.left = left - end
        if end > _KEPT:  # what was made so large is dropped when nobody looks at these records any more
            SCRATCH.inflater = Inflater()
        return np.frombuffer(inflater.buffer, np.uint8), validate.IN_PLAIN


class LeaderAppend:
    """The work of one call of `Validator.assign`. The result is in `parts`, `spans`, `size` and `producers`."""

    def __init__(
        self,
        rules: AppendRules,
        kernel: Callable[[int], Kernel],
        view: memoryview,
        array: Bytes,
        offset: int,
        leader_epoch: int,
        now_ms: int,
        of_client: int,
    ) -> None:
        self.parts: list[Buffer] = []
        self.spans: list[BatchSpan] = []
        self.size = 0
        self.producers: list[ProducerBatch] = []  # the batches that have a producer id
        self._rules = rules
        self._kernel = kernel  # chooses the kernel, given the number of additional bytes
        self._view = view
        self._array = array
        self._position = 0  # everything before it is in `parts`
        self._offset = offset
        self._leader_epoch = leader_epoch
        self._now_ms = now_ms
        self._of_client = of_client

    def process(self, plain: Bytes, how: int, judged: Judged) -> None:
        """Add to the result the batches that the kernel has judged, and process the rest. Raises `AppendRefused`."""
        while True:
            position, rows, outcome, rule, found, last_offset, max_timestamp_ms, producer_id, _, _ = judged
            if how == validate.AS_IT_IS:
                self._take(rows)
            elif rows and found & NOT_AS_IT_IS:
                self._take_rewritten(plain, found)
            elif rows:
                self._take_one(position, last_offset, max_timestamp_ms, has_producer=producer_id >= 0)
            if outcome in (scan.DONE, scan.TORN) or self._position == len(self._view):
                return
            if outcome == scan.BROKEN:
                raise refused(rule, position)
            if outcome == validate.REFUSED:
                raise self._records_refused(plain if how == validate.IN_PLAIN else self._body())
            if outcome == validate.OLD:
                self._take_old()
                return
            wanted = outcome == validate.WANTED and not rows
            plain, how = self._rules.plain_records(self._view, self._position, wanted=wanted)
            assert not wanted or how == validate.IN_PLAIN, "else this goes on for ever"
            judged = self._judge(plain, how, SCRATCH.spans)

    def _judge(self, plain: Bytes, how: int, spans: Int64s) -> Judged:
        """Run the kernel, from the first batch that is not in the result yet."""
        rules = self._rules
        judged: Judged = self._kernel(len(plain))(
            rules.tables,
            self._array,
            self._position,
            plain,
            how,
            rules.limits,
            self._offset,
            self._leader_epoch,
            self._now_ms,
            self._of_client,
            SCRATCH.headers,
            spans,
        )
        return judged

    def _take(self, rows: int) -> None:
        """Add to the result the batches that the kernel accepted as they are, each with its new header."""
        if not rows:
            return
        view, position = self._view, self._position
        columns = SCRATCH.spans[:rows].T.tolist()  # zipping columns makes tuples faster than going row by row
        bodies = []
        for size in columns[validate.SPAN_SIZE]:
            end = position + size
            bodies.append(view[position + HEADER_SIZE : end])
            position = end
        parts: list[Buffer] = [b""] * (2 * rows)
        parts[::2] = SCRATCH.headers[: rows * HEADER_SIZE].view(_HEADER_BYTES).tolist()
        parts[1::2] = bodies
        self.parts += parts
        spans = list(map(_SPAN_OF, zip(*columns[: validate.SPAN_PRODUCER_ID], strict=True)))
        if max(columns[validate.SPAN_PRODUCER_ID]) >= 0:
            self._take_producers(spans, parts, columns[validate.SPAN_PRODUCER_ID :])
        self.spans += spans
        self.size += position - self._position
        self._position = position
        self._offset = self.spans[-1].last_offset + 1

    def _take_producers(
        self, spans: Sequence[BatchSpan], parts: Sequence[Buffer], columns: Sequence[Sequence[int]]
    ) -> None:
        """Add the batches that have a producer id. `columns`: of the kernel's table, from the producer id on."""
        for row, (span, producer_id, epoch, sequence, attributes) in enumerate(zip(spans, *columns, strict=True)):
            if producer_id >= 0:
                _, base_offset, last_offset, max_timestamp_ms, _, _ = span
                batch = batch_of_fields(
                    producer_id, epoch, sequence, attributes, base_offset, last_offset, max_timestamp_ms
                )
                self.producers.append(producer_batch(parts[2 * row], parts[2 * row + 1]) if batch.is_control else batch)

    def _take_one(self, end: int, last_offset: int, max_timestamp_ms: int, *, has_producer: bool) -> None:
        """Add the next batch to the result, with its new header."""
        start, size = self._position, end - self._position
        header, records = bytes(SCRATCH.first_header), self._view[start + HEADER_SIZE : end]
        self.parts += header, records
        if has_producer:
            self.producers.append(producer_batch(header, records))
        self.spans.append(
            NEW(BatchSpan, (size, self._offset, last_offset, max_timestamp_ms, self._leader_epoch, CURRENT_MAGIC))
        )
        self.size += size
        self._position = end
        self._offset = last_offset + 1

    def _take_rewritten(self, plain: Bytes, found: int) -> None:
        """Rewrite the next batch, and add it to the result."""
        if not found & validate.ANOTHER_CODEC:  # only the offsets jump
            raise refused(JUMPING, self._position)
        batch = self._view[self._position : self._position + self._batch_size()]
        header = BATCH_HEADER.read(SCRATCH.first_header)
        written = self._rules.rewriter.rewritten(batch, header, plain.data, found, self._position)
        self._take_written(written, len(batch))

    def _take_old(self) -> None:
        """Convert the whole input, messages of magic 0 or 1, to one batch of magic 2, and add it to the result."""
        if self._position:
            raise refused(MIXED, self._position)
        written = self._rules.rewriter.upgraded(self._view, self._offset, self._leader_epoch, self._now_ms)
        self._take_written(written, len(self._view))

    def _take_written(self, batch: bytes, replaces: int) -> None:
        """Add a rewritten batch to the result. It replaces the next `replaces` bytes of the input."""
        header = BATCH_HEADER.read(batch)
        last_offset = header.base_offset + header.last_offset_delta
        self.parts.append(batch)
        if has_producer(batch):
            self.producers.append(producer_batch(batch[:HEADER_SIZE], batch[HEADER_SIZE:]))
        self.spans.append(
            BatchSpan(
                len(batch), header.base_offset, last_offset, header.max_timestamp_ms, header.leader_epoch, CURRENT_MAGIC
            )
        )
        self.size += len(batch)
        self._position += replaces
        self._offset = last_offset + 1

    def _body(self) -> Bytes:
        """Return the records of the current batch, which is complete and not compressed."""
        return self._array[self._position + HEADER_SIZE : self._position + self._batch_size()]

    def _batch_size(self) -> int:
        """Return the size of the current batch, which is complete."""
        return scan.entry_extent(self._view, self._position, len(self._view))[1]

    def _records_refused(self, plain: Bytes) -> AppendRefused:
        """Return the error for the current batch, which is refused because of its records."""
        listed = np.empty((MAX_LISTED, validate.SPAN_COLUMNS), np.int64)
        _, count, _, _, found, _, _, _, _, _ = self._judge(plain, validate.LISTED, listed)
        columns = [validate.REFUSED_INDEX, validate.REFUSED_REASON, validate.REFUSED_TIMESTAMP]
        return records_refused(
            listed[:count, columns].tolist(),
            self._position,
            self._rules.limits.tolist(),
            self._now_ms,
            count=count,
            of_time=bool(found & validate.BAD_TIME),
        )


@cache
def _packed_tables() -> Int64s:
    """Return the checksum tables in the form that the kernel takes."""
    return np.concatenate(checksum_tables())


def _limits(config: LogConfig) -> Int64s:
    """Return the topic's configuration in the form that the kernel takes."""
    target = target_codec(config)
    limits = np.zeros(validate.LIMITS, np.int64)
    limits[validate.APPEND_TIME] = config.message_timestamp_type == TimestampType.LOG_APPEND_TIME
    limits[validate.KEY_NEEDED] = config.is_compacted
    limits[validate.BEFORE_MAX_MS] = config.message_timestamp_before_max_ms
    limits[validate.AFTER_MAX_MS] = config.message_timestamp_after_max_ms
    limits[validate.MAX_BATCH_SIZE] = config.max_message_bytes
    limits[validate.TARGET] = validate.ANY_CODEC if target is None else target
    return limits
