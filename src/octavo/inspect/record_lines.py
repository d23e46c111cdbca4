"""Convert the records of a file to lines of JSON, one object per record.

    topic, partition    from the folder `<topic>-<partition>` of a `.log` file, else null
    offset, timestamp   the timestamp in milliseconds as stored: -1 if there is none
    timestampType       `CreateTime`, `LogAppendTime` or `NoTimestampType`, as Kafka prints them
    key, value          in the form that `Binary` sets; null, which is not the same as ""
    headers             a list of [key, value], keys always as text
    producerId, producerEpoch, sequence, isTransactional, isControl, magic, compression, leaderEpoch
    file, position      the path as it was given, and the byte at which the record's batch begins
    control             only in control records: the name of the type, and the fields that Kafka stores for it
    decodedKey, decodedValue, decodeError   only if records are decoded: JSON, or null; and why one cannot be decoded

The file is mapped into memory, so that no more memory is needed than for the largest batch. A batch without records has
no line. Large files are printed by compiled kernels, without an object for each record.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from json.encoder import encode_basestring
from typing import Final

from octavo.errors import FormatError, Unreadable
from octavo.inspect.control import control_text
from octavo.inspect.decoding.record_decoding import DecodedRecord, RecordDecoding, decoded_records
from octavo.inspect.descriptions import TIMESTAMP_TYPES
from octavo.inspect.kinds import topic_and_partition
from octavo.inspect.segment_file import SegmentFile
from octavo.records import Batch, Record
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


class RecordLines(Iterable[str]):
    """The wanted records of a file as lines of JSON, each with its newline.

    Iterating continues where the file was left. At damage it raises `FormatError`, unless the file is read with
    `resync`.
    """

    def __init__(self, segment: SegmentFile, binary: Binary, decoding: RecordDecoding | None = None) -> None:
        self._segment: Final = segment
        self._decoding: Final = decoding
        self._binary: Final = binary
        self._bytes_as_json: Final = _BYTES_AS_JSON[binary]

    def __iter__(self) -> Iterator[str]:
        for batch in self._segment.batches():
            yield from self._lines(batch)

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the same lines as UTF-8, many at a time, which is faster. A block is valid until the next."""
        compiled = self._compiled()
        if compiled is None:
            yield from self._interpreted_blocks()
            compiled = self._compiled()
        if compiled is not None and self._segment.position < self._segment.size:
            yield from self._compiled_blocks(compiled)

    def _compiled(self) -> Kernels | None:
        """Return compiled kernels, if they are worth loading. If there are none, see to it that they are compiled."""
        if self._segment.size - self._segment.position < _WORTH_COLUMNS:
            return None
        found = kernels(self._segment.size)
        _ = found.scan, found.print_lines  # if they are not compiled, asking for them starts that
        found = kernels(0)
        return found if found.compiled else None

    def _interpreted_blocks(self) -> Iterator[bytes]:
        """Yield blocks until the file ends, or a batch ends and compiled kernels are there."""
        lines: list[str] = []
        error: FormatError | Unreadable | None = None
        try:
            for number, batch in enumerate(self._segment.batches(), 1):
                for line in self._lines(batch):
                    lines.append(line)
                    if len(lines) == _LINES_A_BLOCK:
                        yield "".join(lines).encode()
                        lines.clear()
                if number % _BATCHES_MEANWHILE == 0 and self._compiled() is not None:
                    break
        except (FormatError, Unreadable) as found:
            error = found
        if lines:
            yield "".join(lines).encode()
        if error is not None:
            raise error

    def _compiled_blocks(self, compiled: Kernels) -> Iterator[memoryview]:
        from octavo.inspect.json_lines import COLUMNS, LinePrinter

        topic, partition = topic_and_partition(self._segment.path)
        form = list(Binary).index(self._binary)
        printer = LinePrinter(topic, partition, str(self._segment.path), form, self._decoding)
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
                "leaderEpoch": batch.leader_epoch,
                "file": str(self._segment.path),
                "position": batch.position,
            }
        ).removeprefix("{")
        as_json, is_control = self._bytes_as_json, batch.is_control
        for record, decoded in self._records(batch):
            offset, timestamp_ms, key, value, headers, sequence = record
            end = f'{behind[:-1]},"control":{control_text(record, batch.position)}}}' if is_control else behind
            if decoded is not None:
                end = f"{behind[:-1]}{decoded.members}}}"
            yield (
                f'{before}{offset},"timestamp":{timestamp_ms}{timestamp_type}'
                f'{"null" if key is None else as_json(key)},"value":{"null" if value is None else as_json(value)},'
                f'"headers":{self._headers(record) if headers else "[]"}{producer}{sequence}{end}\n'
            )

    def _records(self, batch: Batch) -> Iterable[tuple[Record, DecodedRecord | None]]:
        records = self._segment.records(batch)
        if self._decoding is None or batch.is_control:
            return ((record, None) for record in records)
        return decoded_records(self._decoding, records)

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


def text_as_json(data: bytes) -> str:
    """Return bytes as `Binary.TEXT` prints them."""
    try:
        return encode_basestring(data.decode())
    except UnicodeDecodeError:
        return f'{{"hex":"{data.hex()}"}}'


_BYTES_AS_JSON: Final[dict[Binary, Callable[[bytes], str]]] = {
    Binary.HEX: _hex,
    Binary.BASE64: _base64,
    Binary.TEXT: text_as_json,
}
