"""A journal of commits and staged files that are damaged, or forged: an error, and nothing is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from octavo.errors import BadDirectory, CommitUnresolved, CorruptFile, OctavoError
from octavo.log import DataDirectory
from octavo.log.staging.commits import StagedCommits
from octavo.log.staging.journal import EMPTY, Journal, PendingCommit, Piece, pack_pieces, read_journal, write_journal
from octavo.log.storage import DISK
from octavo.records.checksum import crc32c
from tests.unit.log.directories import look
from tests.unit.log.staging.staged import ONE, TWO, area_of, batches, commit, commit_and_die, found

TASKS: Final = ({ONE: batches(1, 2, 3), TWO: batches(4)}, {ONE: batches(5), TWO: batches(6, 7)})
DONE: Final = {ONE: [0, 1, 2, 3, 5], TWO: [4, 6, 7]}
BATCH_SIZE: Final = len(batches(1)[0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory in which a commit is pending, half of it appended."""
    folder = tmp_path / "data"
    commit(folder, {ONE: batches(0)}, application="before")
    commit_and_die(folder, 2, *TASKS)
    return folder


def test_every_byte_of_the_journal_and_every_length_counts(folder: Path) -> None:
    path = folder / "octavo-commits"
    sound = path.read_bytes()
    whole = read_journal(DISK, path)
    random = Random(1)
    for position in range(len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= random.randrange(1, 256)
        path.write_bytes(damaged)
        with pytest.raises(CorruptFile, match="octavo-commits"):
            read_journal(DISK, path)
        path.write_bytes(sound[:position])
        with pytest.raises(CorruptFile):
            read_journal(DISK, path)
    for more in (sound + b"\0", b"\0" * len(sound)):
        path.write_bytes(more)
        with pytest.raises(CorruptFile):
            read_journal(DISK, path)
    path.write_bytes(sound)
    assert read_journal(DISK, path) == whole


def test_a_damaged_journal_keeps_the_directory_as_it_is(folder: Path) -> None:
    path = folder / "octavo-commits"
    sound = path.read_bytes()
    path.write_bytes(sound[:-1])
    before = look(folder.parent)
    with pytest.raises(CorruptFile, match="restore the file from a copy, or remove it"):
        DataDirectory.open(folder)
    assert look(folder.parent).keys() == before.keys()
    assert found(folder)[TWO] == []
    path.write_bytes(sound)
    DataDirectory.open(folder).close()
    assert found(folder) == DONE


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("/dev/null")])
def test_a_journal_that_is_no_file_is_refused(folder: Path, make: Any) -> None:
    (folder / "octavo-commits").unlink()
    make(folder / "octavo-commits")
    with pytest.raises(BadDirectory):
        DataDirectory.open(folder)


def test_every_byte_of_a_staged_file_counts(folder: Path) -> None:
    """But for those that a commit assigns anew: base offset and leader epoch."""
    commits = StagedCommits([folder], DISK)
    harmless = set()
    for path in sorted(area_of(folder).folder.iterdir()):
        sound = path.read_bytes()
        for position in range(len(sound)):
            damaged = bytearray(sound)
            damaged[position] ^= 1 << position % 8
            path.write_bytes(damaged)
            try:
                commits.check()
                harmless.add(position % BATCH_SIZE)
            except CommitUnresolved:
                pass
            path.write_bytes(sound[:position])
            with pytest.raises(CommitUnresolved):
                commits.check()
        path.write_bytes(sound)
    assert harmless == {*range(8), *range(12, 16)}
    commits.check()


def test_a_journal_of_a_later_version_is_left_alone(folder: Path) -> None:
    path = folder / "octavo-commits"
    data = bytearray(path.read_bytes())
    data[8:10] = (1).to_bytes(2)
    data[4:8] = crc32c(data[8:]).to_bytes(4)
    path.write_bytes(data)
    with pytest.raises(CorruptFile, match="version 1 of this journal is that of a later Octavo"):
        DataDirectory.open(folder)


# ------------------------------------------------------------------------------------------------------------ forgery


def forge(folder: Path, **fields: Any) -> None:
    """Give the pending commit other fields, with a right checksum."""
    path = folder / "octavo-commits"
    journal = read_journal(DISK, path)
    assert journal.pending is not None
    write_journal(DISK, path, journal.with_pending(replace(journal.pending, **fields)))


def pending(folder: Path) -> PendingCommit:
    found = read_journal(DISK, folder / "octavo-commits").pending
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "", "passwd", "octavo-commits"])
def test_a_journal_cannot_name_other_files(folder: Path, name: str) -> None:
    victim = folder.parent / "passwd"
    victim.write_bytes(b"root")
    files = pending(folder).files
    forge(folder, files=(name, *files[1:]))
    with pytest.raises(CorruptFile, match="no staged files"):
        DataDirectory.open(folder)
    assert victim.read_bytes() == b"root"
    assert all((area_of(folder).folder / each).exists() for each in files)


@pytest.mark.parametrize("staging", ["/etc", "../../../../../../etc", "..", "", "."])
def test_a_journal_that_names_another_folder_removes_nothing_there(folder: Path, staging: str) -> None:
    before = look(folder.parent).keys()
    forge(folder, staging=staging)
    with pytest.raises(CommitUnresolved):
        DataDirectory.open(folder)
    assert look(folder.parent).keys() == before


def test_a_file_that_is_a_link_loses_the_link_only(folder: Path) -> None:
    for path in area_of(folder).folder.iterdir():
        path.rename(folder.parent / path.name)
        path.symlink_to(folder.parent / path.name)
    DataDirectory.open(folder).close()
    assert found(folder) == DONE
    assert list(area_of(folder).folder.iterdir()) == []
    assert len(list(folder.parent.glob("*.staged"))) == 2


def test_pieces_that_cannot_be_are_refused(folder: Path) -> None:
    sound = (folder / "octavo-commits").read_bytes()
    commit = pending(folder)
    partition = commit.partitions[0]
    forged = [
        [Piece(2, 0, 130)],
        [Piece(-1, 0, 130)],
        [Piece(0, -1, 130)],
        [Piece(0, 0, 0)],
        [Piece(0, 0, -130)],
        [Piece(0, (1 << 63) - 1, 130)],
        [Piece(0, 0, (1 << 63) - 1)],
        [Piece(0, 1, 130)],
        [Piece(0, 0, 131)],
        [*partition.pieces, Piece(0, 0, 130)],
        [],
    ]
    for pieces in forged:
        (folder / "octavo-commits").write_bytes(sound)
        forge(folder, partitions=(replace(partition, packed_pieces=pack_pieces(pieces)), *commit.partitions[1:]))
        with pytest.raises((CorruptFile, CommitUnresolved)):
            DataDirectory.open(folder)
    (folder / "octavo-commits").write_bytes(sound)
    DataDirectory.open(folder).close()
    assert found(folder) == DONE


@pytest.mark.parametrize(
    "fields",
    [{"topic": "../t"}, {"topic": ""}, {"partition": -1}, {"base_offset": -1}, {"digest": -1}, {"packed_pieces": b"1"}],
)
def test_partitions_that_cannot_be_are_refused(folder: Path, fields: dict[str, Any]) -> None:
    partition, *rest = pending(folder).partitions
    forge(folder, partitions=(replace(partition, **fields), *rest))
    with pytest.raises(CorruptFile):
        DataDirectory.open(folder)


def test_journals_that_contradict_themselves_are_refused(folder: Path) -> None:
    path = folder / "octavo-commits"
    journal = read_journal(DISK, path)
    commit = pending(folder)
    application = journal.applications[0]
    forged = [
        replace(journal, pending_commits=(commit, commit)),
        journal.with_pending(replace(commit, partitions=commit.partitions * 2)),
        journal.with_pending(replace(commit, version=-1)),
        journal.with_pending(replace(commit, staging="a\0b")),
        replace(journal, applications=(application, application)),
        replace(journal, applications=(replace(application, name=""),)),
        replace(journal, applications=(replace(application, name="a" * 600),)),
        replace(journal, applications=(replace(application, version=-1),)),
        Journal(applications=tuple(replace(application, name=str(n)) for n in range(10_001)), pending_commits=()),
    ]
    for each in forged:
        write_journal(DISK, path, each)
        with pytest.raises(OctavoError):
            read_journal(DISK, path)
    write_journal(DISK, path, EMPTY)
    DataDirectory.open(folder).close()
