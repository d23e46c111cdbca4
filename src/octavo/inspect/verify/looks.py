"""Tell damage from the unfinished work of a broker that is running.

Nothing is locked. A broker may write, roll, delete or swap files between any two steps of a check. So whatever seems
wrong is looked at again: until the files concerned did not change during a look, or until several looks, with pauses
between them, have found the same. Only what all of them found is a problem. Nothing is looked at twice if nothing seems
wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from octavo.inspect.verify.folder import Folder, Gone
from octavo.inspect.verify.problem import Problem

_LOOKS: Final = 6
_PAUSE_S: Final = 0.05  # no broker leaves a write, a roll or a swap half done for so long


@dataclass(frozen=True)
class Look:
    """One look at a folder: its listing, and what seems wrong with it."""

    folder: Folder
    found: Iterable[Problem]
    is_current: Callable[[], bool] = lambda: True  # whether what it took from elsewhere is still so


def certain(look: Callable[[int], Look], ignore: Collection[str]) -> list[Problem]:
    """Return the problems that are still there however often one looks, without those of the rules `ignore`.

    look: looks at the folder; it is given how many looks there were before. It may raise `Gone`.
    """
    suspects: list[Problem] | None = None
    for number in range(_LOOKS):
        if number:
            time.sleep(_PAUSE_S)
        try:
            seen = look(number)
            found = [problem for problem in seen.found if problem.rule.name not in ignore]
        except Gone:
            continue
        suspects = found if suspects is None else [problem for problem in suspects if problem in found]
        if not suspects or (all(_is_still(seen.folder, problem.file) for problem in suspects) and seen.is_current()):
            break
    return suspects or []


def _is_still(folder: Folder, name: str) -> bool:
    """Whether the files of the segment to which `name` belongs, or the one file `name`, have not changed since."""
    stem = name.partition(".")[0] + "."
    return all(folder.is_unchanged(each) for each in {name, *folder.entries} if each == name or each.startswith(stem))
