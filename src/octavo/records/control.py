"""Read and write control records, which Kafka writes for itself: transaction markers and records of the KRaft quorum.

    key   => version:int16 type:int16
    value => of a transaction marker: version:int16 coordinator_epoch:int32
             of the KRaft quorum:     version:int16, then a flexible message

Readers accept what Kafka's readers accept: later versions are read as version 0; tagged fields and bytes after the
end are skipped. `docs/formats/control.md` describes all of it with worked bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from octavo.errors import BadLength, BadRecord, InvalidInput
from octavo.records.builder import BatchBuilder
from octavo.records.control_key import ControlType, read_control_type, write_control_key
from octavo.records.layout import NO_LEADER_EPOCH, Int16, Int32, Layout
from octavo.records.quorum import (
    Endpoint,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumControl,
    QuorumVoter,
    SnapshotFooter,
    SnapshotHeader,
    read_quorum,
    write_quorum,
)
from octavo.records.record import Record

__all__ = [
    "Control",
    "ControlType",
    "EndTransactionMarker",
    "Endpoint",
    "KRaftVersion",
    "KRaftVoter",
    "KRaftVoters",
    "LeaderChange",
    "QuorumVoter",
    "SnapshotFooter",
    "SnapshotHeader",
    "UnknownControl",
    "control_batch",
    "end_transaction_marker",
    "read_control",
    "write_control",
]


class _EndMarker(NamedTuple):
    version: Int16
    coordinator_epoch: Int32


END_MARKER: Final = Layout(_EndMarker)
assert END_MARKER.size == 6


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionMarker:
    """A marker which says that the transaction of the batch's producer was committed or aborted."""

    type: ControlType  # COMMIT or ABORT
    coordinator_epoch: int  # epoch of the transaction coordinator, so that a deposed one is detected
    version: int = 0

    def __post_init__(self) -> None:
        if self.type not in (ControlType.COMMIT, ControlType.ABORT):
            raise InvalidInput(f"a transaction ends in COMMIT or ABORT, not {self.type.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownControl:
    """A control record of a type that Kafka 4.4 does not know; readers skip it."""

    type: ClassVar[ControlType] = ControlType.UNKNOWN
    type_id: int
    value: bytes | None


Control = EndTransactionMarker | QuorumControl | UnknownControl  # the content of a control record


def read_control(record: Record, *, position: int = 0) -> Control:
    """Decode a record of a control batch.

    Raises `BadLength`, `BadVarint` or `BadRecord`, at `position`, if the key or the value does not fit its type.
    """
    type_id = read_control_type(record.key, position=position)
    type_ = ControlType(type_id)
    if type_ == ControlType.UNKNOWN:
        return UnknownControl(type_id=type_id, value=record.value)
    if record.value is None:
        raise BadRecord(position, f"a control record of type {type_.name} has no value")
    if type_ in (ControlType.COMMIT, ControlType.ABORT):
        return _read_end_marker(type_, record.value, position)
    return read_quorum(type_, record.value, position)


def write_control(control: Control) -> tuple[bytes, bytes | None]:
    """Return the key and value of the record for `control`; raises `InvalidInput` for numbers that do not fit."""
    try:
        if isinstance(control, UnknownControl):
            return write_control_key(control.type_id), control.value
        if isinstance(control, EndTransactionMarker):
            value = END_MARKER.write(_EndMarker(control.version, control.coordinator_epoch))
        else:
            value = write_quorum(control)
        return write_control_key(control.type), value
    except struct.error as error:
        raise InvalidInput(f"{control} cannot be stored: {error}") from None


def _read_end_marker(type_: ControlType, value: bytes, position: int) -> EndTransactionMarker:
    if len(value) < END_MARKER.size:
        raise BadLength(position, f"a transaction marker takes {END_MARKER.size} bytes, there are {len(value)}")
    version, coordinator_epoch = END_MARKER.read(value)
    if version < 0:
        raise BadRecord(position, f"a transaction marker has version {version}")
    return EndTransactionMarker(type=type_, coordinator_epoch=coordinator_epoch, version=version)


def end_transaction_marker(
    commit: bool,
    *,
    offset: int = 0,
    timestamp_ms: int,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Build the marker that ends a producer's transaction, a control batch of 78 bytes.

    Raises `InvalidInput` for impossible fields.
    """
    builder = BatchBuilder(
        base_offset=offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
    type_ = ControlType.COMMIT if commit else ControlType.ABORT
    key, value = write_control(EndTransactionMarker(type=type_, coordinator_epoch=coordinator_epoch))
    builder.append(key, value, timestamp_ms=timestamp_ms)
    return builder.build()


def control_batch(controls: Sequence[Control], *, base_offset: int = 0, timestamp_ms: int, leader_epoch: int) -> bytes:
    """Build a control batch of the KRaft quorum; raises `InvalidInput` for impossible fields.

    Markers of transactions do not belong to the quorum: `end_transaction_marker` builds them.
    """
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=leader_epoch, control=True)
    for control in controls:
        if isinstance(control, EndTransactionMarker):
            raise InvalidInput("a transaction's end needs a producer")
        if isinstance(control, LeaderChange) and leader_epoch == NO_LEADER_EPOCH:
            raise InvalidInput("a change of leader needs a leader epoch")
        key, value = write_control(control)
        builder.append(key, value, timestamp_ms=timestamp_ms)
    return builder.build()
