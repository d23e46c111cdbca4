"""What changes a Delta or Iceberg table, and what may be there after the process was stopped in the middle.

Run as a program, this stops a process at many lines of what it does, and judges what is left. Metadata of
Iceberg hold absolute paths, so that the table is always made in the same folder; and `deltalake` works in no fork of a
process that has used it, so that everything is done in forks of one that has not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from itertools import cycle
from pathlib import Path
from types import FrameType
from typing import Any, Final

import deltalake
import pyarrow as pa
import pyiceberg
import pyiceberg.catalog.sql  # so that no fork has to

from octavo.spark.tables import target as ours
from tests.unit.spark.tables.lakes import NOTES, SCHEMA, created, export, open_lake, table_offsets, write

_WATCHED: Final = (
    str(Path(ours.__file__).parent),
    str(Path(deltalake.__file__).parent),
    str(Path(pyiceberg.__file__).parent / "table"),
    str(Path(pyiceberg.__file__).parent / "catalog"),
)
_WIDE: Final = pa.schema([*SCHEMA, pa.field("amount", pa.int64())])

WAYS: Final = ("kill", "interrupt", "kill", "error")

Line = tuple[str, int]  # a source file, and a line of it


def create(kind: str, folder: Path) -> None:
    """Create a table, unless there is one."""
    with closing(open_lake(kind, folder)) as target:
        if target.schema() is None:
            target.create(SCHEMA, NOTES)


def add_rows(kind: str, folder: Path) -> None:
    """Export up to offset 9."""
    with closing(open_lake(kind, folder)) as target:
        export(target, 9)


def add_columns(kind: str, folder: Path) -> None:
    """Add a column, then rows."""
    with closing(open_lake(kind, folder)) as target:
        target.add_columns(_WIDE, NOTES)
        export(target, 9)


def merge(kind: str, folder: Path) -> None:
    """Make one file of the first two."""
    with closing(open_lake(kind, folder)) as target:
        progress = target.progress()
        files = sorted(target.files())
        target.replace(files[:2], [write(target.begin(progress, progress), range(6))])


CHANGES: Final[dict[str, Callable[[str, Path], None]]] = {
    change.__name__: change for change in (create, add_rows, add_columns, merge)
}


def prepare(kind: str, folder: Path, change: str) -> None:
    """Make the table that is changed: none, or one with two exports in it."""
    if change != create.__name__:
        with closing(created(kind, folder)) as target:
            export(target, 3)
            export(target, 6)


def judge(kind: str, folder: Path, change: str) -> None:
    """Rows and progress agree, each row is there once, and the next export goes on."""
    create(kind, folder)
    with closing(open_lake(kind, folder)) as target:
        end = max((reached.next_offset for reached in target.progress().values()), default=0)
        assert end in ((0,) if change == create.__name__ else (6, 9)), end
        assert table_offsets(target) == list(range(end))
        assert target.properties() == NOTES
        target.add_columns(_WIDE, NOTES)
        export(target, 12)
        assert table_offsets(target) == list(range(12))


def run_watched(change: Callable[[], object], at_line: Callable[[Line], None]) -> None:
    """Call `change`, and `at_line` before each line that Octavo or one of the libraries runs."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_WATCHED):
            return None
        if event == "line":
            at_line((frame.f_code.co_filename, frame.f_lineno))
        return trace

    try:
        sys.settrace(trace)
        change()
    finally:
        sys.settrace(None)


def lines_of(change: Callable[[], object]) -> list[Line]:
    """Return the lines that a change runs, in the order in which it comes to them first."""
    lines: dict[Line, None] = {}
    run_watched(change, lambda line: lines.setdefault(line, None))
    return list(lines)


def stop_at(change: Callable[[], object], fatal: Line, way: str) -> None:
    """Call `change`, and stop it when it comes to a line: by a signal that kills, or by an exception."""
    came = False

    def at_line(line: Line) -> None:
        nonlocal came
        if line != fatal or came:
            return
        came = True
        if way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise KeyboardInterrupt if way == "interrupt" else OSError("made up by a test")

    with suppress(KeyboardInterrupt, Exception):  # libraries make other exceptions of what is raised in them
        run_watched(change, at_line)
    assert came, f"{fatal} was not reached"


def _in_fork(work: Callable[[], object]) -> int:
    """Do something in a fork; return what `waitpid` says of it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def stop_at_lines(kind: str, change: str, folder: Path, at_most: int, first: int) -> tuple[int, int]:
    """Stop a change at so many of its lines, at equal distances, and judge; return how many of how many there were.

    `first` says which lines, of as many choices as there are lines between two of them, and what stops the first one.
    """
    table, saved, noted = folder / "table", folder / "saved", folder / "lines"

    def note_lines() -> None:
        noted.write_text(json.dumps(lines_of(lambda: CHANGES[change](kind, table))))

    def restore() -> None:
        shutil.rmtree(table, ignore_errors=True)
        shutil.copytree(saved, table)

    folder.mkdir()
    table.mkdir()
    assert _in_fork(lambda: prepare(kind, table, change)) == 0
    shutil.copytree(table, saved)
    assert _in_fork(note_lines) == 0
    lines: list[Line] = [(file, number) for file, number in json.loads(noted.read_text())]
    every = -(-len(lines) // at_most)
    chosen = lines[first % every :: every]
    ways = cycle([*WAYS[first % len(WAYS) :], *WAYS[: first % len(WAYS)]])
    for line, way in zip(chosen, ways, strict=False):
        restore()
        ended = _in_fork(partial(stop_at, partial(CHANGES[change], kind, table), line, way))
        assert ended == (-signal.SIGKILL if way == "kill" else 0), f"{line}, {way}: it ended with {ended}"
        assert _in_fork(partial(judge, kind, table, change)) == 0, f"{line}, {way}: what is left is wrong"
    return len(chosen), len(lines)


if __name__ == "__main__":
    _, kind, at_most, first, where, *changes = sys.argv
    for name in changes:
        tried, there = stop_at_lines(kind, name, Path(where, f"{kind}-{name}"), int(at_most), int(first))
        sys.stdout.write(f"{name} {tried} {there}\n")
