"""What `make without-linux` takes away is gone from every process, and Octavo has other means in each place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.without_linux.sitecustomize import HIDDEN

PROGRAM = """
import ctypes, fcntl, json, os, pathlib, select, selectors, subprocess, sys, tempfile
from octavo.log.ownership import owner, record_lock
from octavo.log.storage import DISK
from octavo.log import sync, writeback
from octavo.records.processors import usable_processors
from octavo.server import poller, sending, wakeup
with tempfile.TemporaryDirectory() as folder:
    file = DISK.open_to_write(pathlib.Path(folder, "file"), create=True)
    is_of_file = record_lock.take(file)
    has_proc = [os.path.exists("/proc"), os.path.exists("/proc/self/fd"), len(os.listdir(folder)) != 1]
    try:
        open("/proc/self/stat")
    except FileNotFoundError:
        has_proc.append(False)
found = {
    "left": [f"{module}.{name}" for module, names in json.loads(sys.argv[1]).items()
             for name in vars(__import__(module)) for each in names
             if name == each or (each.endswith("*") and name.startswith(each[:-1]))],
    "proc": any(has_proc),
    "ways": [type(poller.make_poller()).__name__, type(wakeup.make_wakeup()).__name__, sending.send_file.__name__,
             sync.sync_file.__name__, type(owner._make_mark(1)).__name__, selectors.DefaultSelector.__name__],
    "is_of_file": is_of_file,
    "writeback": writeback._sync_file_range() is not None,
    "more": sending.MORE_FOLLOWS,
    "processors": usable_processors(),
}
print(json.dumps(found))
"""
INNER = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', *sys.argv[1:]]).returncode)"


def test_a_process_in_a_process_has_nothing_of_it() -> None:
    hidden = json.dumps({module.__name__: names for module, names in HIDDEN.items()})
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", INNER, PROGRAM, hidden], env=environment, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == {
        "left": [],
        "proc": False,
        "ways": ["SelectorsPoller", "SocketWakeup", "copy_to_socket", "fsync", "_ComparedPid", "PollSelector"],
        "is_of_file": False,
        "writeback": False,
        "more": 0,
        "processors": os.cpu_count(),
    }
