"""A standalone cluster of Spark: a master, and two workers with addresses of their own.

Spark never starts a speculative attempt on a host where the task runs already, so workers need different host names.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.spark import sessions
from tests.spark.processes import kill

HOSTS: Final = ("127.0.0.2", "127.0.0.3")
LONGEST_S: Final = 120
_DEPLOY: Final = "org.apache.spark.deploy"
_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = "Successfully registered with master"


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of the master, once both workers are there. Processes of the cluster are children of this one."""
    with ExitStack() as running:
        master = running.enter_context(_running(folder, "master", "127.0.0.1", f"{_DEPLOY}.master.Master"))
        url = _wait_for(master, _URL)[1]
        workers = [
            running.enter_context(
                _running(
                    *(folder, f"worker {host}", host, f"{_DEPLOY}.worker.Worker"),
                    *("--cores", "1", "--memory", "600m", "--work-dir", str(folder / host), url),
                )
            )
            for host in HOSTS
        ]
        for worker in workers:
            _wait_for(worker, re.compile(_REGISTERED))
        yield url


class _Process:
    """A process of the cluster, and the file that it logs to."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log


@contextmanager
def _running(folder: Path, name: str, host: str, kind: str, *arguments: str) -> Iterator[_Process]:
    command = [str(sessions.SPARK / "bin" / "spark-class"), kind, "--host", host, "--port", "0", "--webui-port", "0"]
    settings = {"SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": sessions.JAVA}
    log = folder / f"{name}.log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*command, *arguments], env={**sessions.environment(), **settings}, stdout=file, stderr=file
        )
    try:
        yield _Process(process, log)
    finally:
        process.terminate()
        try:
            process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            kill([process.pid])
            process.wait()


def _wait_for(running: _Process, line: re.Pattern[str]) -> re.Match[str]:
    """Wait until the process has logged this."""
    deadline = time.monotonic() + LONGEST_S
    while not (found := line.search(running.log.read_text())):
        log = running.log.read_text()[-4000:]
        assert running.process.poll() is None, f"the process has ended:\n{log}"
        assert time.monotonic() < deadline, f"it does not log {line.pattern!r} for {LONGEST_S} s:\n{log}"
        time.sleep(0.05)
    return found
