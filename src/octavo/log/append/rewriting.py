"""Rewrite batches that need another codec, or that are messages of magic 0 or 1 (Kafka's `LogValidator`).

If a topic requires another codec, the records stay as they are, byte for byte, and only their compression changes,
provided that Kafka would write the same. In all other cases the records are put into a new batch of magic 2 with
consecutive offsets and everything that Kafka keeps: keys, values, headers, timestamps, and the producer's fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from octavo.errors import FormatError, InvalidInput
from octavo.log.append.readiness import ALLOWANCE, MustCompress
from octavo.log.append.refusals import (
    MAX_LISTED,
    MIXED,
    OF_TIME,
    SEVERAL,
    builder_refused,
    records_refused,
    refused,
    undecodable,
)
from octavo.log.config.log_config import LogConfig
from octavo.records.batch import Batch
from octavo.records.builder import BatchBuilder
from octavo.records.compression import compress, decompress
from octavo.records.kernels import rules, scan, validate
from octavo.records.kernels.message import walk_message
from octavo.records.layout import (
    BATCH_HEADER,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Attributes,
    BatchHeader,
    Buffer,
    Codec,
    TimestampType,
)
from octavo.records.legacy import Message
from octavo.records.reader import read_batches
from octavo.records.v2 import write_batch

_ANY: Final = "producer"
_KEPT: Final = Attributes.TRANSACTIONAL | Attributes.LOG_APPEND_TIME


class Rewriter:
    """Rewrites batches for the logs of one topic."""

    def __init__(self, config: LogConfig, limits: list[int]) -> None:
        """Use the given configuration. `limits`: as the kernel `validate` gets them."""
        self.target: Final = target_codec(config)  # None: each batch keeps its own codec
        self._level = _level(config)
        self._timestamp_type = config.message_timestamp_type
        self._max_size = config.max_message_bytes
        self._limits = limits

    def rewritten(self, batch: memoryview, header: BatchHeader, plain: Buffer, found: int, position: int) -> bytes:
        """Return the batch with the topic's codec. `header`: the header that it would have in the log if not rewritten.

        `plain`: its decompressed records. `found`: what the kernel found in them. `position`: for errors only.
        Raises `MustCompress` if the thread has an `ALLOWANCE`.
        """
        assert self.target is not None
        if self.target is not Codec.NONE and ALLOWANCE.left is not None:
            raise MustCompress
        _check_producer(header, position)
        attributes = header.attributes & _KEPT | self.target
        records: Buffer
        if found & (validate.JUMPS | validate.REBASED):
            header, records = self._rebuilt(batch, header, plain, position)
        else:
            records = compress(self.target, plain, level=self._level)
        return self._sized(write_batch(header._replace(attributes=attributes), records), position)

    def upgraded(self, view: memoryview, offset: int, leader_epoch: int, now_ms: int) -> bytes:
        """Convert messages of magic 0 or 1, plain or in a compressed wrapper, to one batch of magic 2."""
        batches = list(self._old_batches(view))
        source = next((batch.codec for batch in reversed(batches) if batch.is_compressed), Codec.NONE)
        if source and len(batches) > 1:
            raise refused(SEVERAL, batches[1].position)
        codec = source if self.target is None else self.target
        builder = BatchBuilder(
            codec=codec,
            level=None if self.target is None else self._level,
            timestamp_type=self._timestamp_type,
            log_append_time_ms=now_ms,
            base_offset=offset,
            leader_epoch=leader_epoch,
        )
        for batch in batches:
            if batch.magic != batches[0].magic:
                raise refused(MIXED, batch.position)
            self._judge(batch, now_ms)
            try:
                for record in batch:
                    if builder.next_offset > validate.MAX_OFFSET:
                        raise refused(validate.OFFSETS_USED_UP, batch.position)
                    builder.append(record.key, record.value, timestamp_ms=record.timestamp_ms)
            except InvalidInput as error:
                raise builder_refused(str(error), batch.position) from error
        return self._sized(builder.build(), 0)

    def _rebuilt(
        self, batch: memoryview, header: BatchHeader, plain: Buffer, position: int
    ) -> tuple[BatchHeader, memoryview]:
        """Return the records of a batch with new deltas, compressed, and the header that fits them."""
        assert self.target is not None
        sent = BATCH_HEADER.read(batch)
        readable = write_batch(sent._replace(attributes=sent.attributes & ~Attributes.CODEC), plain)
        builder = BatchBuilder(codec=self.target, level=self._level)
        try:
            for record in next(iter(read_batches(readable))):
                builder.append(record.key, record.value, timestamp_ms=record.timestamp_ms, headers=record.headers)
        except InvalidInput as error:
            raise builder_refused(str(error), position) from error
        built = builder.build()
        base_timestamp_ms = BATCH_HEADER.read(built).base_timestamp_ms
        return header._replace(base_timestamp_ms=base_timestamp_ms), memoryview(built)[BATCH_HEADER.size :]

    def _sized(self, batch: bytes, position: int) -> bytes:
        """Return `batch`. Raises `AppendRefused` if it has grown too large."""
        if len(batch) > self._max_size:
            raise refused(validate.TOO_LARGE, position)
        return batch

    def _old_batches(self, view: memoryview) -> Iterator[Message]:
        """Yield the complete messages. Raises `AppendRefused` at the first message that breaks a rule."""
        position = 0
        while True:
            outcome, size, rule = validate.next_extent(view, position, len(view))
            if outcome == scan.BROKEN:
                raise refused(rule, position)
            if outcome != scan.MORE:
                return
            batch = next(iter(read_batches(view, start=position, end=position + size, verify=False)))
            if size > self._max_size:
                raise refused(validate.TOO_LARGE, position)
            if not batch.is_valid:
                raise refused(rules.CHECKSUM, position)
            if batch.attributes & Attributes.CODEC >= len(Codec):
                raise refused(validate.NO_SUCH_CODEC, position)
            if not isinstance(batch, Message):
                raise refused(MIXED, position)
            yield batch
            position += size

    def _judge(self, batch: Message, now_ms: int) -> None:
        """Check each record of a message or wrapper, one at a time. Raises `AppendRefused` if one is refused."""
        listed: list[tuple[int, int, int]] = []
        count = 0
        of_time = False
        try:
            for index, timestamp_ms, reason in self._reasons(batch, now_ms):
                if reason:
                    count += 1
                    of_time = of_time or reason in OF_TIME
                    if count <= MAX_LISTED:
                        listed.append((index, reason, timestamp_ms))
        except FormatError as error:
            raise undecodable(error, batch.position) from error
        if count:
            raise records_refused(listed, batch.position, self._limits, now_ms, count=count, of_time=of_time)

    def _reasons(self, batch: Message, now_ms: int) -> Iterator[tuple[int, int, int]]:
        """Yield the index, the timestamp and the reason for refusal, if any, of each record."""
        inner = _inner(batch) if batch.is_compressed else iter((batch,))
        one_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
        for index, (record, message) in enumerate(zip(batch, inner, strict=True)):  # a bad wrapper raises right away
            if message.magic != batch.magic:
                reason = validate.OTHER_MAGIC
            elif not message.is_valid:
                raise refused(rules.CHECKSUM, batch.position)
            else:
                key_length = -1 if record.key is None else 0
                reason = validate.refusal(record.timestamp_ms, key_length, one_time, self._limits, now_ms)
            yield index, record.timestamp_ms, reason


def _check_producer(header: BatchHeader, position: int) -> None:
    """Check producer fields that Kafka refuses only if it has to rewrite a batch. Raises `AppendRefused`."""
    if header.producer_id == NO_PRODUCER_ID:
        if header.attributes & Attributes.TRANSACTIONAL:
            raise builder_refused("a transactional batch needs a producer id", position)
    elif header.producer_epoch == NO_PRODUCER_EPOCH:
        raise builder_refused("a producer id needs a producer epoch", position)
    elif header.base_sequence < 0:
        raise builder_refused("a producer's records need a sequence number", position)


def target_codec(config: LogConfig) -> Codec | None:
    """Return the codec that all batches have in the log; None if each keeps its own."""
    if config.compression_type == _ANY:
        return None
    return Codec.NONE if config.compression_type == "uncompressed" else Codec[config.compression_type.upper()]


def _level(config: LogConfig) -> int | None:
    """Return the compression level for the topic's codec; None for the codec's default."""
    if config.compression_type == "gzip":
        return None if config.compression_gzip_level == -1 else config.compression_gzip_level
    if config.compression_type == "lz4":
        return config.compression_lz4_level
    return config.compression_zstd_level if config.compression_type == "zstd" else None


def _inner(wrapper: Message) -> Iterator[Batch]:
    """Yield the messages in a compressed wrapper as they are stored. The wrapper has been checked already."""
    *_, value_at, value_length = walk_message(wrapper.data, 0, wrapper.size)
    stream = wrapper.data[value_at : value_at + value_length]
    yield from read_batches(decompress(wrapper.codec, stream, magic=wrapper.magic), verify=False)
