"""`octavo serve` in a process of its own, which can be killed and started again at the same address."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from tests.ports import free_port

PATIENCE_S: Final = 120


class BrokerProcess:
    """A broker on a directory. `start` returns when it serves."""

    def __init__(self, folder: Path, config: Mapping[str, str] | None = None) -> None:
        self.data: Final = folder / "data"
        self.address: Final = f"127.0.0.1:{free_port()}"
        settings = folder / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in (config or {}).items()), "utf-8")
        options = ["--data", str(self.data), "--listen", self.address, "--config", str(settings)]
        self._command: Final = [sys.executable, "-m", "octavo.cli", "serve", *options]
        self._process: subprocess.Popen[str] | None = None
        self._said: Final[list[str]] = []
        self._heard: Final = threading.Condition()
        self._listener: threading.Thread | None = None

    @property
    def process(self) -> subprocess.Popen[str]:
        """The process that runs now."""
        assert self._process is not None
        return self._process

    def start(self) -> None:
        """Start the broker, and return when it serves."""
        assert self._begin(), f"it does not serve: {self.said()}"

    def serves_or_ends_with(self, code: int) -> bool:
        """Start the broker. Returns whether it serves, or has ended with this exit code."""
        return self._begin() or self.wait() == code

    def _begin(self) -> bool:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._listener = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._listener.start()
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip().endswith(self.address)

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self.process.kill()
        self.wait()

    def stop(self) -> int:
        """Stop the broker with SIGTERM, and return its exit code."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait for the end of the process. Returns its exit code."""
        code = self.process.wait(PATIENCE_S)
        assert self._listener is not None
        self._listener.join(PATIENCE_S)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return code

    def _listen(self, errors: IO[str]) -> None:
        for line in errors:
            with self._heard:
                self._said.append(line)
                self._heard.notify_all()

    def said(self) -> str:
        """What the broker has said on standard error, in all its lives."""
        return "".join(self._said)

    @property
    def lines(self) -> int:
        """How many lines the broker has said."""
        return len(self._said)

    def wait_for_word(self, words: str, since: int) -> None:
        """Return when the broker has said something with these words, after so many lines."""
        with self._heard:
            heard = self._heard.wait_for(lambda: any(words in line for line in self._said[since:]), PATIENCE_S)
        assert heard, f"nothing was said about {words!r}: {self.said()}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
