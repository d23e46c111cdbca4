"""`octavo serve` in a process of its own, which can be killed and started again at the same address."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self

PATIENCE_S: Final = 60
_PORTS: Final = range(15_000, 32_000)  # no client gets one of these for its own end of a connection


class BrokerProcess:
    """A broker on a directory. `start` returns when it serves."""

    def __init__(self, folder: Path, config: Mapping[str, str] | None = None, *, before: Sequence[str] = ()) -> None:
        """`before`: what to run in front of the command, such as `prlimit`."""
        self.data: Final = folder / "data"
        self.errors: Final = folder / "stderr"
        self.address: Final = f"127.0.0.1:{free_port()}"
        settings = folder / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in (config or {}).items()), "utf-8")
        options = ["--data", str(self.data), "--listen", self.address, "--config", str(settings)]
        self._command: Final = [*before, sys.executable, "-m", "octavo.cli", "serve", *options]
        self._process: subprocess.Popen[str] | None = None

    @property
    def process(self) -> subprocess.Popen[str]:
        """The process that runs now."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start the broker, and return when it serves."""
        with self.errors.open("a", encoding="utf-8") as errors:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.rstrip().endswith(self.address), f"it does not serve: {self.said()}"

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self.process.kill()
        self._wait()

    def stop(self) -> int:
        """Stop the broker with SIGTERM, and return its exit code."""
        self.process.terminate()
        return self._wait()

    def _wait(self) -> int:
        code = self.process.wait(PATIENCE_S)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code

    def said(self) -> str:
        """What the broker has said on standard error, in all its lives."""
        return self.errors.read_text("utf-8")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()


def free_port() -> int:
    """Return a port that nobody uses."""
    for port in Random().sample(_PORTS, 100):
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("there is no free port")
