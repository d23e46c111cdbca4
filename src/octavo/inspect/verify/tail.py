"""The end of a file of batches: what follows the last sound one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from octavo.inspect.kinds import is_zero
from octavo.inspect.verify.problem import Problem
from octavo.log.storage import File

_LAST_BYTES: Final = 64  # that are zero where a disk has not written the end of a file


class TailKind(Enum):
    """Why no batch follows."""

    TORN = "the last batch is not complete"
    ZEROS = "only zeros follow, as in a file that was preallocated"
    UNWRITTEN = "the last batch is damaged, and the file ends in zeros, as after a power cut"
    DAMAGED = "the last batch is damaged"


@dataclass(frozen=True)
class Tail:
    """The bytes of a file after its last sound batch, of which none begins a sound batch."""

    kind: TailKind
    position: int
    size: int
    problem: Problem  # what is wrong with the batch there, if somebody was meant to have finished it


def tail_of(file: File, position: int, end: int, problem: Problem, *, is_cut: bool) -> Tail:
    """Return what the bytes from `position` to `end` are; `is_cut`: a batch begins there and passes the end."""
    if is_zero(file, position, end):
        kind = TailKind.ZEROS
    elif is_cut:
        kind = TailKind.TORN
    elif not any(file.read_at(_LAST_BYTES, max(position, end - _LAST_BYTES))):
        kind = TailKind.UNWRITTEN
    else:
        kind = TailKind.DAMAGED
    return Tail(kind, position, end - position, problem)
