"""A word count of Kafka Streams in a process of its own, which can be killed: `WordCount`.

java/streams/WordCount.java is the application; tests/kafka/words.py has the clients that write for it and read of it.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.kafka import releases

PATIENCE_S: Final = 120
APPLICATION: Final = "word-count"
LINES: Final = "lines"  # what the application reads
COUNTS: Final = "counts"  # what it writes
REPARTITION: Final = f"{APPLICATION}-words-repartition"
CHANGELOG: Final = f"{APPLICATION}-counts-changelog"

# What an application that was killed leaves behind is over soon: its member of the group, and its transaction. If the
# broker is killed, transactions have a minute, so that none is over by that: a commit that comes too late is answered
# with an error at which Kafka Streams gives up.
BROKER: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
KILLED: Final = {"producer.transaction.timeout.ms": "3000"}
_SETTINGS: Final = {
    "application.id": APPLICATION,
    "group.protocol": "classic",
    "commit.interval.ms": "100",
    "repartition.purge.interval.ms": "100",
    "producer.transaction.timeout.ms": "60000",
    "main.consumer.session.timeout.ms": "1500",
    "main.consumer.heartbeat.interval.ms": "300",
    "reconnect.backoff.max.ms": "50",
}
_JAVA: Final = ("-Xmx128m", *releases.QUICK[1:])


class WordCount:
    """The application, from `start` on. A context manager, which leaves no process behind."""

    def __init__(self, address: str, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        """Raises `KafkaUnavailable`. `settings` are added to the usual ones, or replace them."""
        given = _SETTINGS | {"bootstrap.servers": address, "state.dir": str(folder)} | dict(settings or {})
        arguments = [f"{name}={value}" for name, value in given.items()]
        self._command: Final = [*releases.command(releases.find("streams"), _JAVA, "WordCount"), *arguments]
        self._process: subprocess.Popen[str] | None = None
        self._said: list[str] = []
        self._ended = False
        self._heard: Final = threading.Condition()
        self._listener: threading.Thread | None = None

    def start(self) -> None:
        """Start the application."""
        assert self._process is None, "it runs already"
        self._said, self._ended = [], False
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            with self._heard:
                self._said.append(line.rstrip())
                self._heard.notify_all()
        with self._heard:
            self._ended = True
            self._heard.notify_all()

    @property
    def failures(self) -> list[str]:
        """The exceptions that threads of the application ended with, since it was started."""
        return [line for line in self._said if line.startswith("FAILED")]

    def wait_for(self, state: str) -> None:
        """Return when the application has come to this state of Kafka Streams."""
        with self._heard:
            self._heard.wait_for(lambda: self._ended or state in self._said, PATIENCE_S)
        assert state in self._said, f"it never came to {state}: {self._said}"

    def kill(self) -> None:
        """Kill the application with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._over()

    def stop(self) -> int:
        """Have the application end cleanly, and return its exit code."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._over()

    def _over(self) -> int:
        assert self._process is not None
        assert self._listener is not None
        code = self._process.wait(PATIENCE_S)
        self._listener.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill()
