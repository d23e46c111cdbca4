"""A fork while a directory is open: the parent goes on as if there had been none, and the child writes nothing."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octavo.errors import DirectoryLocked, WrongProcess
from octavo.log import Background, DataDirectory, Log
from octavo.log.clock import wall_clock_ms
from octavo.log.consumer import Consumer
from octavo.log.names import TopicPartition
from octavo.log.ownership.lock import DirectoryLock, lock_owner
from octavo.log.producer import Producer
from tests.unit.log.forks import exit_code_of_fork, run_in_fork
from tests.unit.log.logs import SMALL, keys, make_batch

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

EVENTS = TopicPartition("events", 0)
COMPACTED = SMALL | {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0"}


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    """A directory with ten flushed records and one that is not, in segments of a few."""
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", config=COMPACTED)
        log = data.log(*EVENTS)
        for number in range(10):
            log.append(make_batch(first=number))
        log.flush()
        log.append(make_batch(first=10))
        yield data


def check_goes_on(data: DataDirectory, folder: Path) -> None:
    """The parent has lost nothing, appends, and closes in good order."""
    log = data.log(*EVENTS)
    assert keys(log) == list(range(11))
    for number in range(11, 30):
        log.append(make_batch(first=number))
    data.close()
    with DataDirectory.open(folder) as again:
        assert all(report.was_clean and report.is_unremarkable for report in again.reports)
        assert keys(again.log(*EVENTS)) == list(range(30))


def leave_by_exit(data: DataDirectory) -> None:
    with data:
        sys.exit(0)


def leave_by_error(data: DataDirectory) -> None:
    try:
        with data:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        sys.exit(0)


def close_all(data: DataDirectory) -> None:
    for log in data.logs:
        log.close()
    data.close()
    data.close()
    assert not data.is_open


def collect(data: DataDirectory) -> None:
    data._folders = ()
    del data
    gc.collect()


@pytest.mark.parametrize("end", [leave_by_exit, leave_by_error, close_all, collect])
def test_a_child_that_ends_touches_nothing(
    data: DataDirectory, tmp_path: Path, end: Callable[[DataDirectory], None]
) -> None:
    before = files(tmp_path)
    assert exit_code_of_fork(lambda: end(data)) == 0
    assert files(tmp_path) == before
    assert lock_owner(tmp_path) == os.getpid()
    check_goes_on(data, tmp_path)


def files(folder: Path) -> dict[Path, tuple[int, int, bytes]]:
    return {
        path: (path.stat().st_ino, path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_child_of_multiprocessing_touches_nothing(data: DataDirectory, tmp_path: Path) -> None:
    before = files(tmp_path)
    child = multiprocessing.get_context("fork").Process(target=close_all, args=(data,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert files(tmp_path) == before
    check_goes_on(data, tmp_path)


def test_the_log_of_a_single_partition_is_left_to_the_parent(tmp_path: Path) -> None:
    with Log.open(tmp_path / "events-0") as log:
        log.append(make_batch(first=0))
        before = files(tmp_path)
        assert run_in_fork(log.close) == "None"
        assert run_in_fork(lambda: log.append(make_batch())).startswith("WrongProcess")
        assert files(tmp_path) == before
        log.append(make_batch(first=1))
    with Log.open(tmp_path / "events-0") as log:
        assert log.recovery.was_clean
        assert keys(log) == [0, 1]


WRITES: dict[str, Callable[[DataDirectory, Log], object]] = {
    "append": lambda data, log: log.append(make_batch()),
    "append_as_follower": lambda data, log: log.append_as_follower(make_batch()),
    "roll": lambda data, log: log.roll(),
    "flush": lambda data, log: log.flush(),
    "truncate_to": lambda data, log: log.truncate_to(3),
    "truncate_to the end": lambda data, log: log.truncate_to(99),
    "delete_records_before": lambda data, log: log.delete_records_before(3),
    "apply_retention": lambda data, log: log.apply_retention(2**60),
    "delete_oldest": lambda data, log: log.delete_oldest(1),
    "delete_files": lambda data, log: log.delete_files(2**60),
    "become_leader": lambda data, log: log.become_leader(7),
    "compact": lambda data, log: log.compact(2**60),
    "create_topic": lambda data, log: data.create_topic("more"),
    "delete_topic": lambda data, log: data.delete_topic("events"),
    "set_config": lambda data, log: data.set_config("events", {"retention.ms": "1"}),
    "allocate_producer_ids": lambda data, log: data.allocate_producer_ids(),
    "delete_files of the directory": lambda data, log: data.delete_files(2**60),
    "write_checkpoints": lambda data, log: data.write_checkpoints(),
    "init_producer_id": lambda data, log: data.coordinator.init_producer_id(),
    "init_producer_id of a transaction": lambda data, log: data.coordinator.init_producer_id("t"),
    "commit_offsets": lambda data, log: Consumer(data, group_id="g").commit({EVENTS: 1}),
    "poll": lambda data, log: Consumer(data, group_id="g").poll(),
    "send": lambda data, log: Producer(data).send("events", b"x"),
    "Background.run_once": lambda data, log: Background(data, initial_delay_ms=0).run_once(),
    "Background.start": lambda data, log: Background(data).start(),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_writes_is_refused_in_a_child(data: DataDirectory, tmp_path: Path, name: str) -> None:
    data.coordinator.init_producer_id()  # so that some ids are left to be given out
    before = files(tmp_path)
    said = run_in_fork(lambda: WRITES[name](data, data.log(*EVENTS)))
    assert said == str(f"WrongProcess: {WrongProcess(tmp_path, os.getpid())}")
    assert files(tmp_path) == before
    check_goes_on(data, tmp_path)


class ForkOnce:
    """A callback that forks at its first call: the child exits through all that goes on, and the parent waits."""

    def __init__(self) -> None:
        self.parent = os.getpid()
        self.code: int | None = None  # of the child, once it has ended

    def __call__(self, _: object) -> None:
        if self.code is None:
            self.code = -1
            child = os.fork()
            if not child:
                sys.exit(0)
            self.code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    @contextmanager
    def ending_child(self) -> Iterator[None]:
        """Has the child end where it leaves this block, and not go on with the tests."""
        try:
            yield
        finally:
            if os.getpid() != self.parent:
                os._exit(0)


def test_a_fork_in_the_middle_of_a_clean_leaves_its_files_to_the_parent(data: DataDirectory, tmp_path: Path) -> None:
    log = data.log(*EVENTS)
    for number in range(10):
        log.append(make_batch(first=number, size=300))
    log.roll()
    fork = ForkOnce()
    with fork.ending_child():  # by way of all that a clean takes back when it fails
        log.compact(2**60, on_progress=fork)
    assert fork.code == 0
    assert sorted(keys(log)) == list(range(11))
    data.close()
    with DataDirectory.open(tmp_path) as again:
        assert all(report.was_clean and report.is_unremarkable for report in again.reports)
        assert sorted(keys(again.log(*EVENTS))) == list(range(11))


def test_a_fork_while_a_directory_is_opened_does_not_close_it(data: DataDirectory, tmp_path: Path) -> None:
    data.close()
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").unlink()
    fork = ForkOnce()
    with fork.ending_child(), DataDirectory.open(tmp_path, on_progress=fork) as again:
        assert fork.code == 0
        assert not (tmp_path / ".kafka_cleanshutdown").exists()
        assert lock_owner(tmp_path) == fork.parent
        assert keys(again.log(*EVENTS)) == list(range(11))


def fork_in_c() -> int:
    """As a library does that knows nothing of Python: none of its hooks is called."""
    return int(ctypes.PyDLL(None).fork())


def test_a_fork_that_python_does_not_know_of_is_refused_too(data: DataDirectory, tmp_path: Path) -> None:
    before = files(tmp_path)
    said = run_in_fork(lambda: data.log(*EVENTS).append(make_batch()), fork=fork_in_c)
    assert said.startswith("WrongProcess")
    assert run_in_fork(lambda: close_all(data), fork=fork_in_c) == "None"
    assert files(tmp_path) == before
    check_goes_on(data, tmp_path)


def test_a_child_may_read_what_its_parent_opened_and_open_what_nobody_has(data: DataDirectory, tmp_path: Path) -> None:
    def work() -> list[object]:
        with DataDirectory.open(tmp_path, read_only=True) as watched:
            seen = keys(watched.log(*EVENTS))
        try:
            DataDirectory.open(tmp_path)
        except DirectoryLocked as refused:
            owner = refused.pid
        with DataDirectory.open(tmp_path.with_name("another")) as own:
            own.create_topic("events")
            own.log(*EVENTS).append(make_batch())
            mine = keys(own.log(*EVENTS))
        return [seen == keys(data.log(*EVENTS)), owner, mine]

    assert run_in_fork(work) == str([True, os.getpid(), [0]])


def test_a_child_gets_the_directory_once_its_parent_has_closed_it(data: DataDirectory, tmp_path: Path) -> None:
    reading, writing = os.pipe()

    def work() -> str:
        os.read(reading, 1)
        with DataDirectory.open(tmp_path) as own:
            own.log(*EVENTS).append(make_batch(first=11))
            try:
                data.log(*EVENTS).append(make_batch())  # which is still its parent's
            except WrongProcess:
                return "refused"
        return "appended"

    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(run_in_fork(work)))
    thread.start()
    data.close()
    os.write(writing, b"x")
    thread.join(60)
    assert answers == ["refused"]
    with DataDirectory.open(tmp_path) as again:
        assert keys(again.log(*EVENTS)) == list(range(12))
    os.close(reading)
    os.close(writing)


_PARENT = """
import os, sys, time
from pathlib import Path
from octavo.log.ownership.lock import DirectoryLock
lock = DirectoryLock.acquire(Path(sys.argv[1]))
if not os.fork():  # it speaks up when it has let go of its copy of the lock
    print(os.getpid(), flush=True)
time.sleep(60)
"""


def test_the_lock_dies_with_the_parent_while_a_child_lives(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT, str(tmp_path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert lock_owner(tmp_path) == parent.pid
        parent.kill()
        parent.wait()
        os.kill(child, 0)
        DirectoryLock.acquire(tmp_path).release()
        os.kill(child, signal.SIGKILL)


def held_by_thread(locks: list[threading.RLock]) -> Iterator[None]:
    """Have another thread hold the locks."""
    ready, over = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in locks:
            lock.acquire()
        ready.set()
        over.wait()
        for lock in locks:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    yield
    over.set()
    thread.join()


# Not forked in C: Python itself does not survive that beside threads, as its own lock may be held by one of them.
def test_locks_that_a_thread_held_do_not_keep_a_child_from_closing(data: DataDirectory, tmp_path: Path) -> None:
    log = data.log(*EVENTS)
    for _ in held_by_thread([data._lock, log._state.compacting, log._state.lock]):
        assert run_in_fork(lambda: close_all(data)) == "None"
        assert run_in_fork(lambda: log.append(make_batch())).startswith("WrongProcess")
        assert run_in_fork(data.write_checkpoints).startswith("WrongProcess")
    check_goes_on(data, tmp_path)


def test_a_producer_in_a_child_closes_and_leaves_what_was_sent_to_its_parent(data: DataDirectory) -> None:
    producer = Producer(data, {"linger.ms": 60_000})
    futures = [producer.send("events", b"v%d" % number, b"%d" % number) for number in range(3)]

    def work() -> None:
        with producer:
            sys.exit()

    for _ in held_by_thread([producer._lock, producer._sender._sending]):
        assert run_in_fork(work) == "SystemExit: "
    assert run_in_fork(lambda: producer.send("events", b"x")).startswith("WrongProcess")
    assert run_in_fork(producer.flush).startswith("WrongProcess")
    assert run_in_fork(lambda: futures[0].result(10)).startswith("WrongProcess")
    producer.close()
    assert [future.result().offset for future in futures] == [11, 12, 13]


def test_background_in_a_child_stops_and_does_not_start(data: DataDirectory, tmp_path: Path) -> None:
    with Background(data, clock=wall_clock_ms) as background:
        assert run_in_fork(background.stop) == "None"
        assert run_in_fork(background.start).startswith("WrongProcess")
        assert run_in_fork(background.run_once).startswith("WrongProcess")
        assert all(thread.is_alive() for thread in background._threads)
    check_goes_on(data, tmp_path)


def test_a_consumer_in_a_child_commits_nothing(data: DataDirectory) -> None:
    consumer = Consumer(data, group_id="g", auto_offset_reset="earliest")
    consumer.subscribe(["events"])
    assert len(consumer.poll(max_records=5)) == 5
    assert run_in_fork(consumer.close) == "None"
    assert run_in_fork(consumer.commit).startswith("WrongProcess")
    assert consumer.committed([EVENTS]) == {EVENTS: None}
    consumer.close()
    committed = data.coordinator.committed("g")[EVENTS]
    assert committed is not None
    assert committed.offset == 5
