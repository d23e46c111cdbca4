"""The text of segments and KRaft snapshots: a line for each batch, and with deep iteration one for each record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from octavo.inspect.kafka_text.control_text import control_text
from octavo.inspect.kafka_text.decoding import Parser
from octavo.inspect.kafka_text.file_records import FileBatch, FileRecords
from octavo.inspect.kafka_text.java_names import JavaFile, snapshot_id
from octavo.inspect.kafka_text.messages import TextMessage, check_inner, read_messages
from octavo.inspect.kafka_text.records import TextRecord, read_records, sound_records
from octavo.inspect.kafka_text.run import Run
from octavo.inspect.kafka_text.streams import checked_codec
from octavo.log.names import BOOTSTRAP_CHECKPOINT
from octavo.records.checksum import covered_from, crc32c
from octavo.records.kernels import kernels
from octavo.records.kernels.machine import wrap64
from octavo.records.layout import BATCH_HEADER, LOG_OVERHEAD, MAX_INT32, NO_SEQUENCE, Attributes
from octavo.records.sequence import increment_sequence

if TYPE_CHECKING:
    from octavo.inspect.kafka_text.fast_records import RecordPrinter

_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_DELETE_HORIZON: Final = int(
    Attributes.DELETE_HORIZON
)  # plain numbers: flags of an enum take longer than everything else here
_CONTROL: Final = int(Attributes.CONTROL)
_TRANSACTIONAL: Final = int(Attributes.TRANSACTIONAL)
_CODEC: Final = int(Attributes.CODEC)
_LOG_APPEND_TIME: Final = int(Attributes.LOG_APPEND_TIME)
_COVERED_FROM: Final = covered_from(2)
_ATTRIBUTES_AT: Final = BATCH_HEADER.at("attributes") + 1  # the low byte, which has all of them


class LogText:
    """Prints the files that hold batches."""

    def __init__(self, run: Run, parser: Parser) -> None:
        self.options: Final = run.options
        self.output: Final = run.output
        self.reports: Final = run.reports
        self.parser: Final = parser
        self._has_fast_text: Final = not run.options.prints_data or parser.is_plain
        self._printer: RecordPrinter | None = None
        self._last_offset = -1  # that the printer has printed

    def print(self, file: JavaFile) -> None:
        """Print a segment or a KRaft snapshot. Raises what Kafka's tool throws, after what it prints before."""
        self._print_start(file)
        records = FileRecords.open(file).slice(0, self.options.max_bytes)
        last_offset = -1
        end = 0
        for batch in records.batches():
            control = self._print_batch(batch, end)
            if self.options.iterates_deeply:
                last_offset = self._print_records(file, batch, control, last_offset)
            end += batch.size
        left = records.size - end
        if left > 0 and self.options.max_bytes == MAX_INT32:
            self.output.line(f"Found {left} invalid bytes at the end of {file.name}")
            self.output.is_damaged = True

    def _print_start(self, file: JavaFile) -> None:
        if file.suffix == ".log":
            self.output.line(f"Log starting offset: {file.base_offset}")
        elif file.name == BOOTSTRAP_CHECKPOINT:
            self.output.line("KRaft bootstrap snapshot")
        else:
            offset, epoch = snapshot_id(file.name)
            self.output.line(f"Snapshot end offset: {offset}, epoch: {epoch}")

    def _print_batch(self, batch: FileBatch, position: int) -> bool:
        """Print the line of a batch, and return whether it is a control batch."""
        if batch.magic < 2:
            self._print_message(batch, position)
            return False
        header = BATCH_HEADER.read(batch.header())
        attributes = header.attributes
        horizon = f"[{header.base_timestamp_ms}]" if attributes & _DELETE_HORIZON else ".empty"
        base_sequence = header.base_sequence
        last_sequence = (
            NO_SEQUENCE if base_sequence == NO_SEQUENCE else increment_sequence(base_sequence, header.last_offset_delta)
        )
        is_control = bool(attributes & _CONTROL)
        self.output.write(
            f"baseOffset: {batch.offset} lastOffset: {wrap64(header.base_offset + header.last_offset_delta)} "
            f"count: {header.record_count} baseSequence: {base_sequence} lastSequence: {last_sequence} "
            f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
            f"partitionLeaderEpoch: {header.leader_epoch} "
            f"isTransactional: {_boolean(attributes & _TRANSACTIONAL)} isControl: {_boolean(is_control)} "
            f"deleteHorizonMs: OptionalLong{horizon}"
        )
        codec = _CODECS[checked_codec(attributes & _CODEC)]
        is_valid = batch.size >= BATCH_HEADER.size and crc32c(batch.load()[_COVERED_FROM:]) == header.crc
        self.output.line(
            f" position: {position} {_timestamp_type(attributes)}: {header.max_timestamp_ms} size: {batch.size} "
            f"magic: {batch.magic} compresscodec: {codec} crc: {header.crc} isvalid: {_boolean(is_valid)}"
        )
        self.output.is_damaged |= not is_valid
        return is_control

    def _print_message(self, batch: FileBatch, position: int) -> None:
        self.output.write(f"offset: {batch.offset}")
        outer = TextMessage(batch.header()[LOG_OVERHEAD:], batch.offset)
        described = f"{outer.timestamp_type}: {outer.timestamp_ms}"
        codec = _CODECS[outer.codec]
        is_valid = TextMessage(batch.load()[LOG_OVERHEAD:], batch.offset).is_valid
        self.output.line(
            f" position: {position} {described} size: {batch.size} magic: {batch.magic} compresscodec: {codec} "
            f"crc: {outer.crc} isvalid: {_boolean(is_valid)}"
        )
        self.output.is_damaged |= not is_valid

    def _print_records(self, file: JavaFile, batch: FileBatch, is_control: bool, last_offset: int) -> int:
        """Print the records of a batch, and return the offset of the last."""
        data = batch.load()
        if batch.magic >= 2:
            is_printed = not is_control and self._print_fast(file, data, last_offset)
            return self._last_offset if is_printed else self._print_records_v2(file, data, is_control, last_offset)
        outer = TextMessage(data[LOG_OVERHEAD:], batch.offset)
        timestamp_type = outer.timestamp_type
        is_wrapper = bool(outer.codec)
        for message in read_messages(outer):
            if is_wrapper:
                check_inner(message)
            last_offset = self._note_gap(file, last_offset, message.offset)
            if not self.options.skip_record_metadata:
                self.output.write(
                    f"| offset: {message.offset} {timestamp_type}: {message.timestamp_ms} keySize: {message.key_size} "
                    f"valueSize: {message.value_size} isValid: {_boolean(message.is_valid)} crc: {message.crc}"
                )
            if self.options.prints_data:
                self._print_contents(message)
            self.output.line("")
        return last_offset

    def _print_fast(self, file: JavaFile, data: memoryview, last_offset: int) -> bool:
        """Print the records of a batch by a kernel, and return whether that was possible."""
        if not self._has_fast_text or len(data) < BATCH_HEADER.size:
            return False
        chosen = kernels(len(data))
        if not chosen.compiled and not chosen.is_waiting:
            return False
        if self._printer is None:
            from octavo.inspect.kafka_text.fast_records import RecordPrinter

            metadata = not self.options.skip_record_metadata
            self._printer = RecordPrinter(metadata=metadata, contents=self.options.prints_data)
        header = BATCH_HEADER.read(data)
        records = sound_records(header, data)
        if records is None:
            return False
        pieces = self._printer.print(chosen, header, records, last_offset)
        if pieces is None:
            return False
        for lines in pieces:
            for offset, following in lines.gaps:
                self.reports.gap(file, offset, following)
            self.output.write_bytes(lines.text)
        self._last_offset = self._printer.last_offset
        return True

    def _print_records_v2(self, file: JavaFile, data: memoryview, is_control: bool, last_offset: int) -> int:
        timestamp_type = _timestamp_type(data[_ATTRIBUTES_AT])
        for record in read_records(data):
            last_offset = self._note_gap(file, last_offset, record.offset)
            if not self.options.skip_record_metadata:
                self.output.write(
                    f"| offset: {record.offset} {timestamp_type}: {record.timestamp_ms} "
                    f"keySize: {_size(record.key)} valueSize: {_size(record.value)} sequence: {record.sequence} "
                    f"headerKeys: [{','.join(record.header_keys)}]"
                )
                if is_control:
                    self.output.write(control_text(record.key, record.value))
            if self.options.prints_data and not is_control:
                self._print_contents(record)
            self.output.line("")
        return last_offset

    def _note_gap(self, file: JavaFile, last_offset: int, offset: int) -> int:
        if offset != wrap64(last_offset + 1):
            self.reports.gap(file, last_offset, offset)
        return offset

    def _print_contents(self, record: TextRecord | TextMessage) -> None:
        prefix = "| " if self.options.skip_record_metadata else " "
        key_text, value_text = self.parser.parse(record)
        if key_text is not None:
            self.output.write(f"{prefix}key: {key_text}")
            prefix = " "
        if value_text is not None:
            self.output.write(f"{prefix}payload: {value_text}")


def _timestamp_type(attributes: int) -> str:
    return "LogAppendTime" if attributes & _LOG_APPEND_TIME else "CreateTime"


def _boolean(value: int) -> str:
    return "true" if value else "false"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
