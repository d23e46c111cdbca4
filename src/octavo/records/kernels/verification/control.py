"""Check what is in a control record.

    key => version:int16 type:int16
    value of an abort (0) or a commit (1) => version:int16 coordinator_epoch:int32

The other types (2 to 6) are those of the KRaft quorum. Their values are messages with schemas of their own.
"""

from __future__ import annotations

from octavo.records.kernels.machine import Array, read_i16, read_i32
from octavo.records.kernels.verification import faults
from octavo.records.kernels.verification.numbers import take_int, take_long

_KEY_SIZE = 4
_MARKER_SIZE = 6
_COMMIT = 1
_LAST_TYPE = 6


def check_control(data: Array, at: int, end: int, is_marker: bool) -> tuple[int, int, int, int]:
    """Check the first record in `data[at:end]`, whose fields are sound, as a control record.

    `is_marker`: its batch is transactional. Returns what is wrong, the type, the epoch of the coordinator (-1 if there
    is none), and a number that says more.
    """
    _, at = take_int(data, at, end)
    _, at = take_long(data, at + 1, end)
    _, at = take_int(data, at, end)
    length, key_at = take_int(data, at, end)
    if length < _KEY_SIZE or read_i16(data, key_at) < 0:
        return faults.CONTROL_KEY, -1, -1, length
    kind = read_i16(data, key_at + 2)
    if kind < 0 or kind > _LAST_TYPE or (kind <= _COMMIT) != is_marker:
        return faults.CONTROL_TYPE, kind, -1, kind
    length, value_at = take_int(data, key_at + length, end)
    if kind > _COMMIT:
        return (faults.OK if length > 0 else faults.CONTROL_VALUE), kind, -1, length
    if length < _MARKER_SIZE or read_i16(data, value_at) < 0:
        return faults.CONTROL_VALUE, kind, -1, length
    return faults.OK, kind, read_i32(data, value_at + 2), 0
