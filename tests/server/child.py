"""A broker in a process of its own, and what it costs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.retention import KEPT_FOR_NOW

PATIENCE_S = 60


class ChildBroker:
    """`octavo serve` in a child process. What it says is in `said`."""

    def __init__(self, folder: Path, config: Mapping[str, str] | None = None) -> None:
        self.data = folder / "data"
        self._said = folder / "said"
        settings = folder / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in (KEPT_FOR_NOW | dict(config or {})).items()))
        command = [sys.executable, "-m", "octavo.cli", "serve", "--data", str(self.data), "--config", str(settings)]
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [*command, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=said, text=True
            )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().rstrip().rpartition(" ")[2]
        assert self.address, self.said

    @property
    def said(self) -> str:
        """What it has said to stderr."""
        return self._said.read_text("utf-8", "replace")

    @property
    def descriptors(self) -> int:
        """The number of its open files and sockets."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    @property
    def memory(self) -> int:
        """Its proportional set size in bytes."""
        rollup = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
        assert found is not None
        return int(found[1]) << 10

    @property
    def cpu_s(self) -> float:
        """The processor time that it has taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """Have it stop, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
