"""The second pass: copy the batches and records to keep from the segments to the output."""

from __future__ import annotations

from typing import Final

import numpy as np

from octavo.log.compaction.cleaned_transactions import CleanedTransactions
from octavo.log.compaction.filling import CHUNK
from octavo.log.compaction.offset_map import OffsetMap
from octavo.log.compaction.output import CleanedSegment
from octavo.log.compaction.retention import LastBatches, Retention
from octavo.log.compaction.source import BLOCK, Block, Int64s, Source
from octavo.log.compaction.stats import GoOn
from octavo.log.storage import File
from octavo.records.checksum import crc32c
from octavo.records.compression import compress
from octavo.records.kernels import Kernels, rules, scan
from octavo.records.kernels.batch_checksums import checksum_tables
from octavo.records.kernels.compaction import filter as kernel
from octavo.records.kernels.compaction.read import READ_COLUMNS
from octavo.records.layout import ATTRIBUTES_AT, CRC_AT, HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, Attributes, Buffer

_CODEC: Final = int(Attributes.CODEC)
_OUT: Final = 2 * BLOCK  # maximum bytes of output written at once


class Filtering:
    """Filters segments one after the other, with one offset map."""

    def __init__(
        self,
        kernels: Kernels,
        source: Source,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        *,
        upper_bound: int,
        now_ms: int,
        horizon_ms: int,
    ) -> None:
        """Prepare to filter. `upper_bound` is the end offset of the part that is cleaned.

        `horizon_ms` is the delete horizon for batches with tombstones that have none yet.
        """
        self.bytes_read = 0
        self.bytes_written = 0
        self._kernels = kernels
        self._source = source
        self._offsets = offsets
        self.transactions: Final = transactions
        self._retention = Retention(transactions, upper_bound=upper_bound, now_ms=now_ms)
        self._out = np.empty(_OUT, np.uint8)
        self._fates = np.empty((0, kernel.FATE_COLUMNS), np.int64)
        self._read: Final = np.empty((CHUNK, READ_COLUMNS), np.int64)
        self._state: Final = np.zeros(kernel.FILTER_STATE, np.int64)
        self._state[kernel.LATEST] = offsets.latest_offset
        self._state[kernel.NOW] = now_ms
        self._state[kernel.NEW_HORIZON] = horizon_ms

    @property
    def records_read(self) -> int:
        """Number of records read. Records of batches that were discarded unread do not count."""
        return int(self._state[kernel.RECORDS_READ])

    @property
    def records_written(self) -> int:
        """Number of records kept."""
        return int(self._state[kernel.RECORDS_KEPT])

    @property
    def records_without_key(self) -> int:
        """Number of records dropped because they had no key."""
        return int(self._state[kernel.RECORDS_WITHOUT_KEY])

    def filter(
        self,
        file: File,
        size: int,
        output: CleanedSegment,
        last_batches: LastBatches,
        go_on: GoOn,
        *,
        old_tombstones_stay: bool,
    ) -> None:
        """Copy the batches and records to keep from a segment file to `output`.

        `go_on` is called after every block, and may raise. `old_tombstones_stay`: keep tombstones of magic 0 and 1,
        which have no delete horizon.
        """
        self._state[kernel.OLD_TOMBSTONES_STAY] = old_tombstones_stay
        for block in self._source.blocks(file, 0, size):
            actions = self._retention.actions(block, last_batches)
            if len(self._fates) < len(actions):
                self._fates = np.empty((len(actions), kernel.FATE_COLUMNS), np.int64)
            written = output.size
            self._filter_block(block, actions, output)
            self.bytes_read += block.size
            self.bytes_written += output.size - written
            go_on(block.size, output.size - written)

    def _filter_block(self, block: Block, actions: Int64s, output: CleanedSegment) -> None:
        first = 0
        discarded = actions & kernel.DISCARD
        while first < len(actions):
            last = self._source.inflate(block, first, discarded)
            while first < last:
                reached, rule, at = self._run(block, actions, first, last)
                if rule not in (rules.OK, kernel.FULL):
                    raise block.broken(rule, reached, at)
                if rule == kernel.FULL and self._state[kernel.OUT_AT] == 0:
                    self._out = np.empty(2 * len(self._out), np.uint8)
                self._write(block, first, reached, output)
                first = reached
        if len(self._out) > _OUT:
            self._out = np.empty(_OUT, np.uint8)

    def _run(self, block: Block, actions: Int64s, first: int, last: int) -> tuple[int, int, int]:
        reached, rule, at = self._kernels.filter_batches(
            checksum_tables(),
            block.memory,
            self._source.inflated,
            block.table,
            actions,
            first,
            last,
            self._offsets.seed,
            self._offsets.slots,
            self._state,
            self._out,
            self._fates,
            self._read,
        )
        return int(reached), int(rule), int(at)

    def _write(self, block: Block, first: int, last: int, output: CleanedSegment) -> None:
        """Append the filtered batches of rows `first` to before `last` to `output`; compress those that need it."""
        size = int(self._state[kernel.OUT_AT])
        self._state[kernel.OUT_AT] = 0
        if not size:
            return
        fates = self._fates[first:last]
        to_compress = np.flatnonzero(fates[:, kernel.TO_COMPRESS])
        out = self._out.data[:size]
        if not len(to_compress):
            output.append(out)
            return
        codecs = (block.table[first:last, scan.ATTRIBUTES][to_compress] & _CODEC).tolist()
        parts: list[Buffer] = []
        done = 0
        for codec, (start, end, _) in zip(codecs, fates[to_compress].tolist(), strict=True):
            if start > done:
                parts.append(out[done:start])
            parts += _compressed(out[start:end], codec)
            done = end
        parts.append(out[done:])
        output.append(b"".join(parts))


def _compressed(batch: memoryview, codec: int) -> tuple[Buffer, Buffer]:
    """Compress the records of a batch as its header says. Return the new header and the compressed records."""
    records = compress(codec, batch[HEADER_SIZE:])
    header = bytearray(batch[:HEADER_SIZE])
    header[LENGTH_AT : LENGTH_AT + 4] = (HEADER_SIZE - LOG_OVERHEAD + len(records)).to_bytes(4, "big")
    checksum = crc32c(records, crc32c(header[ATTRIBUTES_AT:]))
    header[CRC_AT : CRC_AT + 4] = checksum.to_bytes(4, "big")
    return header, records
