"""Check batches that already have offsets: a follower's append, or the append of the metadata quorum's leader."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

import numpy as np

from octavo.log.append.refusals import (
    NO_EPOCH,
    OFFSET_TOO_HIGH,
    WRONG_EPOCH,
    ends_before_it_begins,
    out_of_order,
    refused,
)
from octavo.log.append.validated import Validated
from octavo.log.producer_state.producer_batch import producer_batches
from octavo.log.segment.batch_span import BatchSpan
from octavo.records.checksum import covered_from, crc32c
from octavo.records.kernels import kernels, rules, scan, validate
from octavo.records.kernels.batch_checksums import first_mismatch
from octavo.records.kernels.batch_table import BatchTable
from octavo.records.layout import BATCH_HEADER, HEADER_SIZE, LOG_OVERHEAD, NO_TIMESTAMP, Attributes, Buffer, Codec

_ROWS: Final = 256  # batches per call of the kernel
_MAGIC: Final = 2
_COVERED_FROM: Final = covered_from(_MAGIC)
_CODEC: Final = int(Attributes.CODEC)
_CODECS: Final = len(Codec)
_COLUMNS: Final = [  # columns of the table of `scan`: position, attributes, then the fields of `BatchSpan`
    scan.POSITION,
    scan.ATTRIBUTES,
    scan.SIZE,
    scan.BASE_OFFSET,
    scan.LAST_OFFSET,
    scan.MAX_TIMESTAMP,
    scan.LEADER_EPOCH,
    scan.MAGIC,
]


def check_batches(
    data: Buffer, end_offset: int, max_epoch: int, *, only_epoch: int | None = None, max_size: int
) -> Validated:
    """Check batches that are appended unchanged to a log that ends at `end_offset`.

    The first batch with an epoch above `max_epoch` and all batches after it are left out. So is an incomplete batch at
    the end. Raises `AppendRefused` for a batch with an epoch other than `only_epoch`, a batch larger than `max_size`, a
    wrong checksum, offsets that do not continue the log, and offsets that no batch can have.

    Kafka compares last offsets only. Here a batch that begins before the end of the previous one, or that ends before
    it begins, is refused as well: recovery would cut the log at such a batch.
    """
    view = memoryview(data).cast("B")
    only = _only_batch(view, end_offset, max_epoch, only_epoch, max_size)
    if only is not None:
        return only
    array = np.frombuffer(view, np.uint8)
    kernel_set = kernels(len(array))
    found = BatchTable(kernel_set, _ROWS)
    spans: list[BatchSpan] = []
    size, outcome, last_offset, has_producers = 0, scan.MORE, -1, False
    while outcome == scan.MORE:
        outcome = found.scan(array, size, len(array))
        has_producers |= bool((found.batches[:, scan.PRODUCER_ID] >= 0).any())
        wrong = first_mismatch(kernel_set, array, found.batches)
        for row, (start, attributes, *fields) in enumerate(found.batches[:, _COLUMNS].tolist()):
            span = BatchSpan._make(fields)
            if span.leader_epoch > max_epoch:
                outcome = scan.DONE
                break
            rule = _judged(span, attributes, only_epoch, max_size, damaged=row == wrong)
            if rule != rules.OK:
                raise refused(rule, start)
            if span.last_offset < span.base_offset:
                raise ends_before_it_begins(start, span.base_offset, span.last_offset)
            if span.base_offset <= last_offset:
                raise out_of_order(start, span.base_offset, last_offset + 1)
            last_offset = span.last_offset
            spans.append(span)
            size += span.size
        if outcome == scan.BROKEN:
            outcome, _, rule = validate.next_extent(view, found.position, len(view))
            if outcome == scan.BROKEN:
                raise refused(rule, found.position)
    if spans and spans[0].base_offset < end_offset:
        raise out_of_order(0, spans[0].base_offset, end_offset)
    parts: list[Buffer] = [view[:size]] if size else []
    producers = producer_batches(parts, map(attrgetter("size"), spans)) if has_producers else ()
    return Validated(parts, size, spans, NO_TIMESTAMP, producers)


def _only_batch(
    view: memoryview, end_offset: int, max_epoch: int, only_epoch: int | None, max_size: int
) -> Validated | None:
    """Check a single batch, as it nearly always is. None if it has to be looked at closely."""
    size = len(view)
    if not HEADER_SIZE <= size <= max_size:
        return None
    header = BATCH_HEADER.read(view)
    epoch, base_offset = header.leader_epoch, header.base_offset
    last_offset = base_offset + header.last_offset_delta
    if (
        header.length != size - LOG_OVERHEAD
        or header.magic != _MAGIC
        or not 0 <= epoch <= max_epoch
        or only_epoch not in (None, epoch)
        or not end_offset <= base_offset <= last_offset <= validate.MAX_OFFSET
        or header.attributes & _CODEC >= _CODECS
        or crc32c(view[_COVERED_FROM:]) != header.crc
    ):
        return None
    span = BatchSpan(size, base_offset, last_offset, header.max_timestamp_ms, epoch, _MAGIC)
    producers = producer_batches([view], [size]) if header.producer_id >= 0 else ()
    return Validated([view], size, [span], NO_TIMESTAMP, producers)


def _judged(span: BatchSpan, attributes: int, only_epoch: int | None, max_size: int, *, damaged: bool) -> int:
    """Return the rule that a batch breaks, or `OK`."""
    if only_epoch is not None and span.leader_epoch != only_epoch:
        return WRONG_EPOCH
    if span.size > max_size:
        return validate.TOO_LARGE
    if damaged:
        return rules.CHECKSUM
    if attributes & _CODEC >= _CODECS:
        return validate.NO_SUCH_CODEC
    if span.magic == 2 and span.leader_epoch < 0:
        return NO_EPOCH
    return rules.OK if span.last_offset <= validate.MAX_OFFSET else OFFSET_TOO_HIGH
