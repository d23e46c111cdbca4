"""Validate the batches that are sent to a partition's leader, and assign offsets (Kafka's `LogValidator`).

One call handles many batches. A batch of magic 2 is judged by its header, its checksum and all its records. The header
for the log has a new offset and epoch and, if they change, a new timestamp and checksum. It is written to another
buffer; the input stays unchanged. A kernel cannot decompress or rebuild a batch. It stops before such a batch, and is
called again with the uncompressed records of that batch.
"""

from __future__ import annotations

from octavo.records.kernels import rules
from octavo.records.kernels.checksum import Tables
from octavo.records.kernels.machine import Array, copy, crc32c_of, read_i16, read_i32, read_i64, read_u32, wrap64
from octavo.records.kernels.record import MIN_RECORD_SIZE
from octavo.records.kernels.scan import BROKEN, MORE, TORN, entry_extent
from octavo.records.kernels.skim import QUICK_DELTAS, any_record, quick_record, skim_records
from octavo.records.kernels.varint import write_i16, write_i64, write_u32
from octavo.records.layout import (
    ATTRIBUTES_AT,
    BASE_SEQUENCE_AT,
    BASE_TIMESTAMP_AT,
    COUNT_AT,
    CRC_AT,
    FLAGS_AT,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    MAGIC_AT,
    MAX_INT64,
    MAX_SIZE,
    MAX_TIMESTAMP_AT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    Attributes,
    Codec,
)

# What a topic allows: the items of the array `limits`.
APPEND_TIME = 0  # 1: the records get the time of the append
KEY_NEEDED = 1  # 1: the topic is compacted
BEFORE_MAX_MS = 2  # how far a timestamp may be in the past
AFTER_MAX_MS = 3  # how far a timestamp may be in the future
MAX_BATCH_SIZE = 4
TARGET = 5  # codec of batches in the log, or `ANY_CODEC`
ANY_CODEC = -1  # each batch keeps its own codec
LIMITS = 6

# Columns of the output table, one row per batch.
SPAN_SIZE = 0
SPAN_BASE_OFFSET = 1
SPAN_LAST_OFFSET = 2
SPAN_MAX_TIMESTAMP = 3
SPAN_LEADER_EPOCH = 4
SPAN_MAGIC = 5
SPAN_PRODUCER_ID = 6
SPAN_PRODUCER_EPOCH = 7
SPAN_BASE_SEQUENCE = 8
SPAN_ATTRIBUTES = 9
SPAN_COLUMNS = 10

# Reasons for stopping, in addition to those in `scan`.
OLD = 4  # the next batch is of magic 0 or 1
WANTED = 5  # the next batch is compressed or has to be: its uncompressed records are needed
REFUSED = 6  # the next batch has refused records

# Columns of the table of refused records, and the reasons for refusing a record.
REFUSED_INDEX = 0
REFUSED_REASON = 1
REFUSED_TIMESTAMP = 2
NO_KEY = 1
TIME_OUTSIDE = 2
APPEND_TIME_CLAIMED = 3
OTHER_MAGIC = 4  # only for messages in a wrapper, which this kernel does not read

# How to judge a batch.
AS_IT_IS = 0  # by its own bytes; a compressed batch ends the call
IN_PLAIN = 1  # its uncompressed records are given
LISTED = 2  # the same, and refused records are listed

MAX_OFFSET = MAX_INT64 - 1  # largest offset of a record: the log end offset after it must also be a valid offset

TABLE = 8 * 256  # numbers in each of the first two of `Tables`; the others have half as many

# Broken rules for appends, in addition to the rules of the format.
FIRST_OFFSET = 100
TOO_LARGE = 101
NO_SUCH_CODEC = 102
OFFSET_RANGE = 103
NO_RECORDS = 104
OFFSETS_AND_COUNT = 105
CONTROL_BATCH = 106
SEQUENCE_MISSING = 107
UNREADABLE = 108  # the batch has a size that Kafka cannot handle
OFFSETS_USED_UP = 109

# Findings about the records of a batch: flags.
KEEP = 0  # nothing found
BAD_RECORD = 1  # at least one lacks a key or has a refused timestamp
JUMPS = 2  # the offsets do not count from 0
REBASED = 4  # the first timestamp is not the base, or one is negative: rewriting the records would change them
ANOTHER_CODEC = 8  # the topic requires another codec
BAD_TIME = 16  # at least one has a refused timestamp

_CODEC = int(Attributes.CODEC)
_LOG_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)
_CONTROL = int(Attributes.CONTROL)
_KNOWN_ATTRIBUTES = int(~Attributes(0)) & 0x7F
_LAST_CODEC = int(max(Codec))
_NONE = int(Codec.NONE)


def next_extent(data: Array, position: int, end: int) -> tuple[int, int, int]:
    """Return the extent of a batch to append: like `entry_extent`, but with more distinctions, as in Kafka.

    An incomplete batch is a torn tail even if its declared size is too small for a batch. A complete batch that is too
    small to hold the last offset delta breaks the rule `UNREADABLE`. So does a batch whose declared size is too large
    for Java, even if it is incomplete.
    """
    outcome, size, rule = entry_extent(data, position, end)
    if outcome == BROKEN and rule == rules.BATCH_LENGTH:
        if size > end - position:
            return TORN, size, rules.OK
        return BROKEN, size, UNREADABLE if size < LAST_OFFSET_DELTA_AT + 4 else rule
    if outcome == TORN and size > MAX_SIZE:
        return BROKEN, size, UNREADABLE
    return outcome, size, rule


def judge_header(tables: Tables, data: Array, position: int, size: int, limits: Array, of_client: int) -> int:
    """Check a batch of magic 2, except its records; returns the first broken rule, in Kafka's order, or `OK`."""
    attributes = data[position + FLAGS_AT] & 0xFF
    if of_client and read_i64(data, position) != 0:
        return FIRST_OFFSET
    if size > limits[MAX_BATCH_SIZE]:
        return TOO_LARGE
    crc = crc32c_of(tables, data, position + ATTRIBUTES_AT, position + size, 0)
    if crc != read_u32(data, position + CRC_AT):
        return rules.CHECKSUM
    if attributes & _CODEC > _LAST_CODEC:
        return NO_SUCH_CODEC
    last_offset_delta = read_i32(data, position + LAST_OFFSET_DELTA_AT)
    count = read_i32(data, position + COUNT_AT)
    if last_offset_delta < 0:
        return OFFSET_RANGE
    if count <= 0:
        return NO_RECORDS
    if last_offset_delta + 1 != count:
        return OFFSETS_AND_COUNT
    if of_client:
        if attributes & _CONTROL:
            return CONTROL_BATCH
        if read_i64(data, position + PRODUCER_ID_AT) > -1 and read_i32(data, position + BASE_SEQUENCE_AT) < 0:
            return SEQUENCE_MISSING
    return rules.OK


def refusal(timestamp: int, key_length: int, one_time: bool, limits: Array, now_ms: int) -> int:
    """Return why a record is refused, or 0 if it is not. Subtracting timestamps wraps around as in Java."""
    if key_length < 0 and limits[KEY_NEEDED]:
        return NO_KEY
    if limits[APPEND_TIME] or timestamp == NO_TIMESTAMP:
        return APPEND_TIME_CLAIMED if one_time else 0
    ago_ms = wrap64(now_ms - timestamp)
    if ago_ms > limits[BEFORE_MAX_MS] or wrap64(-ago_ms) > limits[AFTER_MAX_MS]:
        return TIME_OUTSIDE
    return 0


def sound_times(one_time: bool, limits: Array, now_ms: int) -> tuple[int, int]:
    """Return a range of timestamps that are certainly accepted; an empty range if in doubt.

    No timestamp in the range is negative, except -1.
    """
    if one_time or now_ms < 0:
        return 1, 0
    if limits[APPEND_TIME]:
        return NO_TIMESTAMP, MAX_INT64
    after_max_ms = limits[AFTER_MAX_MS]
    return max(
        now_ms - limits[BEFORE_MAX_MS], 0
    ), MAX_INT64 if after_max_ms > MAX_INT64 - now_ms else now_ms + after_max_ms


def judge_records(
    data: Array,
    start: int,
    end: int,
    header: Array,
    position: int,
    limits: Array,
    now_ms: int,
    lengths_matter: bool,
    refused: Array,
    rows: int,
) -> tuple[int, int, int, int]:
    """Walk the records in `data[start:end]` of the batch whose header is at `position` of `header`.

    Returns the broken rule, the largest timestamp, the findings and, unless `rows` is 0, the number of refused records.
    Up to `rows` of these are written to the table `refused`; the rows after them stay unchanged.
    """
    count = read_i32(header, position + COUNT_AT)
    base_timestamp = read_i64(header, position + BASE_TIMESTAMP_AT)
    the_time = read_i64(header, position + MAX_TIMESTAMP_AT)
    one_time = header[position + FLAGS_AT] & _LOG_APPEND_TIME != 0
    if count > (end - start) // MIN_RECORD_SIZE:
        return rules.RECORD_COUNT, 0, 0, 0
    lowest, highest = sound_times(one_time, limits, now_ms)
    key_needed = limits[KEY_NEEDED] != 0
    largest = NO_TIMESTAMP
    found = REBASED if one_time else KEEP
    jumps = read_i64(header, position)
    refused_count = 0
    at = start
    first = 0
    if lowest <= base_timestamp <= MAX_INT64 - QUICK_DELTAS:
        quick_count, quick_end, largest_delta, quick_jumps, keys = skim_records(data, start, end, count)
        if quick_count and base_timestamp + largest_delta <= highest and not (key_needed and keys & 1):
            first, at = quick_count, quick_end
            largest = base_timestamp + largest_delta
            jumps |= quick_jumps
            _, timestamp_delta, _, _, _, _, _ = quick_record(data, start, end)
            if timestamp_delta != 0:
                found |= REBASED
    for index in range(first, count):
        record_end, timestamp_delta, offset_delta, _, _, key_length, _ = quick_record(data, at, end)
        if record_end == 0:
            record_end, timestamp_delta, offset_delta, key_length = any_record(data, at, end, lengths_matter)
            if record_end < 0:
                return -record_end, 0, 0, 0
        at = record_end
        timestamp = the_time if one_time else wrap64(base_timestamp + timestamp_delta)
        if timestamp > largest:
            largest = timestamp
        jumps |= offset_delta ^ index
        if index == 0 and timestamp_delta != 0:
            found |= REBASED
        if lowest <= timestamp <= highest and not (key_needed and key_length < 0):
            continue
        if timestamp < NO_TIMESTAMP:
            found |= REBASED
        reason = refusal(timestamp, key_length, one_time, limits, now_ms)
        if reason:
            found |= BAD_RECORD if reason == NO_KEY else BAD_RECORD | BAD_TIME
            if rows:
                if refused_count < rows:
                    refused[refused_count, REFUSED_INDEX] = index
                    refused[refused_count, REFUSED_REASON] = reason
                    refused[refused_count, REFUSED_TIMESTAMP] = timestamp
                refused_count += 1
    if jumps:
        found |= JUMPS
    if at != end:
        return rules.BYTES_LEFT, 0, 0, 0
    return rules.OK, largest, found, refused_count


def recompressed(data: Array, position: int, limits: Array) -> bool:
    """Return whether the batch at `position` gets another codec in the log. Control records are not compressed."""
    attributes = data[position + FLAGS_AT]
    if limits[TARGET] == ANY_CODEC or limits[TARGET] == attributes & _CODEC:
        return False
    return bool(attributes & _CODEC != _NONE or attributes & _CONTROL == 0)


def write_header(
    tables: Tables,
    data: Array,
    position: int,
    size: int,
    base_offset: int,
    leader_epoch: int,
    append_time: bool,
    max_timestamp: int,
    headers: Array,
    at: int,
) -> None:
    """Write the header that the batch at `position` of `data` gets in the log; it goes to `headers`, at `at`."""
    copy(headers, at, data, position, HEADER_SIZE)
    write_i64(headers, at, base_offset)
    write_u32(headers, at + LEADER_EPOCH_AT, leader_epoch)
    attributes = data[position + FLAGS_AT] & 0xFF
    was_append_time = attributes & _LOG_APPEND_TIME != 0
    if was_append_time == append_time and read_i64(data, position + MAX_TIMESTAMP_AT) == max_timestamp:
        return
    attributes = attributes & _KNOWN_ATTRIBUTES & ~_LOG_APPEND_TIME
    write_i16(headers, at + ATTRIBUTES_AT, attributes | _LOG_APPEND_TIME if append_time else attributes)
    write_i64(headers, at + MAX_TIMESTAMP_AT, max_timestamp)
    crc = crc32c_of(tables, headers, at + ATTRIBUTES_AT, at + HEADER_SIZE, 0)
    crc = crc32c_of(tables, data, position + HEADER_SIZE, position + size, crc)
    write_u32(headers, at + CRC_AT, crc)


def write_span(
    spans: Array,
    row: int,
    data: Array,
    position: int,
    size: int,
    base_offset: int,
    last_offset: int,
    max_timestamp: int,
    leader_epoch: int,
) -> None:
    """Fill the output row of the batch of magic 2 at `position` of `data`."""
    spans[row, SPAN_SIZE] = size
    spans[row, SPAN_BASE_OFFSET] = base_offset
    spans[row, SPAN_LAST_OFFSET] = last_offset
    spans[row, SPAN_MAX_TIMESTAMP] = max_timestamp
    spans[row, SPAN_LEADER_EPOCH] = leader_epoch
    spans[row, SPAN_MAGIC] = 2
    spans[row, SPAN_PRODUCER_ID] = read_i64(data, position + PRODUCER_ID_AT)
    spans[row, SPAN_PRODUCER_EPOCH] = read_i16(data, position + PRODUCER_EPOCH_AT)
    spans[row, SPAN_BASE_SEQUENCE] = read_i32(data, position + BASE_SEQUENCE_AT)
    spans[row, SPAN_ATTRIBUTES] = data[position + FLAGS_AT] & 0xFF


def unpacked(tables: Array) -> Tables:
    """Split the tables of `checksum`, which come in one array: passing one array is faster than passing four."""
    second, third, fourth = TABLE, 2 * TABLE, 2 * TABLE + TABLE // 2
    return Tables(tables[:second], tables[second:third], tables[third:fourth], tables[fourth : fourth + TABLE // 2])


def validate(
    packed_tables: Array,
    data: Array,
    position: int,
    plain: Array,
    how: int,
    limits: Array,
    offset: int,
    leader_epoch: int,
    now_ms: int,
    of_client: int,
    headers: Array,
    spans: Array,
) -> tuple[int, int, int, int, int, int, int, int, int, int]:
    """Validate the batches of `data` from `position` on; writes their new headers, and a row of `spans` for each.

    Unless `how` is `AS_IT_IS`, `plain` holds the uncompressed records of the first batch, and only that batch is
    judged. With `LISTED`, the rows of `spans` describe its refused records instead, as many as there are rows. Returns
    the position reached, the number of rows (with `LISTED`, the number of refused records), the reason for stopping,
    the broken rule, and for the last batch its findings, last offset, largest timestamp, producer id, producer epoch
    and base sequence.
    """
    tables = unpacked(packed_tables)
    end = len(data)
    append_time = limits[APPEND_TIME] != 0
    found = KEEP
    largest = NO_TIMESTAMP
    last_offset = offset
    producer_id = NO_PRODUCER_ID
    epoch = NO_PRODUCER_EPOCH
    sequence = NO_SEQUENCE
    rows = 0
    while rows < len(spans):
        outcome, size, rule = next_extent(data, position, end)
        if outcome != MORE:
            too_small = rule == rules.BATCH_LENGTH or (rule == UNREADABLE and size <= MAX_SIZE)
            if too_small and of_client and read_i64(data, position) != 0:
                rule = FIRST_OFFSET
            return position, rows, outcome, rule, found, last_offset, largest, producer_id, epoch, sequence
        if data[position + MAGIC_AT] != 2:
            return position, rows, OLD, rules.OK, found, last_offset, largest, producer_id, epoch, sequence
        rule = judge_header(tables, data, position, size, limits, of_client)
        if rule != rules.OK:
            return position, rows, BROKEN, rule, found, last_offset, largest, producer_id, epoch, sequence
        compressed = data[position + FLAGS_AT] & _CODEC != _NONE
        another_codec = recompressed(data, position, limits)
        if how == AS_IT_IS:
            if compressed or another_codec:
                return position, rows, WANTED, rules.OK, found, last_offset, largest, producer_id, epoch, sequence
            rule, largest, found, _ = judge_records(
                data, position + HEADER_SIZE, position + size, data, position, limits, now_ms, True, spans, 0
            )
        else:
            listed = len(spans) if how == LISTED else 0
            lengths_matter = another_codec or not compressed
            rule, largest, found, refused_count = judge_records(
                plain, 0, len(plain), data, position, limits, now_ms, lengths_matter, spans, listed
            )
            if another_codec:
                found |= ANOTHER_CODEC
            if found & BAD_RECORD and how == LISTED:
                return (
                    position,
                    refused_count,
                    REFUSED,
                    rules.OK,
                    found,
                    last_offset,
                    largest,
                    producer_id,
                    epoch,
                    sequence,
                )
        if rule != rules.OK:
            return position, rows, BROKEN, rule, found, last_offset, largest, producer_id, epoch, sequence
        if found & BAD_RECORD:
            return position, rows, REFUSED, rules.OK, found, last_offset, largest, producer_id, epoch, sequence
        last_offset_delta = read_i32(data, position + LAST_OFFSET_DELTA_AT)
        if last_offset_delta > MAX_OFFSET - offset:
            return position, rows, BROKEN, OFFSETS_USED_UP, found, last_offset, largest, producer_id, epoch, sequence
        if append_time:
            largest = now_ms
        at = rows * HEADER_SIZE
        write_header(tables, data, position, size, offset, leader_epoch, append_time, largest, headers, at)
        last_offset = offset + last_offset_delta
        write_span(spans, rows, data, position, size, offset, last_offset, largest, leader_epoch)
        producer_id = spans[rows, SPAN_PRODUCER_ID]
        epoch = spans[rows, SPAN_PRODUCER_EPOCH]
        sequence = spans[rows, SPAN_BASE_SEQUENCE]
        offset = last_offset + 1
        position += size
        rows += 1
        if how != AS_IT_IS:
            break
    return position, rows, MORE, rules.OK, found, last_offset, largest, producer_id, epoch, sequence
