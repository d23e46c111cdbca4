"""What the indexes of a segment hold for batches that a scan has found, and where the batches stop making sense.

The rules are those by which Kafka rebuilds indexes (`LogSegment.recover`): an entry for a batch that begins more than
an interval behind the last one that has an entry.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array
from octavo.records.kernels.scan import BASE_OFFSET, LAST_OFFSET, LEADER_EPOCH, MAGIC, MAX_TIMESTAMP, POSITION
from octavo.records.layout import MAX_INT32

# What a walk over several tables remembers from one to the next.
NEXT_OFFSET = 0  # the smallest that the next batch may have
INDEXED = 1  # position of the last batch that has an entry
LARGEST_TIMESTAMP = 2
LARGEST_OFFSET = 3  # last offset of the batch that has it
INDEXED_TIMESTAMP = 4  # of the last time entry
EPOCH = 5  # the latest
OFFSET_ENTRIES = 6  # counts of what was put out for this table
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
    """Go on with the first `rows` of a batch table, whose positions count from `shift` in the segment.

    The entries go to the tables `offset_entries` (offset, position), `time_entries` (timestamp, offset) and `epochs`
    (epoch, start offset), each as long as the batch table. Returns the count of rows up to the first batch whose
    offsets do not follow those before it, or cannot be told relative to the base.
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
