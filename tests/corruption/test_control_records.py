"""Damaged control records: `read_control` gives a typed error, or what the bytes say."""

from __future__ import annotations

import contextlib
import itertools
import uuid
from typing import Final

import pytest

from octavo.errors import FormatError
from octavo.records import ControlType, Record, read_control
from octavo.records import control as c

_ID: Final = uuid.UUID(int=7)
_VOTERS: Final = (c.QuorumVoter(id=1, directory_id=_ID), c.QuorumVoter(id=2))
_ENDPOINT: Final = c.Endpoint(name="CONTROLLER", host="localhost", port=9093)

CONTROLS: Final[dict[str, c.Control]] = {
    "commit": c.EndTransactionMarker(type=ControlType.COMMIT, coordinator_epoch=3),
    "leader change": c.LeaderChange(leader_id=1, voters=_VOTERS, granting_voters=_VOTERS[:1], version=1),
    "snapshot header": c.SnapshotHeader(last_contained_log_timestamp_ms=1_700_000_000_000),
    "snapshot footer": c.SnapshotFooter(),
    "KRaft version": c.KRaftVersion(kraft_version=1),
    "KRaft voters": c.KRaftVoters(voters=(c.KRaftVoter(id=1, directory_id=_ID, endpoints=(_ENDPOINT, _ENDPOINT)),)),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_a_damaged_control_record_gives_a_typed_error_or_another_control(name: str) -> None:
    key, value = c.write_control(CONTROLS[name])
    assert value is not None
    assert read_control(Record(key=key, value=value)) == CONTROLS[name]
    for size in range(len(key) + 1):
        with contextlib.suppress(FormatError):
            read_control(Record(key=key[:size], value=value))
    for size in range(len(value) + 1):
        with contextlib.suppress(FormatError):
            read_control(Record(key=key, value=value[:size]))
    whole = key + value
    for at, new in itertools.product(range(len(whole)), range(256)):
        damaged = whole[:at] + bytes((new,)) + whole[at + 1 :]
        with contextlib.suppress(FormatError):
            read_control(Record(key=damaged[: len(key)], value=damaged[len(key) :]))
