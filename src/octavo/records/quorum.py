"""Read and write control records of the KRaft quorum: flexible messages whose first field is their version.

Kafka 4.4 writes version 0 of all of them, and reads every version as 0. The schema of the leader change has a
version 1 with the voters' directories (KIP-853). Version 1 is read and written here if the record itself declares it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final
from uuid import UUID

from octavo.errors import InvalidInput
from octavo.records.control_key import ControlType
from octavo.records.flexible import FlexibleReader, FlexibleWriter

NO_DIRECTORY: Final = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumVoter:
    """A voter as listed in a leader change."""

    id: int
    directory_id: UUID = NO_DIRECTORY  # stored in version 1 (KIP-853)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """The new leader of the quorum; the first record of every epoch."""

    type: ClassVar[ControlType] = ControlType.LEADER_CHANGE
    leader_id: int
    voters: tuple[QuorumVoter, ...] = ()
    granting_voters: tuple[QuorumVoter, ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHeader:
    """The first record of a snapshot."""

    type: ClassVar[ControlType] = ControlType.SNAPSHOT_HEADER
    last_contained_log_timestamp_ms: int
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFooter:
    """The last record of a snapshot; without it the snapshot is incomplete."""

    type: ClassVar[ControlType] = ControlType.SNAPSHOT_FOOTER
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersion:
    """The version of the KRaft protocol from this record on."""

    type: ClassVar[ControlType] = ControlType.KRAFT_VERSION
    kraft_version: int
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address at which a voter can be reached."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVoter:
    """A voter with everything that the other voters need to know about it."""

    id: int
    directory_id: UUID
    endpoints: tuple[Endpoint, ...] = ()
    min_supported_version: int = 0
    max_supported_version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVoters:
    """The voters of the quorum from this record on."""

    type: ClassVar[ControlType] = ControlType.KRAFT_VOTERS
    voters: tuple[KRaftVoter, ...] = ()
    version: int = 0


QuorumControl = LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | KRaftVoters


def read_quorum(type_: ControlType, value: bytes, position: int) -> QuorumControl:
    """Decode the value of a control record of type `type_`; raises `BadLength`, `BadVarint` or `BadRecord`."""
    reader = FlexibleReader(value, position)
    version = reader.int16()
    control: QuorumControl
    if type_ == ControlType.LEADER_CHANGE:
        control = LeaderChange(
            version=version,
            leader_id=reader.int32(),
            voters=_read_quorum_voters(reader, version),
            granting_voters=_read_quorum_voters(reader, version),
        )
    elif type_ == ControlType.SNAPSHOT_HEADER:
        control = SnapshotHeader(version=version, last_contained_log_timestamp_ms=reader.int64())
    elif type_ == ControlType.SNAPSHOT_FOOTER:
        control = SnapshotFooter(version=version)
    elif type_ == ControlType.KRAFT_VERSION:
        control = KRaftVersion(version=version, kraft_version=reader.int16())
    else:
        voters = tuple(_read_kraft_voter(reader) for _ in range(reader.array_length()))
        control = KRaftVoters(version=version, voters=voters)
    reader.tagged_fields()
    return control


def _read_quorum_voters(reader: FlexibleReader, version: int) -> tuple[QuorumVoter, ...]:
    voters = []
    for _ in range(reader.array_length()):
        id_ = reader.int32()
        voters.append(QuorumVoter(id=id_, directory_id=reader.uuid() if version == 1 else NO_DIRECTORY))
        reader.tagged_fields()
    return tuple(voters)


def _read_kraft_voter(reader: FlexibleReader) -> KRaftVoter:
    id_ = reader.int32()
    directory_id = reader.uuid()
    endpoints = []
    for _ in range(reader.array_length()):
        endpoints.append(Endpoint(name=reader.string(), host=reader.string(), port=reader.uint16()))
        reader.tagged_fields()
    lowest, highest = reader.int16(), reader.int16()
    reader.tagged_fields()  # tagged fields of the version range, which is a structure of its own
    reader.tagged_fields()
    return KRaftVoter(
        id=id_,
        directory_id=directory_id,
        endpoints=tuple(endpoints),
        min_supported_version=lowest,
        max_supported_version=highest,
    )


def write_quorum(control: QuorumControl) -> bytes:
    """Encode the value of a control record; raises `struct.error` for numbers that do not fit."""
    writer = FlexibleWriter()
    writer.int16(control.version)
    if isinstance(control, LeaderChange):
        writer.int32(control.leader_id)
        _write_quorum_voters(writer, control.voters, control.version)
        _write_quorum_voters(writer, control.granting_voters, control.version)
    elif isinstance(control, SnapshotHeader):
        writer.int64(control.last_contained_log_timestamp_ms)
    elif isinstance(control, KRaftVersion):
        writer.int16(control.kraft_version)
    elif isinstance(control, KRaftVoters):
        writer.array_length(len(control.voters))
        for voter in control.voters:
            _write_kraft_voter(writer, voter)
    writer.no_tagged_fields()
    return bytes(writer.data)


def _write_quorum_voters(writer: FlexibleWriter, voters: tuple[QuorumVoter, ...], version: int) -> None:
    writer.array_length(len(voters))
    for voter in voters:
        writer.int32(voter.id)
        if version == 1:
            writer.uuid(voter.directory_id)
        elif voter.directory_id != NO_DIRECTORY:
            raise InvalidInput("a leader change names directories in version 1 only")
        writer.no_tagged_fields()


def _write_kraft_voter(writer: FlexibleWriter, voter: KRaftVoter) -> None:
    writer.int32(voter.id)
    writer.uuid(voter.directory_id)
    writer.array_length(len(voter.endpoints))
    for endpoint in voter.endpoints:
        writer.string(endpoint.name)
        writer.string(endpoint.host)
        writer.uint16(endpoint.port)
        writer.no_tagged_fields()
    writer.int16(voter.min_supported_version)
    writer.int16(voter.max_supported_version)
    writer.no_tagged_fields()
    writer.no_tagged_fields()
