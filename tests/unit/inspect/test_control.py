"""What control records say, where no golden file has it."""

from __future__ import annotations

from uuid import UUID

from octavo.inspect.control import control_content
from octavo.records.control import LeaderChange, QuorumVoter, UnknownControl

DIRECTORY = UUID(bytes=b"the-first-voter.")


def test_directories_are_told_from_the_version_on_that_stores_them() -> None:
    voter = QuorumVoter(id=1, directory_id=DIRECTORY)
    assert control_content(LeaderChange(leader_id=1, voters=(voter,), version=1)) == {
        "type": "LEADER_CHANGE",
        "version": 1,
        "leaderId": 1,
        "voters": [{"voterId": 1, "voterDirectoryId": "dGhlLWZpcnN0LXZvdGVyLg"}],
        "grantingVoters": [],
    }
    old = control_content(LeaderChange(leader_id=1, voters=(QuorumVoter(id=1),)))
    assert old["voters"] == [{"voterId": 1}]


def test_an_unknown_type_is_told_by_its_number() -> None:
    assert control_content(UnknownControl(type_id=99, value=None)) == {"type": "UNKNOWN", "typeId": 99}
