"""The file `quorum-state`: the newest epoch of the controllers that a node knows of.

    {"leaderId":1,"leaderEpoch":5,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}

A node that is no voter votes for nobody. Version 0 is that of a quorum whose voters are in the settings of every node
(kraft.version 0); it names them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from octavo.errors import CorruptFile
from octavo.log.files.meta_properties import ZERO_ID, write_uuid
from octavo.log.files.small_file import read_small_file
from octavo.log.names import QUORUM_STATE
from octavo.log.storage import Storage
from octavo.records.layout import MAX_INT32

NO_LEADER: Final = -1
_MAX_SIZE: Final = 1 << 20


class QuorumLeader(NamedTuple):
    """An epoch of the controllers, and its leader as far as it is known."""

    epoch: int
    leader_id: int = NO_LEADER


def read_quorum_state(storage: Storage, folder: Path) -> QuorumLeader:
    """Read the newest epoch; 0 if there is no file. Raises `CorruptFile`, with which Kafka does not start either."""
    path = folder / QUORUM_STATE
    try:
        fields = _read(storage, path)
    except FileNotFoundError:
        return QuorumLeader(0)
    state = QuorumLeader(fields.get("leaderEpoch", NO_LEADER), fields.get("leaderId", NO_LEADER))
    if not _is_number(state.epoch, 0) or not _is_number(state.leader_id, NO_LEADER):
        raise CorruptFile(path, 0, "it names no epoch of a leader")
    return state


def has_voted(storage: Storage, folder: Path) -> bool:
    """Return whether the node has ever voted, as far as that can be read."""
    try:
        return bool(_read(storage, folder / QUORUM_STATE).get("votedId", NO_LEADER) != NO_LEADER)
    except (FileNotFoundError, CorruptFile):
        return False


def _read(storage: Storage, path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(read_small_file(storage, path, _MAX_SIZE))
    except (ValueError, RecursionError):
        raise CorruptFile(path, 0, "it is not the JSON that Kafka writes") from None
    return content if isinstance(content, dict) else {}


def write_quorum_state(
    storage: Storage, folder: Path, state: QuorumLeader, *, kraft_version: int, voters: tuple[int, ...] | None
) -> None:
    """Replace the file. It is on the disk when this returns."""
    storage.replace_file(folder / QUORUM_STATE, quorum_state(state, kraft_version=kraft_version, voters=voters))


def quorum_state(state: QuorumLeader, *, kraft_version: int, voters: tuple[int, ...] | None) -> bytes:
    """Return the content of the file. `voters`: those of a quorum with kraft.version 0, as far as they are known."""
    content: dict[str, Any]
    if kraft_version > 0 or voters is None:
        content = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": NO_LEADER,
            "votedDirectoryId": write_uuid(ZERO_ID),
            "data_version": 1,
        }
    else:
        content = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": NO_LEADER,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voters],
            "data_version": 0,
        }
    return json.dumps(content, separators=(",", ":")).encode()


def _is_number(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MAX_INT32
