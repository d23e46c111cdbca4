"""Leave two small logs and a data directory behind, and suggest commands to try on them."""

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

_SEGMENT: Final = "00000000000000000000.log"  # Kafka's name for the first segment of a partition


def write(folder: Path | None) -> Path:
    """Write the two logs into `folder`, or into a new temporary folder; return the folder.

    Raises `InvalidInput` if there are other files of the same names.
    """
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="octavo-"))
    _write(folder / "notebooks-0" / _SEGMENT, b"".join(segment()))
    _write(folder / "broken-0" / _SEGMENT, damaged_log()[0])
    return folder


def place_for_data(folder: Path) -> Path:
    """Create a new folder for a data directory. The one of an earlier run is not reused: it may still be in use."""
    for number in itertools.count(1):
        place = folder / ("data" if number == 1 else f"data-{number}")
        try:
            place.mkdir()
        except FileExistsError:
            continue
        return place
    raise AssertionError("numbers do not end")


def show(stage: Stage, folder: Path, data: Path) -> None:
    """Suggest commands to try next."""
    stage.chapter("Go on")
    command, place = _command(), shlex.quote(str(folder))
    stage.say("Left for you to try: a log that has seen every format, the damaged one, and the data directory.")
    stage.command(f"{command} dump {place}/notebooks-0/*.log --binary text", "every record as JSON")
    stage.command(f"{command} dump {place}/notebooks-0/*.log --offsets 39:42", "a transaction and its commit")
    stage.command(f"{command} explain {place}/notebooks-0/*.log --offset 39", "every byte of that transaction")
    stage.command(f"{command} dump {place}/broken-0/*.log --format jsonl | wc -l", "stops at the damage")
    stage.command(f"{command} dump {place}/broken-0/*.log --format jsonl --resync | wc -l", "goes on after it")
    stage.command(f"{command} handover {shlex.quote(str(data))}", "how Apache Kafka goes on with the data directory")
    stage.command(f"{command} dump --help", "all that it can do")


def _write(path: Path, data: bytes) -> None:
    """Write a file of the demo. Raises `InvalidInput` if there is a file with other content."""
    if path.exists() and path.read_bytes() != data:
        raise InvalidInput(f"{path} exists and is not what the demo would write: give another --dir")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _command() -> str:
    """Return how to call the `octavo` command in this shell."""
    called = sys.argv[0]
    if shutil.which("octavo"):
        return "octavo"
    is_script = Path(called).name == "octavo"
    return shlex.quote(called) if is_script else f"{shlex.quote(sys.executable)} -m octavo.cli"
