"""Find a batch or a record in a segment file, by its offset or timestamp, also past damage.

An index only gives hints. If an entry does not lead to the batch that it names, the file is walked from its first byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from octavo.errors import CorruptFile, FormatError
from octavo.log.segment.batch_walk import CUT, Entry, check, check_between, walk
from octavo.log.segment.damage import BatchSearch, OnDamage
from octavo.log.segment.index import OffsetEntry, OffsetIndex
from octavo.log.storage import File
from octavo.records import read_batches
from octavo.records.layout import MIN_INT64
from octavo.records.offset_order import RULE, is_misplaced


class DamageBefore(NamedTuple):
    """Damage before a batch that was searched for."""

    position: int
    last_offset: int  # of the batch before the damage; MIN_INT64 if it is not known


def find(file: File, index: OffsetIndex, base_offset: int, offset: int, end: int) -> Entry | None:
    """Return the first batch whose last offset is `offset` or larger, if it ends at or before position `end`.

    Batches are skipped according to their headers. If that leaves a gap before `offset`, their checksums are verified,
    so that no wrong header makes records disappear. The batch that is found is not verified.

    Raises `CorruptFile` for damage on the way.
    """
    hint = index.lookup(offset)
    if hint is not None:
        with suppress(CorruptFile):
            hinted = batches_from(file, hint, end)
            if hinted is not None:
                return _find(file, *hinted, base_offset, offset, end)
        # The index lies. The data do not.
    batches = walk(file, 0, end)
    entry = next(batches, None)
    if entry is None and end:
        raise CorruptFile(file.path, 0, CUT)
    return None if entry is None else _find(file, entry, batches, base_offset, offset, end)


def batches_from(file: File, hint: OffsetEntry, end: int) -> tuple[Entry, Iterator[Entry]] | None:
    """Return the batch that an index entry leads to, and those after it; None if the entry names another batch.

    Raises `CorruptFile` if there is no batch at that position.
    """
    if not 0 < hint.position < end:
        return None
    batches = walk(file, hint.position, end)
    entry = next(batches, None)
    if entry is None or not entry.base_offset <= entry.last_offset <= hint.offset:
        return None
    return entry, batches


def _find(file: File, entry: Entry, batches: Iterator[Entry], base_offset: int, offset: int, end: int) -> Entry | None:
    """Return the first batch from `entry` on whose last offset is `offset` or larger. Raises `CorruptFile`."""
    start = entry.position
    found: Entry | None = entry
    before: Entry | None = None
    last_offset = earlier = base_offset - 1 if start == 0 else MIN_INT64  # of `before`, and of the batch before that
    while found is not None and found.last_offset < offset:
        before, found = found, next(batches, None)
        last_offset, earlier = before.last_offset, last_offset
    passed = end if found is None else found.position
    if found is None or found.base_offset > offset:
        if before is not None and before.end == passed and last_offset == offset - 1:
            check(file, before)
            if before.base_offset <= earlier:
                raise CorruptFile(file.path, before.position, RULE)
        else:
            check_between(file, start, passed)
    if found is not None and _is_misplaced(found, last_offset, batches):
        raise CorruptFile(file.path, found.position, RULE)
    return found


def _is_misplaced(entry: Entry, before: int, following: Iterator[Entry]) -> bool:
    """Return whether a batch cannot belong where it is, after one whose last offset is `before`."""
    if entry.base_offset == before + 1:
        return False
    behind = None
    with suppress(CorruptFile):
        behind = next(following, None)
    return is_misplaced(entry.base_offset, entry.last_offset, before, None if behind is None else behind.base_offset)


def find_last(file: File, index: OffsetIndex, first: Entry, end: int, data_end: int) -> Entry:
    """Return the last batch from `first` on that ends at or before `end`, and before damage.

    `first` itself is not checked. A batch whose offsets cannot be right ends the search, too. `data_end`: the position
    up to which batches after `end` may be looked at, to find that out. The batches in between are not looked at, if the
    index leads past them.
    """
    hint = index.well_before(end)
    if hint is not None and hint.position > first.position:
        with suppress(CorruptFile):
            hinted = batches_from(file, hint, end)
            if hinted is not None and hinted[0].base_offset > first.last_offset:
                last = _last_in_place(file, *hinted, data_end)
                if last.position > hint.position:
                    return last
        # The index lies, or only its own entry says that this batch is in its place.
    return _last_in_place(file, first, walk(file, first.end, end), data_end)


def _last_in_place(file: File, last: Entry, batches: Iterator[Entry], data_end: int) -> Entry:
    with suppress(CorruptFile):  # a read that begins there finds out what is wrong
        for entry in batches:
            if _is_misplaced(entry, last.last_offset, walk(file, entry.end, data_end)):
                break
            last = entry
    return last


def find_past_damage(
    file: File, index: OffsetIndex, base_offset: int, offset: int, end: int
) -> tuple[Entry | None, DamageBefore | None]:
    """Find a batch like `find`, but skip damage, and accept only batches whose checksums are right.

    Also returns the damage right before the batch, or right before `end` if no batch is found.
    """
    with suppress(FormatError):
        found = find(file, index, base_offset, offset, end)
        if found is not None:
            check(file, found)
            return found, None
    position = _hinted_before(file, index, offset, end)
    last_offset = MIN_INT64 if position else base_offset - 1
    damage = None
    search = BatchSearch()
    while position < end:
        with suppress(FormatError):
            for entry in walk(file, position, end):
                check(file, entry)
                if _is_misplaced(entry, last_offset, walk(file, entry.end, end)):
                    break
                if entry.last_offset >= offset:
                    return entry, damage
                position, damage, last_offset = entry.end, None, entry.last_offset
        if position < end:
            damage = DamageBefore(position, last_offset)
            position = search.next_batch(file, position, end)
    return None, damage


def _hinted_before(file: File, index: OffsetIndex, offset: int, end: int) -> int:
    """Return the position at which to begin a search for `offset`: one index entry earlier than necessary.

    The batch before the wanted one shows whether the wanted one is in its place.
    """
    hint = index.lookup(offset)
    if hint is not None:
        hint = index.lookup(hint.offset - 1)
    with suppress(CorruptFile):
        if hint is not None and batches_from(file, hint, end) is not None:
            return hint.position
    return 0


def find_timestamp(
    file: File, position: int, end: int, timestamp_ms: int, start_offset: int, on_damage: OnDamage | None = None
) -> tuple[int, int, int] | None:
    """Return the first record from `start_offset` on with this timestamp or a larger one, between two positions.

    The result is its offset, its timestamp and its leader epoch.

    Batches are skipped according to their headers, but only if their checksums are right: a wrong length would lead
    past other batches, and to bytes that only look like a batch. Damage, which includes a batch that is cut, is handed
    to `on_damage`. Without it, damage raises a `FormatError`, and a batch that is cut ends the search.
    """
    while position < end:
        try:
            for entry in walk(file, position, end):
                if entry.max_timestamp_ms < timestamp_ms or entry.last_offset < start_offset:
                    check(file, entry)
                elif (found := _first_in(file, entry, timestamp_ms, start_offset)) is not None:
                    return found
                position = entry.end
            rule = CUT
        except FormatError as error:
            if on_damage is None:
                raise
            rule = error.rule
        if position == end or on_damage is None:
            break
        position = on_damage(file, CorruptFile(file.path, position, rule), end)
    return None


def _first_in(file: File, entry: Entry, timestamp_ms: int, start_offset: int) -> tuple[int, int, int] | None:
    for batch in read_batches(file.read_at(entry.size, entry.position)):
        for record in batch:
            if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                return record.offset, record.timestamp_ms, batch.leader_epoch
    return None
