"""What is imported by the first append."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

# NumPy's compiled part imports that while it is loaded, and can be loaded only once.
_INTERRUPTED: Final = """
import os, signal, sys
from octavo.log import DataDirectory
from octavo.records import BatchBuilder

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy.exceptions":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

builder = BatchBuilder()
builder.append(None, b"one", timestamp_ms=1000)
with DataDirectory.open(sys.argv[1]) as data:
    data.create_topic("events")
    assert "numpy" not in sys.modules
    sys.meta_path.insert(0, Interrupting())
    try:
        data.log("events", 0).append(builder.build())
    except KeyboardInterrupt:
        print("interrupted")
    data.log("events", 0).append(builder.build())
    print(data.log("events", 0).end_offset)
"""


def test_an_interrupt_during_the_first_import_of_numpy(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _INTERRUPTED, str(tmp_path / "data")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("interrupted\n1\n", "")
