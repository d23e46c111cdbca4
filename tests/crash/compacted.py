"""What compaction has to leave of a log."""

from __future__ import annotations

from tests.crash.knowledge import Line
from tests.crash.truth import Seen, Written, latest, visible


def check_compacted(line: Line, cleaned_to: int, start: int, last_stable_offset: int) -> None:
    """Nothing is there that nobody wrote, no last value of a key is gone, and no deleted key is back."""
    by_offset = {batch.base_offset: batch for batch in line.written}
    for batch in line.found:
        assert _is_left_of(batch, by_offset.get(batch.base_offset)), (
            f"{batch} is not {by_offset.get(batch.base_offset)}"
        )
    there = {batch.base_offset: batch for batch in line.found}
    for batch in line.written:
        if batch.base_offset >= max(cleaned_to, start):
            assert there.get(batch.base_offset) == batch, f"{batch} was not to be compacted yet"
    check_latest(line, start, last_stable_offset)


def check_latest(line: Line, start: int, last_stable_offset: int) -> None:
    """By what is left, every key has the value that it has by all that was written."""
    written = visible(line.written, line.full, last_stable_offset)
    found = visible(line.found, line.full, last_stable_offset)
    is_, was = latest(_from(start, found)), latest(written)
    for key in is_.keys() | was.keys():
        if key not in was or was[key][0] >= start:
            assert is_.get(key) == was.get(key), f"{key!r} is {is_.get(key)}, and not {was.get(key)}"


def _from(start: int, records: list[Seen]) -> list[Seen]:
    return [record for record in records if record.offset >= start]


def _is_left_of(batch: Written, of: Written | None) -> bool:
    """Whether compaction may have left `batch` of another: with some of its records, or none."""
    if of is None or not set(batch.records) <= set(of.records):
        return False
    if batch.is_control and not batch.records:
        return of.is_control
    return batch._replace(records=(), timestamp_ms=0) == of._replace(records=(), timestamp_ms=0)
