"""What Delta and Iceberg have in common: tasks write files under their final names, and a library commits them.

Nothing refers to the files before the commit. What a round that failed has left stays unseen until Delta's VACUUM or
Iceberg's remove_orphan_files takes it away: nobody else can tell such files from those of an export that is running.

A commit can fail although it was done: the answer got lost on the way, or something after it failed. So after an error
the table is read again, and what is in it decides.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from octavo.errors import BadTable, ExportConflict, InvalidInput, OctavoError, TableError
from octavo.log.storage import DISK
from octavo.spark.tables.addresses import TableAddress
from octavo.spark.tables.place import FilePlace
from octavo.spark.tables.progress import Progress
from octavo.spark.tables.target import Target
from octavo.spark.tables.written import WrittenFile

NOTES: Final = "octavo.notes"  # the property of the table with our notes; a table without it is not ours


class LakeTarget(Target):
    """A table to which a library commits."""

    has_partition_columns: ClassVar[bool]
    lost: ClassVar[tuple[type[Exception], ...]] = ()  # errors after which the commit is certainly not in the table

    def __init__(self, address: TableAddress) -> None:
        self.address: Final = address
        self._place: Final = FilePlace(root=address.root, has_partition_columns=self.has_partition_columns)

    @abstractmethod
    def _create(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Create the table. Raises `ExportConflict` if another was faster."""

    @abstractmethod
    def _add_columns(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Add columns in the newest snapshot, and replace our notes with that or after it. Raises `ExportConflict`."""

    @abstractmethod
    def _read(self) -> Progress:
        """Load the newest snapshot, on which the next commit is based, and return its progress."""

    @abstractmethod
    def _commit(self, files: Sequence[WrittenFile], before: Progress, after: Progress) -> None:
        """Commit on the loaded snapshot. Fails if another export was committed since."""

    @abstractmethod
    def _replace(self, removed: Sequence[WrittenFile], added: Sequence[WrittenFile]) -> None:
        """Replace files on the loaded snapshot. Fails if one of them is no longer in the table."""

    @abstractmethod
    def _paths(self) -> Collection[str]:
        """Return the paths of the files in the loaded snapshot."""

    def create(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Create the table. Raises `ExportConflict` if another was faster."""
        with library_errors(self.address):
            self._create(schema, properties)

    def add_columns(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Add the columns that are missing, and replace our notes. Raises `ExportConflict`."""
        with library_errors(self.address):
            self._add_columns(schema, properties)

    def begin(self, before: Progress, after: Progress) -> FilePlace:
        """Begin a round. Return the place for its files, which get their final names at once."""
        if self.progress() != before:
            raise self._conflict("another export was faster")
        return self._place

    def abandon(self, place: FilePlace) -> None:
        """Do nothing: nothing refers to the files of a failed round."""

    def progress(self) -> Progress:
        """Return how far the table has come, in its newest snapshot."""
        with library_errors(self.address):
            return self._read()

    @abstractmethod
    def _set_back(self) -> str | None:
        """Return to what the loaded snapshot was set back since the last export; None if it was not."""

    def set_back(self) -> BadTable | None:
        """Return an error if a RESTORE or a rollback has taken rows away since the last export."""
        with library_errors(self.address):
            to = self._set_back()
        if to is None:
            return None
        problem = (
            f"the table was set back to {to} after the last export, and rows that this took away are not exported "
            "again: export to a new table, or go on without them by failOnDataLoss = false"
        )
        return BadTable(str(self.address), problem)

    def commit(self, files: Sequence[WrittenFile], before: Progress, after: Progress) -> None:
        """Add the files and note the progress in one commit of the table. Raises `ExportConflict`."""
        with library_errors(self.address):
            self._commit_or_settle(files, before, after)

    def _commit_or_settle(self, files: Sequence[WrittenFile], before: Progress, after: Progress) -> None:
        if self._read() != before:
            self._discard(files)
            raise self._conflict("another export was faster")
        self._sync_names(files)
        try:
            self._commit(files, before, after)
        except Exception as error:
            if self._was_committed(files, after, error):
                return
            changed = self._read() != before
            if changed or isinstance(error, self.lost):
                self._discard(files)
                raise self._conflict("another export or a change of the table was faster") from error
            raise

    def replace(self, removed: Sequence[WrittenFile], added: Sequence[WrittenFile]) -> None:
        """Replace files by others with the same rows in one commit of the table. Raises `ExportConflict`."""
        with library_errors(self.address):
            self._replace_or_settle(removed, added)

    def _replace_or_settle(self, removed: Sequence[WrittenFile], added: Sequence[WrittenFile]) -> None:
        progress = self._read()
        # `files` has none from which rows were deleted, which the merged one would bring back
        missing = {file.path for file in removed}.difference(file.path for file in self.files())
        if missing:
            self._discard(added)
            raise self._conflict(f"{min(missing)} is no longer in the table, so it cannot be merged with others")
        self._sync_names(added)
        try:
            self._replace(removed, added)
        except Exception as error:
            if self._was_committed(added, progress, error):
                return
            if isinstance(error, self.lost):
                self._discard(added)
                raise self._conflict("files that were to be merged were changed meanwhile") from error
            raise

    def close(self) -> None:
        """Let go of the table. May be called more than once."""

    def _conflict(self, problem: str) -> ExportConflict:
        return ExportConflict(str(self.address), f"{problem}; nothing was added, and a new attempt may succeed")

    def _was_committed(self, files: Sequence[WrittenFile], after: Progress, error: Exception) -> bool:
        """Whether the table holds what a commit that failed was to add. Raises `error` if nobody can tell."""
        try:
            return self._read() == after and {file.path for file in files} <= set(self._paths())
        except Exception:
            raise error from None

    def _discard(self, files: Sequence[WrittenFile]) -> None:
        """Remove files that are not in the table and never will be."""
        kept = set(self._paths())
        for file in files:
            if file.path not in kept:
                self._place.remove(file.path)

    def _sync_names(self, files: Sequence[WrittenFile]) -> None:
        """Have the names of new local files on the disk before something refers to them."""
        if self.address.root.is_local:
            root = self.address.root.path()
            folders = {folder for file in files for folder in Path(file.path).parents}
            DISK.sync_folders(root / folder for folder in sorted(folders, reverse=True))

    def _own_notes(self, properties: Mapping[str, str]) -> dict[str, str]:
        """Return our notes from the properties of the table. Raises `BadTable` if it is not ours."""
        text = properties.get(NOTES)
        if text is None:
            raise BadTable(str(self.address), f"there is a {self.format} table that no export has made")
        try:
            notes: Any = json.loads(text)
        except ValueError:
            notes = None
        if not isinstance(notes, dict) or not all(isinstance(value, str) for value in notes.values()):
            raise BadTable(str(self.address), f"its property {NOTES} is not what an export writes")
        return notes


@contextmanager
def library_errors(address: TableAddress) -> Iterator[None]:
    """Raise errors of the libraries as `TableError`."""
    try:
        yield
    except (OctavoError, OSError):
        raise
    except Exception as error:
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise TableError(str(address), f"its library says: {said}") from error


def write_notes(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the property of the table for our notes."""
    return {NOTES: json.dumps(dict(properties))}


def refuse_other_types(given: pa.Schema, stored: pa.Schema, format_name: str) -> None:
    """Raise `InvalidInput` for a column that would be stored with a type that does not hold the same values."""
    for field in given:
        if not _holds(stored.field(field.name).type, field.type):
            raise InvalidInput(f"a {format_name} table cannot have the column {field.name} of the type {field.type}")


def _holds(stored: pa.DataType, given: pa.DataType) -> bool:
    """Whether a type is the same as another, or the same with wider integers: Iceberg has none with 8 or 16 bits."""
    if pa.types.is_signed_integer(stored) and pa.types.is_signed_integer(given):
        return bool(stored.bit_width >= given.bit_width)
    if stored.id != given.id:
        return False
    if pa.types.is_struct(given):
        inner = zip(stored, given, strict=False)
        names = [[field.name for field in each] for each in (stored, given)]
        return names[0] == names[1] and all(_holds(field.type, other.type) for field, other in inner)
    if pa.types.is_list(given):
        return _holds(stored.value_type, given.value_type)
    if pa.types.is_map(given):
        return _holds(stored.key_type, given.key_type) and _holds(stored.item_type, given.item_type)
    return bool(stored == given)
