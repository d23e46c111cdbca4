"""Find the bytes to explain in a file: the batch at a position or with an offset, also in a damaged file.

A file may be written to or cut meanwhile, so it is read and not mapped into memory. Only the batch itself is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from octavo.errors import FormatError, InvalidInput, OctavoError, Unreadable
from octavo.inspect.bytemap.batches import explain
from octavo.inspect.bytemap.entries import KINDS, explain_entries
from octavo.inspect.bytemap.field import Field, Section
from octavo.inspect.kinds import FileName, Kind, begins_with_batch, is_zero, open_regular, reason_of
from octavo.log.names import INDEX
from octavo.log.segment.batch_walk import Entry, check, walk
from octavo.log.segment.damage import BatchSearch
from octavo.log.segment.find import batches_from
from octavo.log.segment.index import OffsetIndex
from octavo.log.storage import DISK, File
from octavo.records.kernels.scan import BROKEN, MORE, TORN, entry_extent
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD

_MOST_BROKEN: Final = 64 << 10  # bytes that are shown of a place where there is no batch
_MOST_OF_A_FILE: Final = 64 << 20  # bytes that are read of an index or a checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteMap:
    """The map of one batch or small file."""

    path: Path
    kind: Kind
    fields: list[Field]
    position: int  # where the mapped bytes begin
    size: int  # how many there are, before decompression
    file_size: int
    next_position: int | None = None  # where the next batch begins, if there is one
    notes: tuple[str, ...] = ()  # what else a reader should know
    is_torn: bool = False  # the file ends inside the batch, which is no damage

    @property
    def problems(self) -> list[Field]:
        """The fields in which something is wrong."""
        return [field for field in self.fields if field.problem]


def explain_file(
    path: Path, *, offset: int | None = None, position: int | None = None, max_records: int | None = None
) -> ByteMap:
    """Map one batch of a file, or the entries of another file of a data directory.

    offset: the batch that has this offset; by default the first batch. In an index, the last entry up to this offset
    position: the batch that covers this byte; in an index, the entry there
    max_records: map at most so many records or entries one by one

    Raises `Unreadable` if there is no such file or it cannot be read, and `InvalidInput` if it has no such offset or
    position, or has nothing to explain.
    """
    file = open_regular(path)
    try:
        return _explain_open(file, path, offset, position, max_records)
    except OctavoError:
        raise
    except OSError as error:
        raise Unreadable(path, reason_of(error)) from None


def _explain_open(file: File, path: Path, offset: int | None, position: int | None, max_records: int | None) -> ByteMap:
    name = FileName.parse(path.name)
    size = file.size()
    if position is not None and not 0 <= position < max(size, 1):
        raise InvalidInput(f"{path} has {size:,} bytes, and none at {position:,}")
    if name.kind in KINDS:
        data = file.read_at(min(size, _MOST_OF_A_FILE), 0)
        if size > _MOST_OF_A_FILE:
            raise InvalidInput(f"{path} has {size:,} bytes, which is more than {name.kind.value} can have")
        base_offset, at = name.base_offset or 0, position or 0
        fields = explain_entries(
            name.kind, data, base_offset=base_offset, offset=offset, position=at, max_entries=max_records
        )
        return ByteMap(path=path, kind=name.kind, fields=fields, position=0, size=len(data), file_size=size)
    if name.kind in (Kind.LOCK, Kind.CLEAN_SHUTDOWN, Kind.COMMIT_JOURNAL):
        raise InvalidInput(f"{path} is {name.kind.value}: there is nothing to explain")
    _check_batches(file, path, name, size, position)
    return _explain_batch(file, path, name, size, offset, position, max_records)


def _check_batches(file: File, path: Path, name: FileName, size: int, position: int | None) -> None:
    """Raise `InvalidInput` if a file that is not named after an offset, as Kafka's are, does not seem to have batches.

    One that is damaged at its beginning is explained at the position of a sound batch.
    """
    is_new_segment = name.kind is Kind.SEGMENT and not size
    if name.base_offset is not None or is_new_segment:
        return
    if begins_with_batch(file.read_at(min(size, BATCH_HEADER.size), 0), size):
        return
    if position is None or not _is_sound(file, position, size):
        what = "it begins with no batch of records" if size else "it is empty"
        raise InvalidInput(f"{path}: this is no file of Kafka's: {what}")


def _explain_batch(
    file: File, path: Path, name: FileName, size: int, offset: int | None, position: int | None, most: int | None
) -> ByteMap:
    notes: list[str] = []
    if offset is not None:
        start = _find_offset(file, path, name, size, offset, notes)
    else:
        start = _find_position(file, size, position or 0)
    if _ends_in_zeros(file, start, size):
        return _zeros(file, path, name, start, size)
    head = file.read_at(BATCH_HEADER.size, start)
    outcome, batch_size, _ = entry_extent(head, 0, size - start) if head else (MORE, 0, 0)
    next_position = start + batch_size
    if outcome in (BROKEN, TORN):
        next_position = BatchSearch().next_batch(file, start, size)
        batch_size = min(next_position - start, _MOST_BROKEN if outcome == BROKEN else size)
        if outcome == BROKEN:
            notes.append(f"there is no batch at byte {start:,}: this is shown as if there were one")
        elif next_position < size:
            notes.append(f"a whole batch follows at byte {next_position:,}, so the length of this one is wrong")
        if batch_size < next_position - start:
            notes.append(f"only the first {batch_size:,} of {next_position - start:,} bytes are shown")
    data = file.read_at(batch_size, start)
    fields = explain(data, origin=start, max_records=most, offset=offset)
    return ByteMap(
        path=path,
        kind=name.kind,
        fields=fields,
        position=start,
        size=fields[0].size if fields else 0,
        file_size=size,
        next_position=next_position if next_position < size and not _ends_in_zeros(file, next_position, size) else None,
        notes=tuple(notes),
        is_torn=outcome == TORN and next_position == size,
    )


def _ends_in_zeros(file: File, position: int, size: int) -> bool:
    """Whether only zeros follow, enough of them to be no torn batch."""
    return size - position >= LOG_OVERHEAD and is_zero(file, position, size)


def _zeros(file: File, path: Path, name: FileName, start: int, size: int) -> ByteMap:
    """Map the zeros that fill a segment to its end."""
    data = file.read_at(min(size - start, _MOST_BROKEN), start)
    fields: list[Field] = []
    Section(memoryview(data), fields, origin=start).leaf("zeros", 0, len(data), f"{size - start:,} bytes", 0)
    notes = ["only zeros follow up to the end of the file, as if they were allocated in advance: this is no damage"]
    if len(data) < size - start:
        notes.append(f"only the first {len(data):,} of {size - start:,} bytes are shown")
    return ByteMap(
        path=path, kind=name.kind, fields=fields, position=start, size=len(data), file_size=size, notes=tuple(notes)
    )


def _find_position(file: File, size: int, position: int) -> int:
    """Return where the batch, or the damage, begins that covers the byte at `position`."""
    if position == 0 or _is_sound(file, position, size):
        return position
    start = 0
    for entry in _walk_on(file, 0, size):
        if entry.position > position:
            break
        start = entry.position
        if position < entry.end:
            break
        start = entry.end
    return start


def _is_sound(file: File, position: int, size: int) -> bool:
    try:
        entry = next(walk(file, position, size), None)
        if entry is None:
            return False
        check(file, entry)
    except FormatError:
        return False
    return True


def _walk_on(file: File, position: int, size: int) -> Iterator[Entry]:
    """Yield the batches from `position` on, and pass over damage."""
    search = BatchSearch()
    while position < size:
        with suppress(FormatError):
            for entry in walk(file, position, size):
                yield entry
                position = entry.end
        position = search.next_batch(file, position, size)


def _find_offset(file: File, path: Path, name: FileName, size: int, offset: int, notes: list[str]) -> int:
    """Return where the first batch begins that reaches `offset`."""
    last: Entry | None = None
    for entry in _walk_on(file, _hinted_start(file, path, name, size, offset), size):
        if entry.last_offset >= offset:
            if entry.base_offset > offset and (last is None or last.last_offset < offset):
                notes.append(f"offset {offset:,} is not in this file: this is the first batch behind it")
            return entry.position
        last = entry
    if last is None:
        raise InvalidInput(f"{path} has no batch with offset {offset:,}")
    raise InvalidInput(f"{path} has no batch with offset {offset:,}: its last one ends with {last.last_offset:,}")


def _hinted_start(file: File, path: Path, name: FileName, size: int, offset: int) -> int:
    """Return the position of a batch before `offset`: where the index leads if that is right, else the beginning."""
    if name.kind is Kind.SEGMENT and name.base_offset is not None and not name.renamed:
        with suppress(FormatError, OSError):
            hint = OffsetIndex(DISK, path.with_suffix(INDEX), name.base_offset, size).lookup(offset)
            hinted = None if hint is None else batches_from(file, hint, size)
            if hinted is not None:
                check(file, hinted[0])
                return hinted[0].position
    return 0
