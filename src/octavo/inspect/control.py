"""Convert control records to JSON, with the names of Kafka's own JSON for these messages."""

from __future__ import annotations

import json
from typing import Any, Final, assert_never

from octavo.records.control import (
    Control,
    EndTransactionMarker,
    KRaftVersion,
    KRaftVoter,
    KRaftVoters,
    LeaderChange,
    QuorumVoter,
    SnapshotFooter,
    SnapshotHeader,
    UnknownControl,
    read_control,
)
from octavo.records.record import Record
from octavo.records.uuid_text import write_uuid

_ENCODE: Final = json.JSONEncoder(separators=(",", ":")).encode


def control_text(record: Record, position: int) -> str:
    """Return what a control record says, as JSON. Raises `FormatError` at `position`, that of its batch."""
    return _ENCODE(control_content(read_control(record, position=position)))


def control_content(control: Control) -> dict[str, Any]:
    """Convert a control record to a dictionary for JSON: the name of its type, and all its fields."""
    return {"type": control.type.name, **_content(control)}


def _content(control: Control) -> dict[str, Any]:
    match control:
        case EndTransactionMarker():
            return {"version": control.version, "coordinatorEpoch": control.coordinator_epoch}
        case LeaderChange():
            return {
                "version": control.version,
                "leaderId": control.leader_id,
                "voters": [_quorum_voter(voter, control.version) for voter in control.voters],
                "grantingVoters": [_quorum_voter(voter, control.version) for voter in control.granting_voters],
            }
        case SnapshotHeader():
            return {
                "version": control.version,
                "lastContainedLogTimestamp": control.last_contained_log_timestamp_ms,
            }
        case SnapshotFooter():
            return {"version": control.version}
        case KRaftVersion():
            return {"version": control.version, "kRaftVersion": control.kraft_version}
        case KRaftVoters():
            return {"version": control.version, "voters": [_kraft_voter(voter) for voter in control.voters]}
        case UnknownControl():
            return {"typeId": control.type_id}
        case _:
            assert_never(control)


def _quorum_voter(voter: QuorumVoter, version: int) -> dict[str, Any]:
    content: dict[str, Any] = {"voterId": voter.id}
    if version >= 1:
        content["voterDirectoryId"] = write_uuid(voter.directory_id)
    return content


def _kraft_voter(voter: KRaftVoter) -> dict[str, Any]:
    return {
        "voterId": voter.id,
        "voterDirectoryId": write_uuid(voter.directory_id),
        "endpoints": [
            {"name": endpoint.name, "host": endpoint.host, "port": endpoint.port} for endpoint in voter.endpoints
        ],
        "kRaftVersionFeature": {
            "minSupportedVersion": voter.min_supported_version,
            "maxSupportedVersion": voter.max_supported_version,
        },
    }
