"""Convert the records of one file to lines of JSON, one object per record.

    topic, partition    from the folder `<topic>-<partition>` of a `.log` file, else null
    offset, timestamp   the timestamp in milliseconds as stored: -1 if there is none
    timestampType       `CreateTime`, `LogAppendTime` or `NoTimestampType`, as Kafka prints them
    key, value          in the form that `Binary` sets; null, which is not the same as ""
    headers             a list of [key, value], keys always as text
    producerId, producerEpoch, sequence, isTransactional, isControl, magic, compression
    file, position      the path as it was given, and the byte at which the record's batch begins
    control             only in control records: the name of the type, and the fields that Kafka stores for it

The file is mapped into memory, so that no more memory is needed than for the largest batch. A batch without records has
no line.
"""

from __future__ import annotations

import json
import mmap
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Final

from octavo.errors import FormatError, InvalidInput, Truncated
from octavo.inspect.control import control_content
from octavo.inspect.descriptions import TIMESTAMP_TYPES
from octavo.inspect.kinds import FileName, Kind, open_regular, topic_and_partition
from octavo.log.names import LOG
from octavo.records import Batch, Damage, Record, read_batches, read_control
from octavo.records.offset_order import base_offset_at, is_misplaced, misplaced

_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode

Offsets = tuple[int | None, int | None]


class Binary(StrEnum):
    """How keys, values and header values are printed.

    `TEXT` is UTF-8. Bytes that are not UTF-8 become an object, `{"hex": "ff00"}`: nothing is lost, every JSON parser
    can read it, and it cannot be mistaken for text.
    """

    HEX = "hex"
    BASE64 = "base64"
    TEXT = "text"


class Dump(Iterable[str]):
    """The records of one file as lines of JSON, each with its newline. Can be iterated over once.

    verify: compare checksums; for batches outside the range of offsets, only if a gap in the offsets follows
    resync: continue after damage, and record it in `damage`
    offsets: the first offset, and the offset after the last; None for no limit. Batches outside are not decoded

    In a file that is named like a segment, batches whose offsets do not increase are damage, too.

    Raises `Unreadable` if the file cannot be opened. Raises `InvalidInput` for a range that ends before it
    begins, and for the other kinds of files that Kafka keeps beside segments.
    Without `resync`, iterating yields everything before the first damage, and then raises `FormatError`.
    """

    def __init__(
        self,
        path: Path,
        *,
        binary: Binary = Binary.HEX,
        verify: bool = True,
        resync: bool = False,
        offsets: Offsets = (None, None),
    ) -> None:
        self._first, self._behind = offsets
        if self._first is not None and self._behind is not None and self._behind < self._first:
            raise InvalidInput(f"the range of offsets ends at {self._behind}, before it begins at {self._first}")
        self._path: Final = path
        self._file: Final = _mapped(path)
        name = FileName.parse(path.name)
        if name.kind is not Kind.UNKNOWN and not name.kind.has_batches:
            raise InvalidInput(
                f"{path} is {name.kind.value}, not a segment: the records are in files that end in {LOG}"
            )
        self.size: Final = len(self._file)
        self._resync: Final = resync
        self._verify: Final = verify
        # Without resync only the wanted batches are verified, in `__iter__`.
        self._reader: Final = read_batches(self._file, verify=verify and resync, resync=resync)
        base_offset = name.base_offset if path.suffix == LOG else None
        # The last offset of the previous batch; None if the file is not named like a segment.
        self._last_offset = None if base_offset is None else base_offset - 1
        self._bytes_as_json: Final = _BYTES_AS_JSON[binary]

    @property
    def position(self) -> int:
        """The position after the batch that is being iterated over."""
        return self._reader.position

    @property
    def damage(self) -> list[Damage]:
        """The damage that was skipped so far. Only with `resync`."""
        return self._reader.damage

    @property
    def torn_tail(self) -> int | None:
        """The position of an incomplete batch at the end of the file, or None. Known after the iteration."""
        return self._reader.torn_tail

    def __iter__(self) -> Iterator[str]:
        for batch in self._reader:
            try:
                behind = self._base_offset_behind(batch)
                is_wanted = self._is_wanted(batch)
                if self._verify and not self._resync and (is_wanted or behind != batch.last_offset + 1):
                    batch.verify()
                if self._last_offset is not None:
                    self._check_place(batch, self._last_offset, behind)
                if is_wanted:
                    yield from self._batch_lines(batch)
            except FormatError as error:
                if not self._resync:
                    raise
                self._reader.damage.append(Damage(batch.position, batch.size, error))
        if self.torn_tail is not None and not self._resync and self._goes_on_behind(self.torn_tail):
            raise Truncated(self.torn_tail, "a batch ends behind the file, and there are others behind its header")

    def _goes_on_behind(self, position: int) -> bool:
        """Whether there is another batch after the seemingly incomplete last batch at `position`."""
        found = next(read_batches(self._file, start=position, resync=True), None)
        return found is not None and (self._last_offset is None or found.last_offset > self._last_offset)

    def _check_place(self, batch: Batch, before: int, behind: int | None) -> None:
        """Raise `BadRecord` if a batch has offsets that it cannot have at its place in the log."""
        base_offset = batch.last_offset if batch.count is None else batch.base_offset
        if is_misplaced(base_offset, batch.last_offset, before, behind):
            raise misplaced(batch.position)
        self._last_offset = batch.last_offset

    def _base_offset_behind(self, batch: Batch) -> int | None:
        return base_offset_at(self._file, batch.position + batch.size)

    def _is_wanted(self, batch: Batch) -> bool:
        """Whether the batch may have records in the range of offsets.

        The header of a wrapper message of magic 0 or 1 has only the last offset. If that is 0, as some producers left
        it, not even the last offset is known.
        """
        is_wrapper = batch.count is None
        ends_anywhere = is_wrapper and batch.last_offset == 0
        if self._first is not None and batch.last_offset < self._first and not ends_anywhere:
            return False
        return self._behind is None or is_wrapper or batch.base_offset < self._behind

    def _batch_lines(self, batch: Batch) -> Iterator[str]:
        topic, partition = topic_and_partition(self._path)
        before = _ENCODE({"topic": topic, "partition": partition})[:-1] + ',"offset":'
        timestamp_type = f',"timestampType":"{TIMESTAMP_TYPES[batch.timestamp_type]}","key":'
        producer = f',"producerId":{batch.producer_id},"producerEpoch":{batch.producer_epoch},"sequence":'
        behind = "," + _ENCODE(
            {
                "isTransactional": batch.is_transactional,
                "isControl": batch.is_control,
                "magic": batch.magic,
                "compression": batch.codec.name.lower(),
                "file": str(self._path),
                "position": batch.position,
            }
        ).removeprefix("{")
        first, last = self._first, self._behind
        as_json, is_control = self._bytes_as_json, batch.is_control
        for record in batch:
            offset, timestamp_ms, key, value, headers, sequence = record
            if (first is not None and offset < first) or (last is not None and offset >= last):
                continue
            end = _with_control(behind, record, batch.position) if is_control else behind
            yield (
                f'{before}{offset},"timestamp":{timestamp_ms}{timestamp_type}'
                f'{"null" if key is None else as_json(key)},"value":{"null" if value is None else as_json(value)},'
                f'"headers":{self._headers(record) if headers else "[]"}{producer}{sequence}{end}\n'
            )

    def _headers(self, record: Record) -> str:
        as_json = self._bytes_as_json
        pairs = (
            f"[{encode_basestring(key)},{'null' if value is None else as_json(value)}]" for key, value in record.headers
        )
        return f"[{','.join(pairs)}]"


def _mapped(path: Path) -> mmap.mmap | bytes:
    file = open_regular(path)
    try:
        return mmap.mmap(file.descriptor, 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file cannot be mapped
        return b""


def _with_control(behind: str, record: Record, position: int) -> str:
    content: dict[str, Any] = control_content(read_control(record, position=position))
    return f'{behind[:-1]},"control":{_ENCODE(content)}}}'


def _hex(data: bytes) -> str:
    return f'"{data.hex()}"'


def _base64(data: bytes) -> str:
    return f'"{b64encode(data).decode("ascii")}"'


def _text(data: bytes) -> str:
    try:
        return encode_basestring(data.decode())
    except UnicodeDecodeError:
        return f'{{"hex":"{data.hex()}"}}'


_BYTES_AS_JSON: Final[dict[Binary, Callable[[bytes], str]]] = {
    Binary.HEX: _hex,
    Binary.BASE64: _base64,
    Binary.TEXT: _text,
}
