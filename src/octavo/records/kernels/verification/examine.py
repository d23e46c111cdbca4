"""The kernels of `octavo verify`: check many batches in one call.

    examine             everything about the batches of a block, except for compressed records
    examine_inflated    the records of batches that were decompressed

Both fill `found` with what is wrong: a fault, the position, the offset and two numbers that say more, in each row. The
table of batches has the columns of `scan`, and two more.
"""

from __future__ import annotations

from octavo.records.kernels import scan
from octavo.records.kernels.checksum import Tables
from octavo.records.kernels.machine import Array, crc32, crc32c_of, read_i32, read_u8
from octavo.records.kernels.verification import faults
from octavo.records.kernels.verification.control import check_control
from octavo.records.kernels.verification.headers import check_counts, check_flags, check_producer, check_times
from octavo.records.kernels.verification.messages import check_message, check_wrapper
from octavo.records.kernels.verification.records import check_records
from octavo.records.layout import ATTRIBUTES_AT, HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, MIN_LENGTH, Attributes

# Columns of the table after those of `scan`.
CONTROL_TYPE = scan.COLUMNS  # type of a control batch's first record, -1 if there is none
COORDINATOR_EPOCH = scan.COLUMNS + 1  # in a commit or an abort, otherwise -1
COLUMNS = scan.COLUMNS + 2

# Columns of what is found.
FAULT = 0
WHERE = 1  # position of the batch or record, in the file
OFFSET = 2
FIRST = 3
SECOND = 4
FOUND = 5

AT_ONCE = 8  # faults of one batch that are noted, at most

# What is known of the batches before: in and out.
LAST_OFFSET = 0  # of the batch before
LAST_POSITION = 1  # of that batch in the file
OLDER_OFFSET = 2  # last offset of the batch before that one
EPOCH = 3  # leader epoch of the last batch that had one
EPOCH_POSITION = 4
OLDER_EPOCH = 5  # the one before the last change
NO_GAPS = 6  # in: whether offsets may not be missing
STATE = 7

# Why the kernel returns.
FULL = 0  # the table, or the list of what is found, is full
DONE = 1
CUT = 2  # the block ends inside the next batch
BROKEN = 3  # there is no batch: its length or its magic is impossible
MISMATCH = 4  # the checksum of the next batch is wrong

_CODEC = int(Attributes.CODEC)
_APPEND_TIME = int(Attributes.LOG_APPEND_TIME)
_CONTROL = int(Attributes.CONTROL)
_TRANSACTIONAL = int(Attributes.TRANSACTIONAL)


def note(found: Array, many: int, fault: int, where: int, offset: int, first: int, second: int) -> int:
    """Add what is wrong to `found`, unless nothing is; return how many are in it."""
    if fault == faults.OK:
        return many
    found[many, FAULT] = fault
    found[many, WHERE] = where
    found[many, OFFSET] = offset
    found[many, FIRST] = first
    found[many, SECOND] = second
    return many + 1


def next_size(data: Array, at: int, end: int) -> tuple[int, int]:
    """Return why there is no complete batch at `at` (or `FULL` if there is one), and its size or the fault."""
    left = end - at
    if left == 0:
        return DONE, 0
    if left < LOG_OVERHEAD:
        return CUT, 0
    length = read_i32(data, at + LENGTH_AT)
    if length < MIN_LENGTH:
        return BROKEN, faults.LENGTH
    if left <= MAGIC_AT:
        return CUT, 0
    magic = read_u8(data, at + MAGIC_AT)
    if magic > 2:
        return BROKEN, faults.MAGIC
    if magic == 2 and length + LOG_OVERHEAD < HEADER_SIZE:
        return BROKEN, faults.LENGTH
    return (CUT if length + LOG_OVERHEAD > left else FULL), length + LOG_OVERHEAD


def check_order(table: Array, row: int, where: int, state: Array, found: Array, many: int) -> int:
    """Compare offset and leader epoch with those of the batches before; return how many faults there are now.

    A base offset or epoch that is too high looks right until the next batch comes. So if the next one fits to what was
    before, the one in between is wrong.
    """
    base, last = table[row, scan.BASE_OFFSET], table[row, scan.LAST_OFFSET]
    before = state[LAST_OFFSET]
    if base <= before:
        is_other = base > state[OLDER_OFFSET] and last < before
        place = state[LAST_POSITION] if is_other else where
        many = note(found, many, faults.ORDER, place, before if is_other else base, before, base)
    elif state[NO_GAPS] and before >= 0 and base > before + 1:
        many = note(found, many, faults.GAP, where, base, before, base)
    state[OLDER_OFFSET] = min(before, base - 1)
    state[LAST_OFFSET], state[LAST_POSITION] = last, where
    epoch = table[row, scan.LEADER_EPOCH]
    if epoch < -1:
        many = note(found, many, faults.EPOCH, where, base, epoch, 0)
    elif epoch >= 0:
        if epoch < state[EPOCH]:
            is_other = epoch >= state[OLDER_EPOCH]
            place = state[EPOCH_POSITION] if is_other else where
            many = note(found, many, faults.EPOCH_ORDER, place, base, state[EPOCH], epoch)
            state[EPOCH], state[EPOCH_POSITION] = epoch, where
        elif epoch > state[EPOCH]:
            state[OLDER_EPOCH], state[EPOCH], state[EPOCH_POSITION] = state[EPOCH], epoch, where
    return many


def check_content(data: Array, table: Array, row: int, where: int, is_inflated: bool, found: Array, many: int) -> int:
    """Check the records of the batch of magic 2 in a row, which are in `data`; return how many faults there are now."""
    start, end = table[row, scan.START], table[row, scan.END]
    base = table[row, scan.BASE_OFFSET]
    last_delta = table[row, scan.LAST_OFFSET] - base
    fault, at, number, largest = check_records(
        data, start, end, table[row, scan.COUNT], last_delta, table[row, scan.BASE_TIMESTAMP]
    )
    attributes = table[row, scan.ATTRIBUTES]
    if fault != faults.OK:
        place = where if is_inflated else where + HEADER_SIZE + at - start
        return note(found, many, fault, place, base, number, at - start)
    if attributes & _APPEND_TIME == 0 and largest != table[row, scan.MAX_TIMESTAMP]:
        many = note(found, many, faults.MAX_TIMESTAMP, where, base, table[row, scan.MAX_TIMESTAMP], largest)
    if attributes & _CONTROL:
        fault, kind, epoch, detail = check_control(data, start, end, attributes & _TRANSACTIONAL != 0)
        many = note(found, many, fault, where + HEADER_SIZE, base, detail, 0)
        table[row, CONTROL_TYPE], table[row, COORDINATOR_EPOCH] = kind, epoch
    return many


def check_batch(data: Array, table: Array, row: int, where: int, found: Array, many: int) -> int:
    """Check the batch of magic 2 in a row, whose checksum is right; return how many faults there are now."""
    base = table[row, scan.BASE_OFFSET]
    before = many
    fault, detail = check_flags(data, table, row)
    many = note(found, many, fault, where, base, detail, 0)
    fault, detail = check_counts(table, row)
    many = note(found, many, fault, where, base, detail, table[row, scan.LAST_OFFSET])
    fault, detail = check_times(table, row)
    many = note(found, many, fault, where, base, detail, 0)
    fault, detail = check_producer(table, row)
    many = note(found, many, fault, where, base, detail, table[row, scan.PRODUCER_EPOCH])
    if table[row, scan.COUNT] > 0 and table[row, scan.ATTRIBUTES] & _CODEC == 0 and many == before:
        many = check_content(data, table, row, where, False, found, many)
    return many


def examine(
    tables: Tables, data: Array, at: int, end: int, shift: int, state: Array, table: Array, found: Array
) -> tuple[int, int, int, int, int]:
    """Check the batches of `data[at:end]`, which begins at position `shift` of its file.

    Returns the position reached, the number of batches in the table, of faults, why it stopped, and a number that says
    more: the size of the batch that is cut or whose checksum is wrong, or the fault that makes it none.
    """
    rows = 0
    many = 0
    while rows < len(table) and many + AT_ONCE <= len(found):
        outcome, size = next_size(data, at, end)
        if outcome != FULL:
            return at, rows, many, outcome, size
        scan.read_row(data, at, size, table, rows)
        magic = table[rows, scan.MAGIC]
        if magic == 2:
            computed = crc32c_of(tables, data, at + ATTRIBUTES_AT, at + size, 0)
        else:
            computed = crc32(tables.ieee, data, at + MAGIC_AT, at + size)
        if computed != table[rows, scan.CRC]:
            return at, rows, many, MISMATCH, size
        table[rows, CONTROL_TYPE] = -1
        table[rows, COORDINATOR_EPOCH] = -1
        where = shift + at
        many = check_order(table, rows, where, state, found, many)
        if magic == 2:
            many = check_batch(data, table, rows, where, found, many)
        else:
            fault, detail, _, _ = check_message(data, at, at + size)
            many = note(found, many, fault, where, table[rows, scan.LAST_OFFSET], detail, 0)
        at += size
        rows += 1
    return at, rows, many, FULL, 0


def examine_inflated(
    tables: Tables, data: Array, shift: int, table: Array, row: int, end: int, found: Array
) -> tuple[int, int]:
    """Check the records of those batches in `table[row:end]` that were decompressed into `data`.

    Returns the row reached, and the number of faults.
    """
    many = 0
    while row < end and many + AT_ONCE <= len(found):
        if table[row, scan.INFLATED]:
            where = shift + table[row, scan.POSITION]
            if table[row, scan.MAGIC] == 2:
                many = check_content(data, table, row, where, True, found, many)
            else:
                fault, detail = check_wrapper(tables.ieee, data, table, row)
                many = note(found, many, fault, where, table[row, scan.LAST_OFFSET], detail, 0)
        row += 1
    return row, many
