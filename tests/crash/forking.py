"""A process that writes in several threads and forks at random moments: `python -m tests.crash.forking`.

The children end in every way there is, and try to write. The process says on its output how far it came, and at the end
closes everything or kills itself.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

from octavo.errors import WrongProcess
from octavo.log import Background, DataDirectory, Producer
from tests.unit.log.logs import SMALL, keys, make_batch

CONFIG: Final = SMALL | {"retention.ms": "-1"}
KEYS: Final = 7  # of the compacted topic
LONGEST_S: Final = 120  # a child that hangs is killed, and its parent says so


class Parent:
    """Everything that the parent has open, and what it has been told is in the logs."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random: Final = Random(seed)
        self.data: Final = DataDirectory.open(folder)
        self.data.create_topic("appended", config=CONFIG)
        self.data.create_topic("produced", config=CONFIG)
        self.data.create_topic("compacted", config=SMALL | {"cleanup.policy": "compact", "segment.ms": "1"})
        self.producer: Final = Producer(self.data, linger_ms=1)
        self.background: Final = Background(self.data, initial_delay_ms=0, checkpoint_interval_ms=1)
        self.is_over: Final = threading.Event()
        self.has_appended: Final = threading.Event()
        self.has_produced: Final = threading.Event()
        self.threads: Final = [threading.Thread(target=work, daemon=True) for work in (self.append, self.produce)]

    def append(self) -> None:
        """Append to two logs, and say what is there."""
        number = 0
        log, compacted = self.data.log("appended", 0), self.data.log("compacted", 0)
        while not self.is_over.is_set():
            log.append(make_batch(first=number))
            compacted.append(make_batch(first=number % KEYS, time_ms=number))
            number += 1
            say(f"appended {number}")
            self.has_appended.set()
            if number % 50 == 0:
                log.flush()
            if number % 300 == 0:
                log.roll()
                self.data.write_checkpoints()

    def produce(self) -> None:
        """Send records, and say which of them were appended."""
        number = 0
        while not self.is_over.is_set():
            futures = [self.producer.send("produced", b"", b"%d" % (number + more)) for more in range(20)]
            for future in futures:
                assert future.result().offset == number
                number += 1
            say(f"produced {number}")
            self.has_produced.set()

    # ------------------------------------------------------------------------------------------------------ children

    def exit_at_once(self) -> None:
        os._exit(0)

    def leave(self) -> None:
        """End as a program does: through every `with`, and with the interpreter's own end."""
        sys.exit(0)

    def collect(self) -> None:
        self.__dict__.clear()
        gc.collect()
        os._exit(0)

    def close(self) -> None:
        for thing in (self.producer, self.data.log("appended", 0), self.data):
            thing.close()
        self.background.stop()
        os._exit(0)

    def write(self) -> None:
        """Try whatever changes something, now and when the parent may be dead."""
        log = self.data.log("appended", 0)
        time.sleep(self.random.random() / 20)
        attempts: list[Callable[[], object]] = [
            lambda: log.append(make_batch()),
            lambda: log.truncate_to(0),
            log.roll,
            log.flush,
            lambda: self.data.log("compacted", 0).compact(),
            lambda: self.data.create_topic("another"),
            lambda: self.data.delete_topic("appended"),
            self.data.write_checkpoints,
            self.data.coordinator.init_producer_id,
            lambda: self.producer.send("produced", b"a child's"),
            self.producer.flush,
            self.background.run_once,
        ]
        for attempt in attempts:
            try:
                attempt()
            except WrongProcess:
                continue
            os._exit(3)
        os._exit(0)

    def read(self) -> None:
        found = keys(self.data.log("appended", 0))
        os._exit(0 if found == list(range(len(found))) else 4)

    def fork(self) -> None:
        """Have a child that ends in one of these ways."""
        ways = (self.exit_at_once, self.leave, self.collect, self.close, self.write, self.read)
        way = self.random.choice(ways)
        if self.random.random() < 0.2 and way != self.leave:
            multiprocessing.get_context("fork").Process(target=live, args=(way,)).start()
        elif not os.fork():
            live(way)


def live(way: Callable[[], None]) -> None:
    """Be a child that ends in this way, or is killed where it hangs."""
    signal.alarm(LONGEST_S)
    way()


def say(what: str) -> None:
    """Tell the test, which hears it also when this process is killed."""
    os.write(1, what.encode() + b"\n")


def reap(*, wait: bool) -> None:
    """Say of children that are over how they ended, if that was not well."""
    while True:
        try:
            child, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
        except ChildProcessError:
            return
        if not child:
            return
        code = os.waitstatus_to_exitcode(status)
        if code:
            say(f"a child ended with {code}")


def main(folder: Path, seed: int, forks: int, end: str) -> None:
    parent = Parent(folder, seed)
    with parent.data, parent.producer, parent.background:
        parent.background.start(0.001)
        for thread in parent.threads:
            thread.start()
        parent.has_appended.wait()
        parent.has_produced.wait()
        for _ in range(forks):
            time.sleep(parent.random.random() / 100)
            parent.fork()
            reap(wait=False)
        if end == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        parent.is_over.set()
        for thread in parent.threads:
            thread.join()
        reap(wait=True)
    say("closed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
