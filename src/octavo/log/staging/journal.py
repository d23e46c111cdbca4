"""The journal of commits: which commit is pending, and which identities were committed.

It is the file `octavo-commits` in a data folder, and is replaced as a whole. Kafka takes no notice of it.

    magic:int32  crc:uint32  version:int16  Journal

The checksum, a CRC-32C, covers everything after it. The structures are written like those of Kafka's messages. The file
is not trusted: whatever cannot have been written here raises `CorruptFile`.

Of each application the last committed version is kept, so a query takes one entry however many commits it makes. There
are at most 10,000 entries: then the application that has not committed for the longest time is forgotten.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

import numpy as np

from octavo.errors import BadDirectory, CorruptFile, FormatError, InvalidInput
from octavo.log.files.small_file import read_small_file
from octavo.log.names import COMMIT_JOURNAL, TopicPartition
from octavo.log.staging.area import MAX_APPLICATION, CommitIdentity, is_staged_name
from octavo.log.storage import Storage
from octavo.records.checksum import crc32c
from octavo.records.layout import MAX_INT64, Int16, Int32, Layout, UInt32
from octavo.schemas.entity import entity, kafka, read_entity, write_entity

MAX_APPLICATIONS: Final = 10_000

_MAGIC: Final = int.from_bytes(b"8vo\n")
_VERSION: Final = 0
_MAX_SIZE: Final = 64 << 20  # room for two million pieces
_WHAT_TO_DO: Final = (
    "restore the file from a copy, or remove it: then a pending commit is given up, and commits that are repeated are "
    "appended again"
)


class JournalHeader(NamedTuple):
    """The beginning of the file."""

    magic: Int32
    crc: UInt32  # of everything after it
    version: Int16


HEADER: Final = Layout(JournalHeader)
assert HEADER.size == 10
_COVERED_FROM: Final = HEADER.at("version")


class Piece(NamedTuple):
    """Batches in a staged file."""

    file: int  # index in `PendingCommit.files`
    position: int
    size: int


_PIECE_SIZE: Final = 8 * len(Piece._fields)


@entity
class Application:
    """The last commit of an application."""

    name: str = kafka("string")
    version: int = kafka("int64")
    committed_ms: int = kafka("int64")


@entity
class PendingPartition:
    """What a pending commit appends to one partition."""

    topic: str = kafka("string")
    topic_id: UUID = kafka("uuid")  # another topic may get the name
    partition: int = kafka("int32")
    base_offset: int = kafka("int64")  # of the first batch, if nothing else is appended meanwhile
    digest: int = kafka("int64")  # of the batches (`Window.digest`): the files must be those that were checked
    packed_pieces: bytes = kafka("bytes")  # three int64 for each `Piece`

    @property
    def of(self) -> TopicPartition:
        """The topic and the number of the partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def pieces(self) -> list[Piece]:
        """The batches, in their order."""
        return [
            Piece(*row) for row in np.frombuffer(self.packed_pieces, ">i8").reshape(-1, len(Piece._fields)).tolist()
        ]


@entity
class PendingCommit:
    """A commit that is decided and not finished."""

    application: str = kafka("string")  # empty: it has no identity
    version: int = kafka("int64")
    committed_ms: int = kafka("int64")
    keep_offsets: bool = kafka("bool")
    staging: str = kafka("string")  # the folder of the files, absolute or relative to that of the journal
    files: tuple[str, ...] = kafka("[]string")
    partitions: tuple[PendingPartition, ...] = kafka("[]")


@entity
class Journal:
    """The contents of the file."""

    applications: tuple[Application, ...] = kafka("[]")  # the last to commit comes last
    pending_commits: tuple[PendingCommit, ...] = kafka("[]")  # none or one

    @property
    def pending(self) -> PendingCommit | None:
        """The pending commit, if there is one."""
        return self.pending_commits[0] if self.pending_commits else None

    def has(self, identity: CommitIdentity) -> bool:
        """Return whether the identity, or a later version of the application, was committed."""
        return any(each.name == identity.application and each.version >= identity.version for each in self.applications)

    def with_pending(self, pending: PendingCommit | None) -> Journal:
        """Return the journal with this commit as the pending one."""
        return replace(self, pending_commits=() if pending is None else (pending,))

    def with_committed(self, pending: PendingCommit) -> Journal:
        """Return the journal after this commit, with nothing pending."""
        if not pending.application:
            return self.with_pending(None)
        others = [each for each in self.applications if each.name != pending.application]
        last = Application(name=pending.application, version=pending.version, committed_ms=pending.committed_ms)
        return Journal(applications=(*others, last)[-MAX_APPLICATIONS:], pending_commits=())


EMPTY: Final = Journal(applications=(), pending_commits=())


def pack_pieces(pieces: list[Piece]) -> bytes:
    """Return the pieces in the form that the journal has."""
    return np.array(pieces, ">i8").tobytes()


def journal_path(folders: list[Path]) -> Path:
    """Return the path of the journal of a data directory, whether it exists or not. Raises `BadDirectory`."""
    found = [folder / COMMIT_JOURNAL for folder in folders if (folder / COMMIT_JOURNAL).exists()]
    if len(found) > 1:
        raise BadDirectory(found[0], f"there is another such file, {found[1]}: move away the one that does not belong")
    return found[0] if found else folders[0] / COMMIT_JOURNAL


def read_journal(storage: Storage, path: Path) -> Journal:
    """Read the journal. Raises `CorruptFile`, and `BadDirectory` if it is not a file."""
    try:
        data = read_small_file(storage, path, _MAX_SIZE)
    except FileNotFoundError:
        return EMPTY
    try:
        header = HEADER.read(data)
        if header.magic != _MAGIC or header.crc != crc32c(data[_COVERED_FROM:]):
            raise FormatError(0, "this is not what was written")
        if header.version != _VERSION:
            raise CorruptFile(
                path, _COVERED_FROM, f"version {header.version} of this journal is that of a later Octavo"
            )
        journal, end = read_entity(Journal, data, HEADER.size, _VERSION)
        problem = "there is more behind the journal" if end != len(data) else _problem(journal)
        if problem is not None:
            raise FormatError(end, problem)
    except CorruptFile:
        raise
    except FormatError as error:
        raise CorruptFile(path, error.position, f"{error.rule}: {_WHAT_TO_DO}") from None
    return journal


def write_journal(storage: Storage, path: Path, journal: Journal) -> None:
    """Replace the journal. It is on the disk when this returns. Raises `InvalidInput` if it would be too large."""
    covered = _VERSION.to_bytes(2) + write_entity(journal, _VERSION)
    data = HEADER.write(JournalHeader(_MAGIC, crc32c(covered), _VERSION))[:_COVERED_FROM] + covered
    if len(data) > _MAX_SIZE:
        raise InvalidInput(f"the journal of this commit would take {len(data):,} bytes: stage it in fewer pieces")
    storage.replace_file(path, data)


def _problem(journal: Journal) -> str | None:
    """Return what cannot be in a journal, though its bytes are in order; None if there is nothing."""
    names = Counter(each.name for each in journal.applications)
    if len(names) < len(journal.applications) or len(names) > MAX_APPLICATIONS:
        return "an application is in it twice, or there are too many"
    if any(not 0 < len(each.name.encode()) <= MAX_APPLICATION or each.version < 0 for each in journal.applications):
        return "an application has no name, too long a one, or a version below 0"
    if len(journal.pending_commits) > 1:
        return "two commits are pending"
    return None if journal.pending is None else _problem_of(journal.pending)


def _problem_of(pending: PendingCommit) -> str | None:
    if "\0" in pending.staging or not all(map(is_staged_name, pending.files)) or pending.version < 0:
        return "the pending commit has files that are no staged files, or a version below 0"
    if len({each.of for each in pending.partitions}) < len(pending.partitions):
        return "the pending commit has a partition twice"
    for each in pending.partitions:
        if each.of.problem is not None or each.base_offset < 0 or each.digest < 0:
            return "the pending commit has a partition that cannot be"
        if not each.packed_pieces or len(each.packed_pieces) % _PIECE_SIZE:
            return "the pieces of a partition are cut"
        if not all(_is_possible(piece, len(pending.files)) for piece in each.pieces):
            return "a piece of a partition is in no file, or at no place in it"
    return None


def _is_possible(piece: Piece, files: int) -> bool:
    return 0 <= piece.file < files and 0 <= piece.position <= MAX_INT64 - piece.size and piece.size > 0
