"""Build the index entries of a segment from the batches that a scan has found; stop where offsets make no sense.

The rules are those by which Kafka rebuilds indexes (`LogSegment.recover`): a batch gets an entry if it begins more than
an interval after the last batch that has one.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array
from octavo.records.kernels.scan import BASE_OFFSET, LAST_OFFSET, LEADER_EPOCH, MAGIC, MAX_TIMESTAMP, POSITION
from octavo.records.layout import MAX_INT32

# The state that a walk over several tables carries from one to the next.
NEXT_OFFSET = 0  # smallest offset that the next batch may have
INDEXED = 1  # position of the last batch that has an entry
LARGEST_TIMESTAMP = 2
LARGEST_OFFSET = 3  # last offset of the batch with the largest timestamp
INDEXED_TIMESTAMP = 4  # timestamp of the last time index entry
EPOCH = 5  # the latest leader epoch
OFFSET_ENTRIES = 6  # numbers of entries written for this table
TIME_ENTRIES = 7
EPOCHS = 8
STATE = 9


def index_batches(
    table: Array,
    rows: int,
    shift: int,
    base_offset: int,
    interval: int,
    state: Array,
    offset_entries: Array,
    time_entries: Array,
    epochs: Array,
) -> int:
    """Add the index entries for the first `rows` of a batch table, whose positions count from `shift` in the segment.

    The entries go to the tables `offset_entries` (offset, position), `time_entries` (timestamp, offset) and `epochs`
    (epoch, start offset), each as long as the batch table. Returns the number of rows before the first batch whose
    offsets do not follow those before it, or do not fit relative to the base offset.
    """
    offset_count = 0
    time_count = 0
    epoch_count = 0
    row = 0
    while row < rows:
        last_offset = table[row, LAST_OFFSET]
        first_offset = table[row, BASE_OFFSET] if table[row, MAGIC] == 2 else last_offset
        if first_offset < state[NEXT_OFFSET] or last_offset < first_offset or last_offset - base_offset > MAX_INT32:
            break
        position = table[row, POSITION] + shift
        if table[row, MAX_TIMESTAMP] > state[LARGEST_TIMESTAMP]:
            state[LARGEST_TIMESTAMP] = table[row, MAX_TIMESTAMP]
            state[LARGEST_OFFSET] = last_offset
        if position - state[INDEXED] > interval:
            offset_entries[offset_count, 0] = last_offset
            offset_entries[offset_count, 1] = position
            offset_count += 1
            state[INDEXED] = position
            if state[LARGEST_TIMESTAMP] > state[INDEXED_TIMESTAMP]:
                time_entries[time_count, 0] = state[LARGEST_TIMESTAMP]
                time_entries[time_count, 1] = state[LARGEST_OFFSET]
                time_count += 1
                state[INDEXED_TIMESTAMP] = state[LARGEST_TIMESTAMP]
        if table[row, MAGIC] == 2 and table[row, LEADER_EPOCH] > state[EPOCH]:
            epochs[epoch_count, 0] = table[row, LEADER_EPOCH]
            epochs[epoch_count, 1] = first_offset
            epoch_count += 1
            state[EPOCH] = table[row, LEADER_EPOCH]
        state[NEXT_OFFSET] = last_offset + 1
        row += 1
    state[OFFSET_ENTRIES] = offset_count
    state[TIME_ENTRIES] = time_count
    state[EPOCHS] = epoch_count
    return row
