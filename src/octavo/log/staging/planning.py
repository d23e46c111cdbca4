"""Check staged batches before they are appended, and decide what will be in the log: `Planner`.

Whatever an append could refuse is refused here. A batch that the topic's configuration changes is written, as it will
be in the log, to a further staged file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np

from octavo.errors import AppendRefused, ErrorCode, InvalidInput
from octavo.log.append.validated import Validated
from octavo.log.append.validator import Validator
from octavo.log.at_once import work_side_by_side
from octavo.log.log import Log
from octavo.log.names import TopicPartition
from octavo.log.staging.area import StagingArea
from octavo.log.staging.files import StagedFiles
from octavo.log.staging.journal import PendingPartition, Piece, pack_pieces
from octavo.log.staging.windows import WINDOW, Window, WindowReader, whole_batches
from octavo.log.staging.writer import StagedChunk, StagedFile, StagedWriter
from octavo.log.storage import Storage
from octavo.records.kernels import scan
from octavo.records.layout import HEADER_SIZE, MAX_INT32, Buffer

_REWRITTEN_TOGETHER: Final = 32  # batches, which are decompressed and held until all of them are rewritten


class _Source(NamedTuple):
    """Batches in a staged file."""

    name: str
    position: int
    size: int


class Planned(NamedTuple):
    """The part of a commit that concerns one partition."""

    pending: PendingPartition
    log: Log
    end_before: int  # the end of the log when it was planned


class Planner:
    """Plans one commit. The files that it opens and writes stay until the commit is over."""

    def __init__(self, area: StagingArea, storage: Storage, now_ms: int, *, keep_offsets: bool, sync: bool) -> None:
        self._files: Final = StagedFiles(area.folder, storage)
        self._now_ms: Final = now_ms
        self._keep_offsets: Final = keep_offsets
        self._rewritten: Final = StagedWriter(area, storage=storage, sync=sync)
        self._names: Final[dict[str, int]] = {}  # of the files that the journal will name, with their index
        self._lock: Final = threading.Lock()  # of the names, and of what is rewritten: several threads plan

    @property
    def file_names(self) -> tuple[str, ...]:
        """The names of all files that hold batches of the commit."""
        return tuple(self._names)

    def plan(
        self, files: Iterable[StagedFile], logs: Mapping[TopicPartition, Log], topic_ids: Mapping[str, UUID]
    ) -> list[Planned]:
        """Check the batches of all files. Raises `AppendRefused`, `CorruptFile`, `InvalidInput` and `OSError`."""
        sources: dict[TopicPartition, list[_Source]] = {}
        for file in files:
            _check_chunks(file)
            for chunk in file.chunks:
                source = _Source(file.name, chunk.position, chunk.size)
                sources.setdefault(chunk.partition, []).append(source)
        planned: dict[TopicPartition, Planned] = {}

        def plan_partition(partition: TopicPartition) -> None:
            planned[partition] = self._plan_partition(logs[partition], topic_ids[partition.topic], sources[partition])

        size = sum(source.size for each in sources.values() for source in each)
        work_side_by_side(plan_partition, sorted(sources), size)
        self._rewritten.finish()
        return [planned[partition] for partition in sorted(planned)]

    def discard(self) -> None:
        """Remove what was rewritten, because the commit does not take place."""
        self._rewritten.discard()

    def _plan_partition(self, log: Log, topic_id: UUID, sources: Sequence[_Source]) -> Planned:
        end_before = offset = log.end_offset
        validator = Validator(log.config)
        limit = max(WINDOW, log.config.segment_bytes if self._keep_offsets else log.config.max_message_bytes)
        if self._keep_offsets:
            sources = sorted(sources, key=self._first_offset)
        pieces: list[Piece] = []
        first_offset, digest = -1, 0
        reader = WindowReader() if log.config.compression_type == "producer" else WindowReader(_REWRITTEN_TOGETHER)
        try:
            for source in sources:
                position = source.position
                for window in reader.read(self._files.open(source.name), position, source.size, max_batch=limit):
                    size = window.size
                    kept = self._keep(log, window, validator, offset)
                    if kept is window:
                        self._add(pieces, source.name, position, size)
                    else:
                        with self._lock:
                            rewritten_at = self._rewritten.add(*log.partition, kept.data.data)
                        assert self._rewritten.name is not None
                        self._add(pieces, self._rewritten.name, rewritten_at, kept.size)
                    first_offset = int(kept.rows[0, scan.BASE_OFFSET]) if first_offset < 0 else first_offset
                    offset = int(kept.rows[-1, scan.LAST_OFFSET]) + 1
                    digest = kept.digest(digest)
                    position += size
        except AppendRefused as error:
            # Whoever staged rows knows nothing of the bytes at which their batches are, and one reason is enough.
            why = error.message
            if error.record_errors:
                why = f"a record is refused: {error.record_errors[0].message}"
            raise AppendRefused(error.code, f"{log.partition}: {why}", error.record_errors) from None
        pending = PendingPartition(
            topic=log.partition.topic,
            topic_id=topic_id,
            partition=log.partition.partition,
            base_offset=first_offset,
            digest=digest,
            packed_pieces=pack_pieces(pieces),
        )
        return Planned(pending, log, end_before)

    def _keep(self, log: Log, window: Window, validator: Validator, offset: int) -> Window:
        """Return the batches as they will be in the log: the same window with offsets, or a rewritten one."""
        window.set_epoch(log.leader_epoch)
        if self._keep_offsets:
            _check(validator.check(window.data.data, end_offset=offset), window, log)
            _check_gaps(window, offset, log)
            return window
        checked = validator.assign(window.data.data, offset=offset, leader_epoch=log.leader_epoch, now_ms=self._now_ms)
        _check(checked, window, log)
        if checked.producers:
            raise AppendRefused(ErrorCode.INVALID_RECORD, "staged batches have no producer id")
        window.set_offsets(offset)
        if _are_headers_of(window, checked.parts[::2]):  # each is followed by its records, which its checksum covers
            return window
        return whole_batches(bytearray().join(checked.parts))

    def _first_offset(self, source: _Source) -> int:
        """Return the base offset of the first batch."""
        return int.from_bytes(self._files.open(source.name).read_at(8, source.position), signed=True)

    def _add(self, pieces: list[Piece], name: str, position: int, size: int) -> None:
        """Add a piece, or make the last one longer."""
        with self._lock:
            file = self._names.setdefault(name, len(self._names))
        last = pieces[-1] if pieces else None
        if last is not None and last.file == file and last.position + last.size == position:
            pieces[-1] = last._replace(size=last.size + size)
        else:
            pieces.append(Piece(file, position, size))


def _check(checked: Validated, window: Window, log: Log) -> None:
    """Check that every batch of the window is there, and fits into a segment."""
    assert len(checked.spans) == len(window.rows), "a window has whole batches only"
    largest = max(map(attrgetter("size"), checked.spans))
    if largest > log.config.segment_bytes:
        raise AppendRefused(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"a batch of {largest:,} bytes does not fit into a segment of {log.config.segment_bytes:,}",
        )


def _are_headers_of(window: Window, headers: Sequence[Buffer]) -> bool:
    """Return whether these are the headers of the batches in the window."""
    if len(headers) != len(window.rows) or any(len(header) != HEADER_SIZE for header in headers):
        return False
    return np.array_equal(
        np.frombuffer(b"".join(headers), np.uint8).reshape(-1, HEADER_SIZE),
        window.data[window.rows[:, scan.POSITION, None] + np.arange(HEADER_SIZE)],
    )


def _check_gaps(window: Window, offset: int, log: Log) -> None:
    """Check that no more offsets are left out than a segment can span, except before the first record of a log."""
    first, last = window.rows[:, scan.BASE_OFFSET], window.rows[:, scan.LAST_OFFSET]
    if log.start_offset == log.end_offset == offset:
        offset = int(first[0])
    if (last - np.concatenate(([offset], last[:-1] + 1)) > MAX_INT32).any():
        raise AppendRefused(
            ErrorCode.INVALID_RECORD, f"between two batches more than {MAX_INT32:,} offsets are missing"
        )


def _check_chunks(file: StagedFile) -> None:
    """Check that no byte of a file is in two of its chunks. Raises `InvalidInput`."""
    chunks: list[StagedChunk] = sorted(file.chunks, key=attrgetter("position"))
    if any(chunk.position < 0 or chunk.size <= 0 for chunk in chunks) or any(
        one.position + one.size > other.position for one, other in pairwise(chunks)
    ):
        raise InvalidInput(f"the chunks of the staged file {file.name!r} are empty or overlap")
