"""The control records of the KRaft quorum under the names of Kafka's JSON, read as Kafka 4.3 reads them.

It reads each of them as version 0, and prints it as the version that the record itself declares.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from octavo.errors import FormatError
from octavo.inspect.kafka_json import message_json, to_text
from octavo.inspect.kafka_json.refusals import read_as_kafka
from octavo.inspect.kafka_text.throwables import ILLEGAL_ARGUMENT, RUNTIME, UNDERFLOW, Throwable
from octavo.records.control import ControlType
from octavo.records.quorum import NO_DIRECTORY
from octavo.schemas.entity import entity, kafka


@entity
class _QuorumVoter:
    voter_id: int = kafka("int32")
    voter_directory_id: UUID = kafka("uuid", since=1, default=NO_DIRECTORY)


@entity
class _LeaderChange:
    version: int = kafka("int16")
    leader_id: int = kafka("int32")
    voters: tuple[_QuorumVoter, ...] = kafka("[]")
    granting_voters: tuple[_QuorumVoter, ...] = kafka("[]")


@entity
class _SnapshotHeader:
    version: int = kafka("int16")
    last_contained_log_timestamp: int = kafka("int64")


@entity
class _SnapshotFooter:
    version: int = kafka("int16")


@entity
class _KRaftVersion:
    version: int = kafka("int16")
    k_raft_version: int = kafka("int16")


@entity
class _Endpoint:
    name: str = kafka("string")
    host: str = kafka("string")
    port: int = kafka("uint16")


@entity
class _VersionRange:
    min_supported_version: int = kafka("int16")
    max_supported_version: int = kafka("int16")


@entity
class _Voter:
    voter_id: int = kafka("int32")
    voter_directory_id: UUID = kafka("uuid")
    endpoints: tuple[_Endpoint, ...] = kafka("[]")
    k_raft_version_feature: _VersionRange = kafka("struct")


@entity
class _Voters:
    version: int = kafka("int16")
    voters: tuple[_Voter, ...] = kafka("[]")


_KINDS: Final[dict[ControlType, type[Any]]] = {
    ControlType.LEADER_CHANGE: _LeaderChange,
    ControlType.SNAPSHOT_HEADER: _SnapshotHeader,
    ControlType.SNAPSHOT_FOOTER: _SnapshotFooter,
    ControlType.KRAFT_VERSION: _KRaftVersion,
    ControlType.KRAFT_VOTERS: _Voters,
}


def control_json(type_: ControlType, value: bytes) -> str:
    """Return Kafka's JSON for the value of a control record of the quorum. Raises what Kafka throws."""
    try:
        message, _ = read_as_kafka(_KINDS[type_], value, 0, 0, versions=range(1), first_flexible=0)
    except FormatError as refusal:
        raise _thrown(refusal.rule) from None
    return to_text(message_json(message, message.version))


def _thrown(message: str) -> Throwable:
    """Return the exception behind a refusal. Of these, the message tells the class."""
    if message == "null":
        return Throwable(UNDERFLOW)
    if message.startswith("Varint"):
        return Throwable(ILLEGAL_ARGUMENT, message)
    if message.lstrip("-").isdigit():
        return Throwable("java.lang.NegativeArraySizeException", message)
    return Throwable(RUNTIME, message)
