"""The folder in which staged files wait for their commit: `StagingArea`."""

from __future__ import annotations

import contextlib
import hashlib
import re
import uuid
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from octavo.errors import InvalidInput
from octavo.log.clock import NS_PER_MS
from octavo.log.names import META_PROPERTIES
from octavo.log.partition_folders import Paths, folder_paths
from octavo.log.storage import Storage
from octavo.records.layout import MAX_INT64

LEFTOVER_MS: Final = 24 * 60 * 60 * 1000  # staged files of others that are older than this are removed
MAX_APPLICATION: Final = 512  # bytes; the journal contains up to 10,000 of them

_SUFFIX: Final = ".staged"
_NAME: Final = re.compile(r"octavo-([0-9a-f]{16})-([0-9a-f]{16})-(0|[1-9][0-9]{0,18})-[0-9a-f]{32}\.staged")


@dataclass(frozen=True, slots=True)
class CommitIdentity:
    """What tells a commit from others, so that it is not repeated. Raises `InvalidInput`."""

    application: str  # such as the id of a streaming query
    version: int  # grows from commit to commit: a version up to the last committed one counts as committed

    def __post_init__(self) -> None:
        try:
            size = len(self.application.encode())
        except UnicodeEncodeError:
            size = 0
        if not 0 < size <= MAX_APPLICATION:
            raise InvalidInput(f"an application is named by 1 to {MAX_APPLICATION} bytes of text")
        if not 0 <= self.version <= MAX_INT64:
            raise InvalidInput(f"the version of a commit is from 0 to {MAX_INT64}, not {self.version}")


@dataclass(frozen=True, slots=True)
class StagingArea:
    """The place for the staged files of one commit. It can be pickled and sent to the tasks. Get one from `of`."""

    folder: Path
    directory: str  # tells data directories that share the folder apart
    owner: str  # tells applications apart
    identity: CommitIdentity | None

    @classmethod
    def of(
        cls, paths: Paths, *, folder: Path | str | None = None, identity: CommitIdentity | None = None
    ) -> StagingArea:
        """Return the area for a commit to the data directory at `paths`.

        folder: where staged files go, instead of a hidden folder beside the (first) folder of the directory
        identity: what the commit is known by if it is repeated. Without it, a repeated commit appends again

        Raises `InvalidInput` if the folder is inside a data directory: Kafka would not start on that directory.
        """
        several = [path.absolute().resolve() for path in folder_paths(paths)]
        first = several[0]
        place = first.parent / f".{first.name}.staging" if folder is None else Path(folder).absolute().resolve()
        if any(place.is_relative_to(path) for path in several) or any(
            (each / META_PROPERTIES).exists() for each in (place, place.parent)
        ):
            raise InvalidInput(f"{place} is inside a data directory, where Kafka tolerates no other folders")
        try:
            str(place).encode()
        except UnicodeEncodeError:
            raise InvalidInput(f"{str(place)!r} is no name in UTF-8, which the journal needs") from None
        owner = uuid.uuid4().hex[:16] if identity is None else _digest(identity.application)
        return cls(place, _digest(str(first)), owner, identity)

    @property
    def version(self) -> int:
        """The version in the names of its files."""
        return 0 if self.identity is None else self.identity.version

    def new_path(self) -> Path:
        """Return the path for another staged file, which no other task or attempt has."""
        return self.folder / f"octavo-{self.directory}-{self.owner}-{self.version}-{uuid.uuid4().hex}{_SUFFIX}"

    def make(self, storage: Storage) -> None:
        """Make the folder, if it is missing. Raises `OSError`."""
        if not storage.is_folder(self.folder):
            with contextlib.suppress(FileExistsError):  # another task was faster
                storage.make_folder(self.folder)

    def sync(self, storage: Storage) -> None:
        """Write the name of the folder and the names in it to the disk."""
        storage.sync_folder(self.folder)
        storage.sync_folder(self.folder.parent)

    def remove_own(self, storage: Storage, keep: Container[str] = ()) -> None:
        """Remove the files of this commit and of earlier ones of the application, but for those in `keep`."""
        self._remove(storage, keep, None)

    def remove_leftovers(self, storage: Storage, now_ms: int, keep: Container[str] = ()) -> None:
        """Remove what `remove_own` does, and what other commits to this directory left behind a day ago or earlier."""
        self._remove(storage, keep, now_ms - LEFTOVER_MS)

    def _remove(self, storage: Storage, keep: Container[str], before_ms: int | None) -> None:
        """Remove files of this directory, all other names stay. What cannot be removed is left for the next commit."""
        with contextlib.suppress(OSError):
            for name, status in storage.files(self.folder, _SUFFIX).items():
                found = _NAME.fullmatch(name)
                if found is None or found[1] != self.directory or name in keep:
                    continue
                is_own = found[2] == self.owner and int(found[3]) <= self.version
                if is_own or (before_ms is not None and status.modified_ns < before_ms * NS_PER_MS):
                    with contextlib.suppress(OSError):
                        storage.remove(self.folder / name)


def is_staged_name(name: str) -> bool:
    """Return whether a staged file can have this name."""
    return _NAME.fullmatch(name) is not None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]
