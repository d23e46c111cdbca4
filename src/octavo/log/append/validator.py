"""Validate and adjust batches before they are appended: Kafka's `analyzeAndValidateRecords` and `LogValidator`.

    validator.assign(batches, offset=..., leader_epoch=..., now_ms=...)    as the leader, assigning offsets and epoch
    validator.check(batches, end_offset=...)                               as a follower, keeping them

One batch, or one set of old messages, is judged as Kafka judges a client's. Several batches of magic 2, which Kafka
does not accept from clients, are judged one by one. Nothing is appended here, and the caller's bytes are not changed.
`Validated.parts` are the bytes for the file. Only their headers are new, unless a batch had to be rewritten.

Some differences from Kafka are deliberate:

- Kafka requires only of clients that the record count matches the offsets. Here coordinators must comply as well:
  any other batch would leave a hole in the log, or overlap the batch before it.
- A batch whose records would take more than 256 MiB decompressed is `MESSAGE_TOO_LARGE`. Kafka has no such limit.
- A record whose length varint never ends is an `INVALID_RECORD` in every batch. Kafka fails unexpectedly for some.
- Records that are stored with another codec keep varints that are longer than needed. Kafka rewrites them.
- If a batch is refused because of its records, the first 1,000 bad ones are listed, and the message gives their total.
  Kafka lists them all, even millions out of a kilobyte.
- Offsets end at 2^63 - 2, and a record that would go beyond is an `INVALID_RECORD`. In Kafka offsets become negative.
- A follower refuses batches that overlap or end before they begin. Kafka appends them.

Rolling, segment sizes and the producer state are handled elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from octavo.log.append.follower import check_batches
from octavo.log.append.leader import (
    CURRENT_MAGIC,
    NEW,
    NO_BYTES,
    NOT_AS_IT_IS,
    SCRATCH,
    AppendRules,
    Judged,
    LeaderAppend,
)
from octavo.log.append.validated import Validated
from octavo.log.config.log_config import LogConfig
from octavo.log.origin import Origin
from octavo.log.producer_state.producer_batch import ProducerBatch, batch_of_fields, producer_batch
from octavo.log.segment.batch_span import BatchSpan
from octavo.records.kernels import Kernel, kernels, scan, validate
from octavo.records.layout import FLAGS_AT, HEADER_SIZE, MAX_INT32, MAX_SIZE, NO_TIMESTAMP, Attributes, Buffer

_CODEC: Final = int(Attributes.CODEC)
_FROM_BUFFER: Final = np.frombuffer
_UINT8: Final = np.dtype(np.uint8)


_CLIENT: Final = Origin.CLIENT  # faster than looking up the enum member for each append
_RAFT_LEADER: Final = Origin.RAFT_LEADER


class Validator:
    """Validates what is appended to one log."""

    def __init__(self, config: LogConfig) -> None:
        """Use the given configuration. After a change of the topic's settings, create a new validator."""
        self._rules: Final = AppendRules(config)
        self._compiled: Kernel | None = None  # the compiled kernel, once it has been chosen

    def assign(
        self, data: Buffer, offset: int, leader_epoch: int, now_ms: int, origin: Origin = Origin.CLIENT
    ) -> Validated:
        """Return the batches with offsets from `offset` on and with the leader's epoch.

        An incomplete batch at the end is left out. Raises `AppendRefused` with Kafka's error code, and with the bad
        records if the batch is refused because of them.
        """
        rules = self._rules
        if origin is _RAFT_LEADER:
            return check_batches(data, offset, MAX_INT32, only_epoch=leader_epoch, max_size=rules.max_size)
        view = memoryview(data)
        if view.itemsize != 1:
            view = view.cast("B")
        array = _FROM_BUFFER(view, _UINT8)
        of_client = 1 if origin is _CLIENT else 0
        plain, how = NO_BYTES, validate.AS_IT_IS
        flags = view[FLAGS_AT] if len(view) >= HEADER_SIZE else 0
        if flags & _CODEC:
            plain, how = rules.plain_records(view, 0)
        kernel = self._compiled or self._kernel(len(view) + len(plain))
        scratch = SCRATCH
        judged: Judged = kernel(
            rules.tables,
            array,
            0,
            plain,
            how,
            rules.limits,
            offset,
            leader_epoch,
            now_ms,
            of_client,
            scratch.headers,
            scratch.spans,
        )
        append_time_ms = now_ms if rules.has_append_time else NO_TIMESTAMP
        size, rows, outcome, _, found, last_offset, max_timestamp_ms, producer_id, epoch, sequence = judged
        if rows == 1 and (outcome == scan.DONE or (how and size == len(view) and not found & NOT_AS_IT_IS)):
            # Nearly always there is one batch, so a shortcut pays.
            span = NEW(BatchSpan, (size, offset, last_offset, max_timestamp_ms, leader_epoch, CURRENT_MAGIC))
            header, records = bytes(scratch.first_header), view[HEADER_SIZE:size]
            producers: Sequence[ProducerBatch] = ()
            if producer_id >= 0:
                batch = batch_of_fields(producer_id, epoch, sequence, flags, offset, last_offset, max_timestamp_ms)
                producers = (producer_batch(header, records) if batch.is_control else batch,)
            return NEW(Validated, ([header, records], size, [span], append_time_ms, producers))
        append = LeaderAppend(rules, self._kernel, view, array, offset, leader_epoch, now_ms, of_client)
        append.process(plain, how, judged)
        return Validated(append.parts, append.size, append.spans, append_time_ms, append.producers or ())

    def check(self, data: Buffer, *, end_offset: int, leader_epoch: int = MAX_INT32) -> Validated:
        """Check batches that a follower appends unchanged to a log that ends at `end_offset`.

        A batch with an epoch above `leader_epoch`, the follower's own, and all batches after it are left out: they are
        from a leader that the follower does not know yet. An incomplete batch at the end is left out as well. Raises
        `AppendRefused` if a checksum is wrong, or if the offsets do not continue those of the log.
        """
        return check_batches(data, end_offset, leader_epoch, max_size=MAX_SIZE)

    def _kernel(self, size: int) -> Kernel:
        """Choose the kernel to validate `size` more bytes of batches and decompressed records."""
        if self._compiled is not None:
            return self._compiled
        chosen = kernels(size)
        if chosen.compiled:
            self._compiled = chosen.validate
        return chosen.validate
