"""Plain Parquet files as a table, on a local or shared file system: `ParquetTarget`.

Parquet files alone have no commit, so this one is made of renames. Tasks write to a staging folder. `round.json` then
says which files belong to the commit (see `octavo.spark.tables.parquet_state`): with that the commit is decided. The
files are renamed to their places one by one, and at last `table.json` says how far the table has come. If the process
dies after the decision, the next one to open the table finishes the renames; if it dies before, nothing was done.

Everything that is no data file is in the folder `_octavo`, which readers pass over. A reader that looks at any moment
finds each row at most once, and each file whole: a merge removes the old files before the new ones appear.

One process at a time has the table open: it holds the lock `_octavo/.lock`.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Self

from octavo.errors import BadTable, DirectoryLocked, ExportConflict, InvalidInput
from octavo.log.names import LOCK
from octavo.log.ownership.lock import DirectoryLock
from octavo.log.storage import DISK, Storage
from octavo.spark.files import Root
from octavo.spark.tables.footers import read_footers
from octavo.spark.tables.parquet_state import FOLDER, ROUND, STAGING, TABLE, Round, TableState, read_round, read_table
from octavo.spark.tables.place import FilePlace, staged_name
from octavo.spark.tables.progress import Progress
from octavo.spark.tables.target import Target
from octavo.spark.tables.written import SUFFIX, WrittenFile, parse_path

if TYPE_CHECKING:
    import pyarrow as pa

_NOT_OPEN: Final = "the table is not open any more"


class ParquetTarget(Target):
    """A folder of Parquet files. Only one process at a time can have it open."""

    format: ClassVar[str] = "parquet"

    def __init__(self, root: Path, lock: DirectoryLock, storage: Storage, sync: bool, made: Sequence[Path]) -> None:
        """Do not call this; use `open`."""
        self._root: Final = root
        self._made: Final = made  # folders that were missing, the innermost first
        self._own: Final = root / FOLDER
        self._lock: Final = lock
        self._storage: Final = storage
        self._sync: Final = sync
        self._state: TableState | None = None
        self._round: Round | None = None
        self._is_open = True

    @classmethod
    def open(cls, address: str, options: Mapping[str, str] | None = None, *, storage: Storage = DISK) -> ParquetTarget:
        """Open the table, and finish or drop what an earlier process left unfinished.

        Makes the folder if it is missing, but no table in it yet; if none is created, `close` removes the folder. The
        only option is `sync`, whether a power cut may take nothing that was committed: true (if not given) or false.

        Raises `ExportConflict` if another process has it open, `BadTable` if the folder has other things in it, or what
        was left cannot be finished, and `InvalidInput` for wrong options.
        """
        sync = _read_sync(options or {})
        root = Root(address.removeprefix("file://"))
        if not root.is_local:
            raise InvalidInput(
                "plain Parquet is exported to a local or shared file system, because it needs renames: use the format "
                "delta or iceberg"
            )
        folder = Path(root.address).expanduser().absolute()
        made = _make_folders(storage, folder)
        try:
            lock = DirectoryLock.acquire(folder / FOLDER, storage)
        except DirectoryLocked as error:
            raise ExportConflict(folder, _in_use(error.pid)) from None
        target = cls(folder, lock, storage, sync, made)
        try:
            target._recover()
        except BaseException:
            target.close()
            raise
        return target

    # -------------------------------------------------------------------------------------------------------- the table

    def schema(self) -> pa.Schema | None:
        """Return all columns of the table; None if there is no table yet."""
        return None if self._state is None else self._state.schema

    def properties(self) -> dict[str, str]:
        """Return our own notes about the table."""
        return {} if self._state is None else dict(self._state.properties)

    def progress(self) -> Progress:
        """Return how far the table has come."""
        return Progress() if self._state is None else self._state.progress

    def create(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Create the table. Raises `ExportConflict` if it exists."""
        if self._state is not None:
            raise ExportConflict(self._root, "the table exists already")
        self._write_state(TableState(version=0, schema=schema, properties=dict(properties), progress=Progress()))

    def add_columns(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Add columns, which readers find in new files alone. Readers have to be told to take all columns."""
        state = self._opened()
        new = [field for field in schema if field.name not in state.schema.names]
        wider = _with_day_last([*state.schema, *new])
        self._write_state(replace(state, schema=wider, properties=dict(properties)))

    def files(self) -> Iterable[WrittenFile]:
        """Return the data files. Reads the footer of each."""
        return read_footers(self._root, [path for path, _ in self.paths()])

    def small_files(self, below: int) -> Iterable[WrittenFile]:
        """Return the data files with fewer than so many bytes. Reads their footers alone."""
        return read_footers(self._root, [path for path, size in self.paths() if size < below])

    def paths(self) -> Iterator[tuple[str, int]]:
        """Return the paths of all data files, relative to the table, with their sizes."""
        for topic in _folders(self._root, "topic="):
            for day in _folders(topic, "day="):
                for name in sorted(entry.name for entry in os.scandir(day) if entry.name.endswith(SUFFIX)):
                    path = f"{topic.name}/{day.name}/{name}"
                    if parse_path(path) is not None:
                        yield path, (day / name).stat().st_size

    # ----------------------------------------------------------------------------------------------------------- rounds

    def begin(self, before: Progress, after: Progress) -> FilePlace:
        """Write the plan down, and make the folder for the files of its tasks."""
        self._check(before)
        staging = uuid.uuid4().hex
        version = self._opened().version + 1
        round_ = Round(version=version, staging=staging, is_decided=False, before=before, after=after)
        self._storage.replace_file(self._own / ROUND, round_.to_json())
        self._storage.make_folder(self._own / STAGING / staging)
        if self._sync:
            self._storage.sync_folder(self._own / STAGING)
        self._round = round_
        storage = None if self._storage is DISK else self._storage
        return FilePlace(
            root=Root(str(self._root)),
            staging=f"{FOLDER}/{STAGING}/{staging}",
            sync=self._sync,
            storage=storage,
        )

    def commit(self, files: Sequence[WrittenFile], before: Progress, after: Progress) -> None:
        """Publish the files of the tasks, all or none, and note the progress."""
        self._check(before)
        self._decide(added=files, removed=[], after=after)

    def replace(self, removed: Sequence[WrittenFile], added: Sequence[WrittenFile]) -> None:
        """Remove files, and publish others with the same rows. Readers meanwhile may miss rows, but find none twice."""
        self._decide(added=added, removed=[file.path for file in removed], after=self.progress())

    def abandon(self, place: FilePlace) -> None:
        """Drop the plan and what its tasks have written."""
        if self._is_open and self._round is not None and not self._round.is_decided:
            with contextlib.suppress(OSError):  # what is left is dropped when the table is opened next
                self._drop_round()

    def _decide(self, *, added: Sequence[WrittenFile], removed: list[str], after: Progress) -> None:
        planned = self._round
        if planned is None or planned.is_decided:
            raise ExportConflict(self._root, "there is no plan that could be committed")
        if self._sync:
            self._storage.sync_folder(self._own / STAGING / planned.staging)
        decided = replace(planned, is_decided=True, after=after, added=list(added), removed=removed)
        self._lock.check_lock()
        self._is_open = False  # unless all goes well: what is on the disk is for the next process to find out
        try:
            self._storage.replace_file(self._own / ROUND, decided.to_json())
            self._carry_out(decided)
        except BaseException as error:
            error.add_note("if the commit was decided, it will be finished when the table is opened next")
            raise
        self._is_open = True

    # --------------------------------------------------------------------------------------------------------- recovery

    def _recover(self) -> None:
        self._state = read_table(self._storage, self._own / TABLE)
        found = read_round(self._storage, self._own / ROUND)
        if found is not None and self._state is not None and found.is_decided and found.version > self._state.version:
            self._carry_out(found)
        else:
            self._drop_round()

    def _carry_out(self, decided: Round) -> None:
        """Do what was decided. Whatever of it was done before is left as it is."""
        state = self._opened()
        for path in decided.removed:
            with contextlib.suppress(FileNotFoundError):
                self._storage.remove(self._root / path)
        if decided.removed:  # before the new ones appear: no row may ever be there twice
            self._sync_folders(decided.removed)
        self._make_folders_of(decided.added)
        for file in decided.added:
            self._publish(decided.staging, file)
        self._sync_folders([file.path for file in decided.added])
        self._write_state(replace(state, version=decided.version, progress=decided.after))
        with contextlib.suppress(OSError):  # it is committed; what is left is dropped when the table is opened next
            self._drop_round()

    def _make_folders_of(self, files: Iterable[WrittenFile]) -> None:
        """Make the folders of topics and days. They are on the disk before a file is renamed into them."""
        days = {(self._root / file.path).parent: None for file in files}
        for folders in ({day.parent: None for day in days}, days):
            new = [folder for folder in folders if not self._storage.is_folder(folder)]
            for folder in new:
                self._storage.make_folder(folder)
            if self._sync:
                self._storage.sync_folders({folder.parent: None for folder in new})

    def _publish(self, staging: str, file: WrittenFile) -> None:
        staged = self._own / STAGING / staging / staged_name(file.path)
        final = self._root / file.path
        try:
            self._storage.rename(staged, final)
        except FileNotFoundError:
            try:
                size = self._storage.status(final).size
            except FileNotFoundError:
                size = -1
            if size != file.size:
                problem = f"the commit that was decided cannot be finished: its file {staged} is missing"
                raise BadTable(self._own / ROUND, problem) from None

    def _sync_folders(self, paths: Iterable[str]) -> None:
        if self._sync:
            days = {(self._root / path).parent: None for path in paths}
            folders = [*days, *{day.parent: None for day in days}, self._root]
            self._storage.sync_folders([folder for folder in folders if self._storage.is_folder(folder)])

    def _drop_round(self) -> None:
        """Remove `round.json`, and all staged files that nobody is writing any more."""
        self._round = None
        with contextlib.suppress(FileNotFoundError):
            self._storage.remove(self._own / ROUND)
        staging = self._own / STAGING
        if not self._storage.is_folder(staging):
            self._storage.make_folder(staging)
        for name in self._storage.files(staging, ""):
            with contextlib.suppress(OSError):  # a worker can outlive its driver and still write: dropped the next time
                self._remove_staged(staging / name)

    def _remove_staged(self, folder: Path) -> None:
        for name in self._storage.files(folder, ""):
            with contextlib.suppress(FileNotFoundError):  # a task that was given up removes its own files
                self._storage.remove(folder / name)
        self._storage.remove_folder(folder)

    # ----------------------------------------------------------------------------------------------------------- inside

    def _opened(self) -> TableState:
        if not self._is_open and self._state is None:
            raise ExportConflict(self._root, _NOT_OPEN)
        if self._state is None:
            raise BadTable(self._root, "there is no table yet")
        return self._state

    def _check(self, before: Progress) -> None:
        if not self._is_open:
            raise ExportConflict(self._root, _NOT_OPEN)
        if self.progress() != before:
            raise ExportConflict(self._root, "the table has come further meanwhile")
        self._lock.check_lock()

    def _write_state(self, state: TableState) -> None:
        self._storage.replace_file(self._own / TABLE, state.to_json())
        self._state = state

    def close(self) -> None:
        """Let go of the table."""
        if self._is_open and self._state is None and self._made:
            with contextlib.suppress(OSError):
                self._remove_made()
        self._is_open = False
        self._lock.release()

    def _remove_made(self) -> None:
        """Remove the folders that `open` has made, the lock in them included, as nothing else is in them."""
        self._lock.check_lock()
        self._storage.remove_folder(self._own / STAGING)
        self._storage.remove(self._own / LOCK)
        for folder in self._made:
            self._storage.remove_folder(folder)

    def __enter__(self) -> Self:
        return self


def _read_sync(options: Mapping[str, str]) -> bool:
    for name, value in options.items():
        if name.lower() != "sync" or value.lower() not in ("true", "false"):
            raise InvalidInput(f"plain Parquet has one option, sync, which is true or false; not {name}={value}")
    return all(value.lower() == "true" for value in options.values())


def _make_folders(storage: Storage, folder: Path) -> list[Path]:
    """Make the folder of a table, and that for our own files. Raises `BadTable` if there are other things in it.

    Returns the folders that were missing, the innermost first.
    """
    missing = [each for each in (folder, *folder.parents) if not storage.is_folder(each)]
    for each in reversed(missing):
        storage.make_folder(each)
    if storage.is_folder(folder / FOLDER):
        return []
    if not missing and any(folder.iterdir()):
        raise BadTable(folder, "the folder is not empty, and what is in it was not exported: give a new one")
    storage.make_folder(folder / FOLDER)
    storage.sync_folders([folder, *(each.parent for each in missing)])
    return [folder / FOLDER, *missing]


def _folders(folder: Path, prefix: str) -> list[Path]:
    return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.name.startswith(prefix) and entry.is_dir())


def _in_use(pid: int | None) -> str:
    owner = "another process" if pid is None else f"process {pid}"
    return f"{owner} is exporting to this table, and only one can at a time"


def _with_day_last(fields: Sequence[pa.Field]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema(sorted(fields, key=lambda field: field.name == "day"))
