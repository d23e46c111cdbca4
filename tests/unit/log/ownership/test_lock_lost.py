"""A directory whose lock file was deleted or replaced: another process may have it, and nothing more is written."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from octavo.errors import DirectoryLocked, LockLost
from octavo.log import Background, DataDirectory, Log
from octavo.log.names import TopicPartition
from octavo.log.ownership import lock
from octavo.log.writing import log_state
from octavo.server.serving import serve
from tests.unit.log.logs import SMALL, keys, make_batch

EVENTS = TopicPartition("events", 0)

_APPEND = """
import sys
from octavo.errors import DirectoryLocked
from octavo.log import DataDirectory
from tests.unit.log.logs import make_batch
for folder in sys.stdin:
    try:
        with DataDirectory.open(folder.strip()) as data:
            for number in range(50, 60):
                data.log("events", 0).append(make_batch(first=number))
        print("appended", flush=True)
    except DirectoryLocked as refused:
        print(refused.pid, flush=True)
"""

Append = Callable[[Path], str]


@pytest.fixture(scope="module")
def append_in_another_process() -> Iterator[Append]:
    """Have a process open a folder, append to it and close it; what it says then."""
    command = [sys.executable, "-c", _APPEND]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, answers = process.stdin, process.stdout

        def append(folder: Path) -> str:
            print(folder, file=asked, flush=True)
            return answers.readline().strip()

        yield append
    assert process.returncode == 0


@pytest.fixture
def data(tmp_path: Path) -> Iterator[DataDirectory]:
    data = DataDirectory.open(tmp_path / "data")
    data.create_topic("events", config=SMALL | {"cleanup.policy": "compact,delete"})
    for number in range(20):
        data.log(*EVENTS).append(make_batch(first=number))
    yield data
    with contextlib.suppress(LockLost):
        data.close()


def test_a_directory_that_is_copied_stays_locked(
    data: DataDirectory, tmp_path: Path, append_in_another_process: Append
) -> None:
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    assert append_in_another_process(tmp_path / "data").isdecimal()
    data.log(*EVENTS).append(make_batch(first=20))
    data.close()
    with DataDirectory.open(tmp_path / "data") as again:
        assert keys(again.log(*EVENTS)) == list(range(21))
    with DataDirectory.open(tmp_path / "backup") as copy:
        assert keys(copy.log(*EVENTS)) == list(range(20))


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


ACTS: dict[str, Callable[[DataDirectory, Log], object]] = {
    "roll": lambda data, log: log.roll(),
    "an append that rolls": lambda data, log: [log.append(make_batch(size=900)) for _ in range(2)],
    "truncate": lambda data, log: log.truncate_to(3),
    "delete_records_before": lambda data, log: log.delete_records_before(3),
    "delete_oldest": lambda data, log: log.delete_oldest(1),
    "compact": lambda data, log: log.compact(2**60),
    "write_checkpoints": lambda data, log: data.write_checkpoints(),
    "create_topic": lambda data, log: data.create_topic("more"),
    "delete_topic": lambda data, log: data.delete_topic("events"),
    "set_config": lambda data, log: data.set_config("events", {"retention.ms": "1"}),
    "close": lambda data, log: data.close(),
    "close of a log": lambda data, log: log.close(),
}


@pytest.mark.parametrize("name", ACTS)
def test_nothing_is_written_by_whoever_lost_the_lock(
    data: DataDirectory, tmp_path: Path, name: str, append_in_another_process: Append
) -> None:
    folder = tmp_path / "data"
    log = data.log(*EVENTS)
    log.flush()
    (folder / ".lock").unlink()
    assert append_in_another_process(folder) == "appended"
    before = files(folder)
    with pytest.raises(LockLost, match="the lock file was deleted or replaced"):
        ACTS[name](data, log)
    assert files(folder) == before
    with pytest.raises(LockLost):  # from now on, whatever it is
        log.append(make_batch())
    if data.is_open:
        with pytest.raises(LockLost):
            Background(data, initial_delay_ms=0).run_once()
        with pytest.raises(LockLost):
            data.close()
    assert files(folder) == before
    with DataDirectory.open(folder) as again:
        assert keys(again.log(*EVENTS)) == [*range(20), *range(50, 60)]


def test_the_mark_of_a_clean_shutdown_is_not_written(data: DataDirectory, tmp_path: Path) -> None:
    (tmp_path / "data" / ".lock").unlink()
    with pytest.raises(DirectoryLocked):  # this process knows that it has the directory
        DataDirectory.open(tmp_path / "data")
    with pytest.raises(LockLost):
        data.close()
    assert not data.is_open
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    with DataDirectory.open(tmp_path / "data") as again:
        assert not again.reports[0].was_clean
        assert keys(again.log(*EVENTS)) == list(range(20))


LOSSES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda folder: (folder / ".lock").unlink(),
    "replaced": lambda folder: Path(shutil.copy(folder / ".lock", folder / "new")).rename(folder / ".lock"),
    "moved": lambda folder: folder.rename(folder.with_name("moved")),
    "moved and copied": lambda folder: shutil.copytree(folder.rename(folder.with_name("moved")), folder),
}
WRITES: dict[str, Callable[[Log], object]] = {
    "append": lambda log: log.append(make_batch()),
    "append as a follower": lambda log: log.append_as_follower(follower_batch(log)),
    "replicate": lambda log: log.replicate(follower_batch(log), leader_epoch=0, high_watermark=0, start_offset=0),
}


def follower_batch(log: Log) -> bytes:
    return log.end_offset.to_bytes(8, "big") + make_batch()[8:12] + bytes(4) + make_batch()[16:]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("loss", LOSSES)
def test_1_9_a_lock_that_is_lost_is_noticed_within_a_second(
    data: DataDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loss: str, write: str
) -> None:
    """Mend 1.9: from a second after the loss on, nothing is acknowledged."""
    log = data.log(*EVENTS)
    log.append(make_batch())  # it may have looked right before the loss
    LOSSES[loss](tmp_path / "data")
    later_s = time.monotonic() + 1
    monkeypatch.setattr(log_state, "monotonic", lambda: later_s)
    end = log.end_offset
    for _ in range(2):
        with pytest.raises(LockLost, match="the lock file was deleted or replaced"):
            WRITES[write](log)
    assert log.end_offset == end


def test_1_9_it_is_not_looked_at_for_every_append(data: DataDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    data.create_topic("large")
    log = data.log("large", 0)
    log.append(make_batch())
    now_s = time.monotonic() + 10
    looks: list[float] = []
    monkeypatch.setattr(log_state, "monotonic", lambda: now_s)

    def look() -> float:
        looks.append(now_s)
        return now_s

    monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=look))
    for _ in range(10):
        log.append(make_batch())
    assert len(looks) == 1
    now_s += 0.49
    log.append(make_batch())
    assert len(looks) == 1
    now_s += 0.02
    log.append(make_batch())
    assert len(looks) == 2


def test_1_9_a_broker_notices_it_while_nobody_writes(tmp_path: Path) -> None:
    told = threading.Event()

    def say(sentence: str) -> None:
        if "lock file" in sentence:
            told.set()

    with contextlib.suppress(LockLost), serve(tmp_path / "data", say=say):
        (tmp_path / "data" / ".lock").unlink()
        assert told.wait(60)
