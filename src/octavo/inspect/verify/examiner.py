"""Check all batches of a file, with bounded memory, and go on after damage.

The kernels say what is wrong with a batch. This module reads the file in blocks, decompresses records, and finds the
next sound batch after damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from octavo.errors import FormatError, LimitExceeded
from octavo.inspect.verify import batch_rules
from octavo.inspect.verify.batch_columns import COLUMNS, Table
from octavo.inspect.verify.damage import damage_at, is_sound
from octavo.inspect.verify.problem import Problem
from octavo.inspect.verify.tail import Tail, tail_of
from octavo.inspect.verify.trusted import trusted_kernels
from octavo.log.segment.damage import BatchSearch
from octavo.log.storage import File
from octavo.records.compression import Inflater
from octavo.records.kernels import Kernels, scan
from octavo.records.kernels.batch_checksums import checksum_tables
from octavo.records.kernels.batch_inflation import BatchInflation, has_stream
from octavo.records.kernels.verification import examine, faults
from octavo.records.layout import NO_LEADER_EPOCH, Attributes, Codec

BLOCK: Final = 1 << 20  # bytes that are read at a time: they are still in the processor's cache when they are checked
_ROWS: Final = 1 << 10
_FOUND: Final = 1 << 8
_INFLATED: Final = 2 << 20  # bytes that are decompressed at a time
_BELIEVED: Final = 16 << 20  # a batch that claims to be larger gets memory only after its checksum was found right
_CODEC: Final = int(Attributes.CODEC)
_OF_PLACE: Final = (faults.ORDER, faults.EPOCH_ORDER, faults.GAP)  # the records may be right all the same
_LAST_CODEC: Final = int(Codec.ZSTD)


Bytes = npt.NDArray[np.uint8]


class Step(NamedTuple):
    """The next sound batches of a file, and what is wrong with them, or with what was between them."""

    table: Table  # valid until the next step
    problems: list[Problem]


class Examiner:
    """Checks one file after the other, in the same memory."""

    def __init__(self) -> None:
        self.tail: Tail | None = None  # what is behind the last sound batch of the file that was examined last
        self.end_position = 0  # of its last sound batch
        self.is_sound = True  # whether every byte up to there belongs to a sound batch
        self._memory = np.empty(BLOCK, np.uint8)
        self._table = np.empty((_ROWS, COLUMNS), np.int64)
        self._found = np.empty((_FOUND, examine.FOUND), np.int64)
        self._state = np.empty(examine.STATE, np.int64)
        self._inflater = Inflater()
        self._name = ""

    def examine(
        self, file: File, name: str, end: int, *, no_gaps: bool = False, epoch: int = NO_LEADER_EPOCH
    ) -> Iterator[Step]:
        """Yield the batches of the first `end` bytes of a file, and their problems, in order.

        name: of the file, for the problems
        no_gaps: every offset must be there
        epoch: the highest leader epoch before this file
        """
        self._name = name
        self._state[:] = -1
        self._state[examine.NO_GAPS] = no_gaps
        self._state[[examine.EPOCH, examine.OLDER_EPOCH]] = epoch
        self.tail, self.is_sound, self.end_position = None, True, 0
        search, position = BatchSearch(), 0
        trusted_kernels(end)
        while position < end and self.tail is None:
            kernel_set = trusted_kernels(0)
            size = file.read_into(self._memory.data[: end - position], position)
            if size < min(len(self._memory), end - position):
                end = position + size  # the file was truncated meanwhile
            at, outcome, detail = 0, examine.FULL, 0
            while outcome == examine.FULL:
                at, rows, many, outcome, detail = kernel_set.examine(
                    checksum_tables(), self._memory, at, size, position, self._state, self._table, self._found
                )
                yield self._step(kernel_set, self._memory, rows, many, position)
            block_end, position = position + size, position + at
            self.end_position = position
            if outcome == examine.CUT and (position + detail <= end if detail else block_end < end):
                if detail <= len(self._memory) or self._has_room(file, position, detail):
                    continue
                outcome = examine.MISMATCH
                if detail > self._inflater.limit and is_sound(file, position, detail):
                    yield Step(self._table[:0], [self._too_large(file, position, detail)])
                    position += detail
                    continue
            if outcome != examine.DONE:
                position, problem = self._damage(file, search, position, end, outcome, detail)
                if problem is not None:
                    yield Step(self._table[:0], [problem])
        if len(self._memory) > BLOCK:
            self._memory = np.empty(BLOCK, np.uint8)

    def examine_content(self, memory: Bytes, at: int, end: int, shift: int) -> Iterator[Problem]:
        """Yield what is wrong with batches that were found sound from outside, each by itself.

        memory: its bytes from `at` to `end` are whole batches; it begins at position `shift` of the file
        """
        outcome = examine.FULL
        while outcome == examine.FULL:
            self._state[:] = -1
            self._state[examine.NO_GAPS] = False
            kernel_set = trusted_kernels(end - at)
            at, rows, many, outcome, _ = kernel_set.examine(
                checksum_tables(), memory, at, end, shift, self._state, self._table, self._found
            )
            yield from self._step(kernel_set, memory, rows, many, shift).problems

    def _step(self, kernel_set: Kernels, memory: Bytes, rows: int, many: int, shift: int) -> Step:
        """Return the batches and problems of one call of the kernel, after the compressed records were checked, too."""
        table = self._table[:rows]
        problems = self._problems(many)
        compressed = np.flatnonzero(has_stream(table) & (table[:, scan.ATTRIBUTES] & _CODEC <= _LAST_CODEC))
        if len(compressed):
            if many:
                found = self._found[:many]
                wrong = found[~np.isin(found[:, examine.FAULT], _OF_PLACE), examine.WHERE] - shift
                compressed = compressed[~np.isin(table[compressed, scan.POSITION], wrong)]
            problems += self._inflated(kernel_set, memory, table, compressed, shift)
        table[:, scan.POSITION] += shift
        problems.sort(key=lambda problem: problem.position or 0)
        return Step(table, problems)

    def _inflated(self, kernel_set: Kernels, memory: Bytes, table: Table, rows: Table, shift: int) -> list[Problem]:
        """Decompress the records of these rows of the table, and check them."""
        problems: list[Problem] = []
        while len(rows):
            inflation = BatchInflation(kernel_set, self._inflater, memory, table, rows, shift=shift)
            first, next_row, error = int(rows[0]), inflation.next_row, inflation.error
            while error is None and next_row is not None:
                self._inflater.clear()
                inflation.go_on(_INFLATED)
                next_row, error = inflation.next_row, inflation.error
                end = len(table) if next_row is None else next_row
                data = np.frombuffer(self._inflater.buffer, np.uint8)
                while first < end:
                    first, many = kernel_set.examine_inflated(
                        checksum_tables(), data, shift, table, first, end, self._found
                    )
                    problems += self._problems(many)
                del data  # so that the memory can grow
            if next_row is None or error is None:
                break
            problems.append(self._unreadable(table[next_row], shift, error))
            rows = rows[np.searchsorted(rows, next_row) + 1 :]
        return problems

    def _unreadable(self, row: Table, shift: int, error: FormatError) -> Problem:
        """Return the problem that the records of a batch cannot be decompressed."""
        rule = batch_rules.TOO_LARGE if isinstance(error, LimitExceeded) else batch_rules.COMPRESSION
        position, offset = shift + int(row[scan.POSITION]), int(row[scan.BASE_OFFSET])
        return rule.broken(self._name, position=position, offset=offset, found=error.rule)

    def _too_large(self, file: File, position: int, size: int) -> Problem:
        offset = int.from_bytes(file.read_at(8, position), signed=True)
        return batch_rules.TOO_LARGE.broken(self._name, position=position, offset=offset, found=f"{size} bytes")

    def _problems(self, many: int) -> list[Problem]:
        """Return the problems that a kernel has found."""
        found = self._found[:many].tolist()
        return [batch_rules.FAULTS[fault].at(self._name, *numbers) for fault, *numbers in found]

    def _has_room(self, file: File, position: int, size: int) -> bool:
        """Make room for a batch that is larger than a block. Return False if its checksum is wrong, or it is too large.

        The file may claim any size, so that one above 16 MiB is believed only after its checksum was found right.
        """
        if size > self._inflater.limit or (size > _BELIEVED and not is_sound(file, position, size)):
            return False
        self._memory = np.empty(size, np.uint8)
        return True

    def _damage(
        self, file: File, search: BatchSearch, position: int, end: int, outcome: int, detail: int
    ) -> tuple[int, Problem | None]:
        """Return where the next sound batch after the damage at `position` begins, and what is wrong there.

        If there is none, the rest of the file is its tail, and nothing is said to be wrong yet.
        """
        last = int(self._state[examine.LAST_OFFSET])
        found = search.next_batch(file, position, end, last if last >= 0 else None)
        problem = damage_at(file, self._name, position, found, outcome, detail)
        if found >= end:
            self.tail = tail_of(file, position, end, problem, is_cut=outcome == examine.CUT)
            return end, None
        self.is_sound = False
        return found, problem
