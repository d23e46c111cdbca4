"""What is printed of control records: ends of transactions, and records of the KRaft quorum as Kafka's JSON."""

from __future__ import annotations

from typing import Final

from octavo.inspect.kafka_text.java_bytes import int_at, short_at
from octavo.inspect.kafka_text.throwables import INVALID_RECORD, NULL_POINTER, UNDERFLOW, Throwable
from octavo.records.control import ControlType

_LABELS: Final = {
    ControlType.LEADER_CHANGE: "LeaderChange:",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlType.KRAFT_VERSION: "KRaftVersion",
    ControlType.KRAFT_VOTERS: "KRaftVoters",
}
_KEY_SIZE: Final = 4
_VERSION_SIZE: Final = 2
_MARKER_SIZE: Final = 6


def control_text(key: bytes | None, value: bytes | None) -> str:
    """Return what is printed of a control record behind its metadata. Raises what Kafka throws."""
    type_id = _type_id(key)
    type_ = ControlType(type_id)
    if type_ in (ControlType.ABORT, ControlType.COMMIT):
        return f" endTxnMarker: {type_.name} coordinatorEpoch: {_coordinator_epoch(value)}"
    label = _LABELS.get(type_)
    if label is None:
        return f" controlType: UNKNOWN({type_id})"
    if value is None:
        raise Throwable(NULL_POINTER, 'Cannot invoke "java.nio.ByteBuffer.slice()" because "data" is null')
    from octavo.inspect.kafka_text.control_messages import control_json  # takes long to import, and is rarely needed

    return f" {label} {control_json(type_, value)}"


def _type_id(key: bytes | None) -> int:
    if key is None:
        raise Throwable(NULL_POINTER, 'Cannot invoke "java.nio.ByteBuffer.duplicate()" because "key" is null')
    if len(key) < _KEY_SIZE:
        raise Throwable(
            INVALID_RECORD,
            f"Invalid value size found for control record key. Must have at least {_KEY_SIZE} bytes, but found only "
            f"{len(key)}",
        )
    version = short_at(key, 0)
    if version < 0:
        raise Throwable(
            INVALID_RECORD, f"Invalid version found for control record: {version}. May indicate data corruption"
        )
    return short_at(key, 2)


def _coordinator_epoch(value: bytes | None) -> int:
    if value is None:
        raise Throwable(NULL_POINTER, 'Cannot invoke "java.nio.ByteBuffer.getShort()" because "value" is null')
    if len(value) < _VERSION_SIZE:
        raise Throwable(UNDERFLOW)
    version = short_at(value, 0)
    if version < 0:
        raise Throwable(
            INVALID_RECORD, f"Invalid version found for end transaction marker: {version}. May indicate data corruption"
        )
    if len(value) < _MARKER_SIZE:
        raise Throwable(UNDERFLOW)
    return int_at(value, _VERSION_SIZE)
