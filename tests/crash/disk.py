"""A disk as it is after a power cut: what was synced, and of the rest anything that a file system may leave.

`Disk` is told every operation and keeps apart what has to last from what is only in the page cache. `image` says
what a machine could find after the power went right now. The rules, which are those of POSIX as far as it has any, and
beyond it of ext4 (ordered or writeback) and xfs:

* A file's sync makes its bytes and its size last, and not its name. A folder's sync makes the names in it last, and
  not its own name, nor the bytes of the files. So a synced file in a folder that was not synced may be gone.
* Pages go to the disk whenever the kernel likes. Each sector of a file that was not synced holds what it held at some
  moment since the last sync, each another moment; and the file's size is that of some moment as well. So writes are
  lost, torn and reordered, and a cut may be undone, or leave zeros in the sector that it went through. Bytes that were
  synced and not written since are the same at every moment: they stay.
* Where the size has come to the disk and the sector has not, there are zeros; or, in writeback mode, where the whole
  sector is new, whatever was on the disk before.
* A change of names happens or does not: a rename never leaves both names or none. Changes that were not synced are
  lost in reverse order (a journalling file system has one journal), or, where `Names.ANY` asks for it, one by one. A
  change that builds on another (of the same name or the same file) never outlasts it; a folder is not gone while a name
  in it is left.
* When a process dies and the machine does not, everything stays as it was written: `PROCESS_DIED`.

Not modelled: hard links, sparse files, and disks that lose what they said they had synced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

SECTOR: Final = 512
ROOT: Final = 0  # the inode of the folder that all is in

Slot = tuple[int, str]  # a place for a name: the inode of its folder, and the name
Image = dict[str, bytes | None]  # path to content, None for a folder; parents come first


class Write(NamedTuple):
    inode: int
    position: int
    data: bytes


class Truncate(NamedTuple):
    inode: int
    size: int


class Sync(NamedTuple):
    inode: int


class SyncFolder(NamedTuple):
    inode: int


class NameChange(NamedTuple):
    """What happens to names, all or nothing: each of `slots` means the given inode, or nothing, from now on."""

    what: str  # create, make_folder, rename, remove or remove_folder
    inode: int  # the file or folder that it is about
    slots: tuple[tuple[Slot, int | None], ...]


Operation = Write | Truncate | Sync | SyncFolder | NameChange


class Names(Enum):
    """Which changes of names, of those that were not synced, survive."""

    ALL = "all"
    NONE = "none"
    FIRST = "the first so many"
    ANY = "any"


class Data(Enum):
    """What of a file that was not synced survives."""

    ALL = "all"
    NONE = "none"
    SIZE = "its size, but no byte"
    MOMENT = "all that it was at some moment"
    TORN = "all that it was in the middle of some write"
    SECTORS = "each sector of another moment, and the size too"


class Survival(NamedTuple):
    """One way in which a power cut can go."""

    names: Names
    data: Data
    garbage: bool = False  # in place of zeros


PROCESS_DIED: Final = Survival(Names.ALL, Data.ALL)
POWER_CUTS: Final = (
    Survival(Names.NONE, Data.NONE),
    Survival(Names.ALL, Data.NONE),
    Survival(Names.NONE, Data.ALL),
    Survival(Names.ALL, Data.SIZE),
    Survival(Names.ALL, Data.SIZE, garbage=True),
    Survival(Names.ALL, Data.TORN),
    Survival(Names.FIRST, Data.MOMENT),
    Survival(Names.FIRST, Data.SECTORS),
    Survival(Names.ALL, Data.SECTORS, garbage=True),
    Survival(Names.FIRST, Data.TORN, garbage=True),
)
ANY_NAMES: Final = (Survival(Names.ANY, Data.SECTORS), Survival(Names.ANY, Data.ALL), Survival(Names.ANY, Data.MOMENT))


@dataclass(slots=True)
class _File:
    synced: bytes = b""
    since: list[Write | Truncate] = field(default_factory=list)

    def versions(self) -> list[bytes]:
        """The contents at every moment since the last sync, oldest first."""
        versions = [self.synced]
        for change in self.since:
            versions.append(_after(versions[-1], change))
        return versions

    def latest(self) -> bytes:
        content = self.synced
        for change in self.since:
            content = _after(content, change)
        return content


class Disk:
    """Takes operations in their order; gives images of what may be left."""

    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        self._synced_names: dict[Slot, int] = {}
        self._changes: list[NameChange] = []  # not synced, in their order

    def put(self, slot: Slot, inode: int, content: bytes | None) -> None:
        """A file, or with None a folder, that is there and on the disk from the start."""
        self._synced_names[slot] = inode
        if content is not None:
            self._files[inode] = _File(content)

    def apply(self, operation: Operation) -> None:
        """Take note of an operation that was done or at least begun."""
        match operation:
            case Write(inode) | Truncate(inode):
                self._files[inode].since.append(operation)
            case Sync(inode):
                self._files[inode] = _File(self._files[inode].latest())
            case NameChange(what, inode):
                self._changes.append(operation)
                if what == "create":
                    self._files[inode] = _File()
            case SyncFolder(inode):
                self._sync_folder(inode)

    def image(self, survival: Survival, random: Random) -> Image:
        """What may be there after a power cut now, of the kind `survival`."""
        names = dict(self._synced_names)
        for change in self._surviving(survival.names, random):
            _bind(names, change)
        return {path: self._content(inode, survival, random) for path, inode in _paths(names)}

    def unsynced_count(self) -> int:
        """How many changes may be lost now."""
        return len(self._changes) + sum(len(file.since) for file in self._files.values())

    def _sync_folder(self, folder: int) -> None:
        needed: set[object] = {("in", folder)}
        synced, rest = [], []
        for change in reversed(self._changes):  # what is synced takes with it what it builds on
            if needed.isdisjoint(_marks(change)):
                rest.append(change)
            else:
                synced.append(change)
                needed |= _needs(change)
        for change in reversed(synced):
            _bind(self._synced_names, change)
        self._changes = rest[::-1]

    def _surviving(self, names: Names, random: Random) -> list[NameChange]:
        match names:
            case Names.ALL:
                return self._changes
            case Names.NONE:
                return []
            case Names.FIRST:
                return self._changes[: random.randint(0, len(self._changes))]
            case Names.ANY:
                return self._any_changes(random)

    def _any_changes(self, random: Random) -> list[NameChange]:
        lost: set[object] = set()
        surviving = []
        for change in self._changes:
            if random.getrandbits(1) and lost.isdisjoint(_needs(change)):
                surviving.append(change)
            else:
                lost |= _marks(change)
        return surviving

    def _content(self, inode: int, survival: Survival, random: Random) -> bytes | None:
        file = self._files.get(inode)
        if file is None:
            return None
        if not file.since or survival.data is Data.NONE:
            return file.synced
        match survival.data:
            case Data.ALL:
                return file.latest()
            case Data.MOMENT:
                return random.choice(file.versions())
            case Data.TORN:
                return _torn(file, random)
        versions = file.versions()
        size = len(versions[-1] if survival.data is Data.SIZE else random.choice(versions))
        sources = versions[:1] if survival.data is Data.SIZE else versions
        sectors = []
        for start in range(0, size, SECTOR):
            sector = random.choice(sources)[start : start + SECTOR]
            if not sector and survival.garbage:
                sector = random.randbytes(SECTOR)
            sectors.append(sector.ljust(SECTOR, b"\0"))
        return b"".join(sectors)[:size]


def write_image(image: Image, folder: Path) -> None:
    """Make `folder`, with what an image holds in it."""
    folder.mkdir()
    for path, content in image.items():
        if content is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(content)


def read_image(folder: Path) -> Image:
    """All that is in a folder."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in paths}


def _after(content: bytes, change: Write | Truncate) -> bytes:
    match change:
        case Write(_, position, data):
            return content[:position].ljust(position, b"\0") + data + content[position + len(data) :]
        case Truncate(_, size):
            return content[:size].ljust(size, b"\0")


def _torn(file: _File, random: Random) -> bytes:
    """In the middle of a write: a part of it is there up to some byte, or to the end of a sector."""
    last = random.randrange(len(file.since))
    content = _File(file.synced, file.since[:last]).latest()
    change = file.since[last]
    if isinstance(change, Truncate):
        return content
    size = random.randint(0, len(change.data))
    if random.getrandbits(1):
        size = max(0, (change.position + size) // SECTOR * SECTOR - change.position)
    return _after(content, Write(change.inode, change.position, change.data[:size]))


def _bind(names: dict[Slot, int], change: NameChange) -> None:
    for slot, inode in change.slots:
        if inode is None:
            names.pop(slot, None)
        else:
            names[slot] = inode


def _needs(change: NameChange) -> set[object]:
    """What a change builds on: earlier ones of the same names and inode; to remove a folder, all in it."""
    needs: set[object] = {change.inode, *(slot for slot, _ in change.slots)}
    if change.what == "remove_folder":
        needs.add(("in", change.inode))
    return needs


def _marks(change: NameChange) -> set[object]:
    """By what others find that they build on this one."""
    return {change.inode, *(slot for slot, _ in change.slots), *(("in", slot[0]) for slot, _ in change.slots)}


def _paths(names: dict[Slot, int]) -> Iterator[tuple[str, int]]:
    inside: dict[int, list[tuple[str, int]]] = {}
    for (folder, name), inode in names.items():
        inside.setdefault(folder, []).append((name, inode))
    left = [("", ROOT)]
    while left:
        path, folder = left.pop()
        for name, inode in sorted(inside.get(folder, ())):
            yield path + name, inode
            left.append((f"{path}{name}/", inode))
