"""What the demo leaves behind: two small logs and a data directory, and commands to try on them."""

from __future__ import annotations

import itertools
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from octavo.cli.demo.damage import damaged_log
from octavo.cli.demo.samples import segment
from octavo.cli.demo.stage import Stage
from octavo.errors import InvalidInput

_SEGMENT: Final = "00000000000000000000.log"  # as Kafka names the first of a partition


def write(folder: Path | None) -> Path:
    """Writes them into `folder`, or a new temporary one; returns which. `InvalidInput` where others have such files."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="octavo-"))
    _write(folder / "notebooks-0" / _SEGMENT, b"".join(segment()))
    _write(folder / "broken-0" / _SEGMENT, damaged_log()[0])
    return folder


def place_for_data(folder: Path) -> Path:
    """A new folder for a data directory: what another run has left, one may still be looking at."""
    for number in itertools.count(1):
        place = folder / ("data" if number == 1 else f"data-{number}")
        try:
            place.mkdir()
        except FileExistsError:
            continue
        return place
    raise AssertionError("numbers do not end")


def show(stage: Stage, folder: Path, data: Path) -> None:
    """Says how to go on."""
    stage.chapter("Go on")
    command, place = _command(), shlex.quote(str(folder))
    stage.say("Left for you to try: a log that has seen every format, the damaged one, and the data directory.")
    stage.command(f"{command} dump {place}/notebooks-0/*.log --binary text", "every record as JSON")
    stage.command(f"{command} dump {place}/notebooks-0/*.log --offsets 39:42", "a transaction and its commit")
    stage.command(f"{command} dump {place}/broken-0/*.log | wc -l", "stops at the damage")
    stage.command(f"{command} dump {place}/broken-0/*.log --resync | wc -l", "goes on behind it")
    stage.command(f"{command} handover {shlex.quote(str(data))}", "how Apache Kafka goes on with the data directory")
    stage.command(f"{command} dump --help", "all that it can do")


def _write(path: Path, data: bytes) -> None:
    """Writes a file of ours, and never over somebody else's."""
    if path.exists() and path.read_bytes() != data:
        raise InvalidInput(f"{path} exists and is not what the demo would write: give another --dir")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _command() -> str:
    """How this very command is called from where one is."""
    called = sys.argv[0]
    if shutil.which("octavo"):
        return "octavo"
    is_script = Path(called).name == "octavo"
    return shlex.quote(called) if is_script else f"{shlex.quote(sys.executable)} -m octavo.cli"
