"""Open a directory after a crash, as a program does, and as a server does where the program is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from octavo.errors import WouldLoseRecords
from octavo.log import DataDirectory, Recover
from octavo.log.clock import Clock
from octavo.log.storage import Storage

Opened = TypeVar("Opened")


def open_directory(folders: Path | Sequence[Path], *, storage: Storage, clock: Clock) -> DataDirectory:
    """Open a directory after a crash; see `open_both_ways`."""
    return open_both_ways(
        lambda recover: DataDirectory.open(folders, storage=storage, clock=clock, recover=recover), storage
    )


def open_both_ways(open_: Callable[[Recover], Opened], storage: Storage) -> Opened:
    """Open without leave to cut off sound batches. Where that is refused, nothing was cut, and open with it."""
    try:
        return open_(Recover.REFUSE)
    except WouldLoseRecords as refused:
        damaged, position = Path(refused.path), refused.position
    before = storage.open(damaged).size()
    assert before > position
    opened = open_(Recover.AS_KAFKA)
    lost = storage.files(damaged.parent, ".lost")
    assert any(status.size == before for name, status in lost.items() if name.startswith(damaged.name))
    return opened
