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
no line. Large files are printed by compiled kernels, without an object for each record.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from json.encoder import encode_basestring
from pathlib import Path
from typing import Final

from octavo.errors import FormatError
from octavo.inspect.control import control_text
from octavo.inspect.descriptions import TIMESTAMP_TYPES
from octavo.inspect.kinds import topic_and_partition
from octavo.inspect.segment_file import SegmentFile
from octavo.inspect.wanted import EVERYTHING, KeyRange, Range, Wanted
from octavo.records import Batch, Damage, Record
from octavo.records.kernels import Kernels, kernels

_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode
_LINES_A_BLOCK: Final = 512
_WORTH_COLUMNS: Final = 8 << 20  # bytes that take as long to print with objects as it takes to import pyarrow
_BATCHES_MEANWHILE: Final = 64  # batches that are printed before looking again whether the kernels are compiled


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
    offsets, timestamps: the first, and the one after the last; None for no limit. Timestamps are in milliseconds.
        Batches outside the offsets are not decoded
    keys: only records whose key is in one of these ranges

    In a file that is named like a segment, batches whose offsets do not increase are damage, too.

    Raises `Unreadable` if the file cannot be opened. Raises `InvalidInput` for a range that ends before it begins, and
    for the other kinds of files that Kafka keeps beside segments.
    Without `resync`, iterating yields everything before the first damage, and then raises `FormatError`.
    """

    def __init__(
        self,
        path: Path,
        *,
        binary: Binary = Binary.HEX,
        verify: bool = True,
        resync: bool = False,
        offsets: Range = EVERYTHING,
        timestamps: Range = EVERYTHING,
        keys: Iterable[KeyRange] = (),
    ) -> None:
        wanted = Wanted(offsets, timestamps, tuple(keys))
        self._segment: Final = SegmentFile(path, wanted=wanted, verify=verify, resync=resync)
        self._binary: Final = binary
        self._bytes_as_json: Final = _BYTES_AS_JSON[binary]

    @property
    def size(self) -> int:
        """The number of bytes of the file, as far as they are read."""
        return self._segment.size

    @property
    def position(self) -> int:
        """The position after the batch that is being iterated over."""
        return self._segment.position

    @property
    def damage(self) -> list[Damage]:
        """The damage that was skipped so far. Only with `resync`."""
        return self._segment.damage

    @property
    def torn_tail(self) -> int | None:
        """The position of an incomplete batch at the end of the file, or None. Known after the iteration."""
        return self._segment.torn_tail

    def grow(self) -> bool:
        """Look for what was written to the file since. Returns whether it has grown, and can be iterated over again.

        Raises `InvalidInput` if the file is shorter than what was read of it.
        """
        return self._segment.grow()

    def __iter__(self) -> Iterator[str]:
        for batch in self._segment.batches():
            yield from self._lines(batch)

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the same lines as UTF-8, many at a time, which is faster. A block is valid until the next."""
        compiled = self._compiled()
        if compiled is None:
            yield from self._interpreted_blocks()
            compiled = self._compiled()
        if compiled is not None and self.position < self.size:
            yield from self._compiled_blocks(compiled)

    def _compiled(self) -> Kernels | None:
        """Return compiled kernels, if they are worth loading. If there are none, see to it that they are compiled."""
        if self.size - self.position < _WORTH_COLUMNS:
            return None
        found = kernels(self.size)
        _ = found.scan, found.print_lines  # if they are not compiled, asking for them starts that
        found = kernels(0)
        return found if found.compiled else None

    def _interpreted_blocks(self) -> Iterator[bytes]:
        """Yield blocks until the file ends, or a batch ends and compiled kernels are there."""
        lines: list[str] = []
        error = None
        try:
            for number, batch in enumerate(self._segment.batches(), 1):
                for line in self._lines(batch):
                    lines.append(line)
                    if len(lines) == _LINES_A_BLOCK:
                        yield "".join(lines).encode()
                        lines.clear()
                if number % _BATCHES_MEANWHILE == 0 and self._compiled() is not None:
                    break
        except FormatError as found:
            error = found
        if lines:
            yield "".join(lines).encode()
        if error is not None:
            raise error

    def _compiled_blocks(self, compiled: Kernels) -> Iterator[memoryview]:
        from octavo.inspect.json_lines import COLUMNS, LinePrinter

        topic, partition = topic_and_partition(self._segment.path)
        printer = LinePrinter(topic, partition, str(self._segment.path), list(Binary).index(self._binary))
        for chunk in self._segment.chunks(COLUMNS):
            yield from printer.print(compiled, chunk)

    def _lines(self, batch: Batch) -> Iterator[str]:
        try:
            yield from self._batch_lines(batch)
        except FormatError as error:
            self._segment.pass_over(batch.position, error)

    def _batch_lines(self, batch: Batch) -> Iterator[str]:
        topic, partition = topic_and_partition(self._segment.path)
        before = _ENCODE({"topic": topic, "partition": partition})[:-1] + ',"offset":'
        timestamp_type = f',"timestampType":"{TIMESTAMP_TYPES[batch.timestamp_type]}","key":'
        producer = f',"producerId":{batch.producer_id},"producerEpoch":{batch.producer_epoch},"sequence":'
        behind = "," + _ENCODE(
            {
                "isTransactional": batch.is_transactional,
                "isControl": batch.is_control,
                "magic": batch.magic,
                "compression": batch.codec.name.lower(),
                "file": str(self._segment.path),
                "position": batch.position,
            }
        ).removeprefix("{")
        as_json, is_control = self._bytes_as_json, batch.is_control
        for record in self._segment.records(batch):
            offset, timestamp_ms, key, value, headers, sequence = record
            end = f'{behind[:-1]},"control":{control_text(record, batch.position)}}}' if is_control else behind
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
