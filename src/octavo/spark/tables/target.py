"""What a table format has to do, so that logs can be exported to it: `Target`.

An export goes in rounds, and each round calls

    progress        how far the table has come
    begin           a round begins: get the place where the tasks write files
    commit          add the files to the table and note the progress, both or neither

or `abandon` in place of `commit`, if the round failed. Merging small files is a round, too, with `replace` in place of
`commit`. If the process dies in a round, the next one that opens the table finishes the commit, or nothing of the round
remains in the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Final, Self

from octavo.errors import BadTable
from octavo.spark.tables.progress import Progress
from octavo.spark.tables.written import WrittenFile

if TYPE_CHECKING:
    import pyarrow as pa

    from octavo.spark.tables.place import FilePlace

PARTITIONED_BY: Final = ("topic", "day")


class Target(ABC):
    """A table that logs are exported to, open in the driver's process. A context manager."""

    format: ClassVar[str]

    @abstractmethod
    def schema(self) -> pa.Schema | None:
        """Return all columns of the table, `topic` and `day` included; None if the table does not exist yet."""

    @abstractmethod
    def create(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Create the table, partitioned by `PARTITIONED_BY`. Raises `ExportConflict` if another was faster."""

    @abstractmethod
    def properties(self) -> dict[str, str]:
        """Return our own notes about the table, as they were given to `create` or `add_columns`."""

    @abstractmethod
    def add_columns(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Add the columns of `schema` that the table does not have, and replace our notes.

        Rows that are in the table already have null in the new columns. Raises `ExportConflict`.
        """

    @abstractmethod
    def progress(self) -> Progress:
        """Return how far the table has come, in the snapshot that the next commit is based on."""

    def set_back(self) -> BadTable | None:
        """Return an error if the table was set back to an earlier state since the last export; None if it was not.

        That takes rows away, but leaves the progress as it is.
        """
        return None

    @abstractmethod
    def begin(self, before: Progress, after: Progress) -> FilePlace:
        """Begin a round, which exports what is between `before` and `after`. Return the place for its files.

        For a merge both are the same. Raises `ExportConflict` if the table is no longer at `before`.
        """

    @abstractmethod
    def commit(self, files: Sequence[WrittenFile], before: Progress, after: Progress) -> None:
        """Add the files to the table and note that it has come to `after`: both or neither.

        There may be no files, if there were only control records. Raises `ExportConflict` if the table is no longer at
        `before`, and then nothing was changed.
        """

    @abstractmethod
    def abandon(self, place: FilePlace) -> None:
        """Remove what the tasks of a failed round have written, as far as that is possible."""

    @abstractmethod
    def files(self) -> Iterable[WrittenFile]:
        """Return the data files of the table that an export wrote."""

    def small_files(self, below: int) -> Iterable[WrittenFile]:
        """Return the data files with fewer than so many bytes."""
        return (file for file in self.files() if file.size < below)

    @abstractmethod
    def replace(self, removed: Sequence[WrittenFile], added: Sequence[WrittenFile]) -> None:
        """Replace files by others with the same rows. Raises `ExportConflict`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the table. May be called more than once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
