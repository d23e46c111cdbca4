"""Summarise one partition from the headers of its batches."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from octavo.errors import FormatError, OctavoError
from octavo.inspect.kinds import open_regular
from octavo.inspect.open_transactions import notes
from octavo.inspect.report.sampling import CompressionSample
from octavo.inspect.report.summary import SIZES, FoundProblem, PartitionSummary, SegmentSummary
from octavo.inspect.verify import Problem, check_partition
from octavo.inspect.verify.surroundings import Surroundings
from octavo.inspect.verify.tasks import sentence_of
from octavo.log.names import LOG, TopicPartition, base_offset_of
from octavo.log.segment.damage import BatchSearch
from octavo.log.segment.header_scan import scan_headers
from octavo.log.storage import File
from octavo.records.kernels import scan
from octavo.records.kernels.batch_table import Table
from octavo.records.layout import NO_TIMESTAMP, Attributes, Codec

_CODEC: Final = int(Attributes.CODEC)
_SECTOR: Final = 512  # bytes; the unit of `st_blocks` on all systems
_MOST_PROBLEMS: Final = 100  # that are kept for each partition

OnBytes = Callable[[int], None]


def survey_partition(
    folder: Path, beside: Surroundings | None = None, *, verify: bool, on_bytes: OnBytes | None = None
) -> PartitionSummary:
    """Return the summary of a partition's folder. It raises nothing: what cannot be read is said in the summary.

    beside: what the data directory says about the partition, if it was read already
    verify: also look for problems, as `octavo verify` does, which reads every byte
    on_bytes: called with the number of bytes that were looked at since the last call
    """
    summary = PartitionSummary(folder.name, TopicPartition.parse(folder.name))
    tell = on_bytes or (lambda size: None)
    try:
        sample = CompressionSample()
        for path, base_offset in _list(folder, summary):
            size = 0
            try:
                size = _survey_segment(path, base_offset, summary, sample)
            except FileNotFoundError:
                pass  # a broker has deleted or renamed it meanwhile
            except (OctavoError, OSError) as error:
                summary.failure = summary.failure or sentence_of(error)
            if not verify:
                tell(size)
        summary.sampled_in, summary.sampled_out = sample.size_in, sample.size_out
        summary.notes = list(notes(folder))
        if verify:
            _verify(folder, beside, summary, tell)
    except (OctavoError, OSError) as error:
        summary.is_gone = isinstance(error, FileNotFoundError) and not folder.exists()
        summary.failure = summary.failure or sentence_of(error)
    return summary


def _list(folder: Path, summary: PartitionSummary) -> list[tuple[Path, int]]:
    """Count the files of the folder; return its segments in the order of their base offsets."""
    logs = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_file(follow_symlinks=False):
                continue
            status = entry.stat(follow_symlinks=False)
            summary.disk_size += min(status.st_size, status.st_blocks * _SECTOR)
            base_offset = base_offset_of(entry.name)
            if entry.name.endswith(LOG) and base_offset is not None:
                logs.append((folder / entry.name, base_offset))
    return sorted(logs, key=lambda log: log[1])


def _survey_segment(path: Path, base_offset: int, summary: PartitionSummary, sample: CompressionSample) -> int:
    """Add a segment to a summary; return its size. Raises `FileNotFoundError` if it is not there any more."""
    file = open_regular(path)
    size = file.size()
    before = summary.batch_bytes
    first_ms = last_ms = NO_TIMESTAMP
    search = BatchSearch()

    def pass_over(file: File, error: FormatError, end: int) -> int:
        return search.next_batch(file, error.position, end)

    for table, shift in scan_headers(file, 0, size, pass_over):
        first, last = _add(table, summary)
        first_ms = first if first_ms < 0 else min(first_ms, first) if first >= 0 else first_ms
        last_ms = max(last_ms, last)
        sample.take(file, table, shift)
    if summary.start_offset is None:
        summary.start_offset = base_offset
    if summary.end_offset is None:
        summary.end_offset = base_offset
    summary.outside_batches += max(0, size - (summary.batch_bytes - before))
    if first_ms >= 0:
        summary.first_ms = first_ms if summary.first_ms < 0 else min(summary.first_ms, first_ms)
    summary.last_ms = max(summary.last_ms, last_ms)
    summary.add_segment(SegmentSummary(base_offset, size, first_ms, last_ms))
    return size


def _add(table: Table, summary: PartitionSummary) -> tuple[int, int]:
    """Add the batches of a table of headers to a summary; return their first and last timestamp."""
    attributes, sizes = table[:, scan.ATTRIBUTES], table[:, scan.SIZE]
    codecs = attributes & _CODEC
    counts = _counts(table, summary)
    summary.batches += len(table)
    summary.batch_bytes += int(sizes.sum())
    summary.records += int(counts.sum())
    is_new = table[:, scan.MAGIC] == 2
    for codec in np.unique(codecs).tolist():
        name = Codec(codec).name.lower() if codec < len(Codec) else "unknown"
        summary.codec_bytes[name] += int(sizes[codecs == codec].sum())
    _count_classes(sizes, summary.batch_sizes)
    _count_classes(counts[counts > 0], summary.batch_records)
    summary.end_offset = max(summary.end_offset or 0, int(table[-1, scan.LAST_OFFSET]) + 1)
    # The base timestamp of a batch with a delete horizon is a time to come, and not one of its records.
    is_horizon = is_new & ((attributes & int(Attributes.DELETE_HORIZON)) != 0)
    firsts = np.where(is_horizon, table[:, scan.MAX_TIMESTAMP], table[:, scan.BASE_TIMESTAMP])
    known = firsts[firsts >= 0]
    last = int(table[:, scan.MAX_TIMESTAMP].max(initial=NO_TIMESTAMP))
    return (int(known.min()) if len(known) else last), max(last, int(known.max(initial=NO_TIMESTAMP)))


def _counts(table: Table, summary: PartitionSummary) -> Table:
    """Return the number of records of each batch. For compressed messages of old formats it is taken from offsets."""
    counts = np.maximum(table[:, scan.COUNT], 0)
    is_wrapper = (table[:, scan.MAGIC] < 2) & ((table[:, scan.ATTRIBUTES] & _CODEC) != 0)
    if is_wrapper.any():
        lasts = table[:, scan.LAST_OFFSET]
        before = np.concatenate(([(summary.end_offset or int(lasts[0])) - 1], lasts[:-1]))
        counts = np.where(is_wrapper, np.maximum(lasts - before, 1), counts)
    return counts


def _count_classes(numbers: Table, classes: list[int]) -> None:
    """Count numbers by the power of two below them."""
    powers = np.minimum(np.log2(np.maximum(numbers, 1)).astype(np.int64), SIZES - 1)
    for power, count in enumerate(np.bincount(powers, minlength=SIZES).tolist()):
        classes[power] += count


def _verify(folder: Path, beside: Surroundings | None, summary: PartitionSummary, on_bytes: OnBytes) -> None:
    """Find the problems of the partition, and keep the first of them."""
    for problem in check_partition(folder, beside=beside, on_bytes=on_bytes):
        summary.problem_count += 1
        if summary.problem_count <= _MOST_PROBLEMS:
            summary.problems.append(found_problem(problem, f"{folder.name}/{problem.file}"))


def found_problem(problem: Problem, file: str) -> FoundProblem:
    """Return a problem as plain texts and numbers. `file` is its path below the data directory."""
    rule = problem.rule
    return FoundProblem(file, problem.position, problem.offset, rule.name, problem.found, rule.means, problem.repair)
