"""What the journal of commits remembers, and how large it gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from octavo.errors import InvalidInput
from octavo.log import CommitIdentity
from octavo.log.staging.journal import (
    EMPTY,
    MAX_APPLICATIONS,
    Application,
    Journal,
    PendingCommit,
    PendingPartition,
    Piece,
    pack_pieces,
    read_journal,
    write_journal,
)
from octavo.log.storage import DISK
from octavo.schemas.primitives import NO_UUID
from tests.unit.log.staging.staged import ONE


def pending(application: str, version: int, pieces: int = 1) -> PendingCommit:
    partition = PendingPartition(
        topic=ONE.topic,
        topic_id=NO_UUID,
        partition=ONE.partition,
        base_offset=7,
        digest=1,
        packed_pieces=pack_pieces([Piece(0, number, 1) for number in range(pieces)]),
    )
    return PendingCommit(
        application=application,
        version=version,
        committed_ms=5,
        keep_offsets=False,
        staging="../.data.staging",
        files=(f"octavo-{'0' * 16}-{'1' * 16}-{version}-{'2' * 32}.staged",),
        partitions=(partition,),
    )


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "octavo-commits"
    assert read_journal(DISK, path) == EMPTY
    for journal in (EMPTY, EMPTY.with_committed(pending("a", 1)).with_pending(pending("b", 2))):
        write_journal(DISK, path, journal)
        assert read_journal(DISK, path) == journal
    commit = journal.pending
    assert commit is not None
    assert commit.partitions[0].pieces == [Piece(0, 0, 1)]
    assert commit.partitions[0].of == ONE


def test_a_million_commits_of_a_query_take_one_entry(tmp_path: Path) -> None:
    journal = EMPTY
    for version in (0, 1, 2, 999_999):
        journal = journal.with_committed(pending("query", version))
    assert [(each.name, each.version) for each in journal.applications] == [("query", 999_999)]
    assert journal.has(CommitIdentity("query", 999_999))
    assert not journal.has(CommitIdentity("query", 1_000_000))
    assert not journal.has(CommitIdentity("another", 0))
    write_journal(DISK, tmp_path / "octavo-commits", journal)
    assert (tmp_path / "octavo-commits").stat().st_size < 100


def test_the_application_that_has_not_committed_for_the_longest_time_is_forgotten(tmp_path: Path) -> None:
    names = [f"{number:0>36}" for number in range(MAX_APPLICATIONS)]
    applications = tuple(Application(name=name, version=1, committed_ms=5) for name in names)
    journal = Journal(applications=applications, pending_commits=())
    journal = journal.with_committed(pending(names[0], 2))  # it commits again
    assert len(journal.applications) == MAX_APPLICATIONS
    journal = journal.with_committed(pending("a new one", 0))
    assert len(journal.applications) == MAX_APPLICATIONS
    assert journal.has(CommitIdentity(names[0], 2))
    assert not journal.has(CommitIdentity(names[1], 0))
    assert journal.has(CommitIdentity(names[2], 0))
    write_journal(DISK, tmp_path / "octavo-commits", journal)
    assert (tmp_path / "octavo-commits").stat().st_size < 600_000
    assert read_journal(DISK, tmp_path / "octavo-commits") == journal


def test_a_commit_without_identity_leaves_nothing() -> None:
    assert EMPTY.with_pending(pending("", 0)).with_committed(pending("", 0)) == EMPTY


def test_a_commit_in_too_many_pieces_is_refused_before_it_is_decided(tmp_path: Path) -> None:
    commit = pending("a", 1)
    huge = replace(commit, partitions=(replace(commit.partitions[0], packed_pieces=bytes(64 << 20)),))
    with pytest.raises(InvalidInput, match="fewer pieces"):
        write_journal(DISK, tmp_path / "octavo-commits", EMPTY.with_pending(huge))
    assert not list(tmp_path.iterdir())
