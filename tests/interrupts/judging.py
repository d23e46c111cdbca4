"""Interrupt one change, then look at the directory in every way in which somebody may find it."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Final

from tests.interrupts.changes import (
    CHANGES,
    TOPIC,
    Contents,
    Held,
    World,
    contents,
    is_between,
    next_append,
    next_transaction,
    open_directory,
)
from tests.interrupts.raising import Line, Timer, free_locks, lines_of, raise_at_line

_NEXT: Final = 999
_NEXT_IN_TRANSACTION: Final = b"777"


class Interrupter:
    """Interrupts one kind of change, each time in a new copy of one directory."""

    def __init__(self, template: Path, folder: Path, change: str) -> None:
        """`template`: what `make_world` made. `folder`: for the copies."""
        self._template: Final = template
        self._folder: Final = folder
        self._change: Final = CHANGES[change]
        with open_directory(self._copy(self._template, "looked at")) as data:
            self._before: Final = contents(data)
        seconds = []
        for _ in range(2):  # the first time something may have to be imported or compiled
            world = self._open()
            began = time.perf_counter()
            self._change(world)
            seconds.append(time.perf_counter() - began)
            world.data.close()
        self._seconds: Final = min(seconds)
        with open_directory(world.folder) as data:
            self._after: Final = contents(data)

    def lines(self) -> Counter[Line]:
        """How often the change runs each line."""
        world = self._open()
        lines = lines_of(lambda: self._change(world))
        world.data.close()
        return lines

    def at_line(self, line: Line, before: int) -> None:
        """Raise at one line of the change that was run so often before, and judge what is left."""
        world = self._open()
        raise_at_line(lambda: self._change(world), line, before)
        free_locks()
        self._judge(world)

    def by_timer(self, seed: int) -> bool:
        """Have a timer raise during the change, and judge what is left; whether it was in time."""
        world = self._open()
        has_landed = Timer(seed).interrupt(lambda: self._change(world), self._seconds)
        self._judge(world)
        return has_landed

    def _judge(self, world: World) -> None:
        """Look at the directory in its own process, then open it as a kill leaves it, and as closing leaves it."""
        offset = None
        if world.data.is_open:
            self._check(contents(world.data), None)
            offset = next_append(world, _NEXT)
            self._check(contents(world.data), offset)
            if world.producer is not None:
                next_transaction(world, _NEXT_IN_TRANSACTION)
                self._check(contents(world.data), offset)
        killed = self._copy(world.folder, "killed")
        if world.producer is not None:
            world.producer.close()
        world.data.close()
        for folder in (world.folder, killed):
            with open_directory(folder) as data:
                self._check(contents(data), offset)
                data.create_topic("another", 1)

    def _open(self) -> World:
        folder = self._copy(self._template, "world")
        return World(folder, open_directory(folder))

    def _copy(self, folder: Path, name: str) -> Path:
        copy = self._folder / name
        shutil.rmtree(copy, ignore_errors=True)
        return Path(shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".lock")))

    def _check(self, found: Contents, next_offset: int | None) -> None:
        rest, offset = _without_next(found)
        assert next_offset is None or offset == next_offset, "what was acknowledged is gone"
        assert is_between(rest, self._before, self._after), f"neither done nor undone:\n{rest}\n{self._before}"


def _without_next(found: Contents) -> tuple[Contents, int | None]:
    """What there is but for the records that were appended after the interrupt, and the offset of the first."""
    held = found[f"{TOPIC}-0"]
    assert held is not None
    offset = next((offset for offset, key, _ in held.records if key == b"%d" % _NEXT), None)
    return {name: None if one is None else _without(one) for name, one in found.items()}, offset


def _without(held: Held) -> Held:
    nexts = {offset for offset, key, _ in held.records if key in (b"%d" % _NEXT, _NEXT_IN_TRANSACTION)}
    records = tuple(record for record in held.records if record[0] not in nexts)
    return held._replace(records=records, committed=tuple(each for each in held.committed if each not in nexts))
