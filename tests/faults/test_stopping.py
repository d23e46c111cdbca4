"""Brokers that cannot start say why in one sentence and harm nothing; those that are told to stop do so."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.log import DataDirectory
from octavo.log.names import CLEAN_SHUTDOWN
from tests.faults.broker_process import PATIENCE_S, BrokerProcess
from tests.faults.load import LoadedTopic, create
from tests.faults.test_recreated_topic import FAR_MS, Topic, fetch_request
from tests.server.raw import RawClient
from tests.unit.log.logs import keys, make_batch


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        create(broker.address, [LoadedTopic("events", 1)])
        yield broker


def expect_refusal(data: Path, listen: str = "127.0.0.1:0") -> str:
    """Start another broker, which must end at once. Returns the sentence that it says."""
    command = [sys.executable, "-m", "octavo.cli", "serve", "--data", str(data), "--listen", listen]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("octavo: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_second_broker_on_the_directory_is_refused(broker: BrokerProcess) -> None:
    assert str(broker.data) in expect_refusal(broker.data)
    create(broker.address, [LoadedTopic("after", 1)])  # the first one is not disturbed


def test_a_port_that_is_in_use_is_refused_and_the_directory_stays_clean(broker: BrokerProcess, tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("events")
    assert broker.address in expect_refusal(tmp_path / "data", broker.address)
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
    DataDirectory.open(tmp_path / "data").close()  # it is not locked


def test_a_directory_that_kafka_holds_is_refused(tmp_path: Path) -> None:
    """Kafka locks a file of the directory as Java does."""
    DataDirectory.open(tmp_path / "data").close()
    with (tmp_path / "data" / ".lock").open("wb") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert str(tmp_path / "data") in expect_refusal(tmp_path / "data")
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


def test_a_broker_that_is_interrupted_twice_during_a_long_poll_stops_in_order(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        topic = Topic(broker.address)
        with RawClient(broker.address) as client:
            assert topic.produce(b"one", b"two") == 0
            client.send(fetch_request(topic, 12, 2, wait_ms=FAR_MS))
            client.send(fetch_request(topic, 12, 0))  # which has to wait behind the other
            for _ in range(2):
                broker.process.send_signal(signal.SIGINT)
            assert broker.wait() == 0
            assert client.receive() is None
    assert broker.said() == "octavo: stopping\n"
    assert (broker.data / CLEAN_SHUTDOWN).exists()
    with DataDirectory.open(broker.data) as data:
        assert data.log(topic.name, 0).end_offset == 2


_STUCK = """
import errno, os, sys, threading
from octavo.cli import main, serve
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.storage import File, Storage

if sys.argv[1].startswith("stuck"):
    serve._PATIENCE_S = 0.2
close, replace_files, began = DataDirectory.close, Storage.replace_files, DataDirectory.open

def wait_for_ever(*_, **__):
    threading.Event().wait()

def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "the checkpoints")

def close_full(directory):
    Storage.replace_files = full
    close(directory)

def close_broken(directory):
    def fail(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO), "a segment")
    File.sync = fail
    close_full(directory)

def open_for_ever(*_, **__):
    print("opening", flush=True)
    wait_for_ever()

if sys.argv[1] == "stuck opening":
    DataDirectory.open = open_for_ever
DataDirectory.close = {"stuck": wait_for_ever, "full": close_full, "broken": close_broken}.get(sys.argv[1], close)
sys.exit(main(["serve", "--data", sys.argv[2], "--listen", "127.0.0.1:0"]))
"""


def stop_when(how: str, data: Path) -> tuple[int, str]:
    """Start a broker that cannot close its directory, stop it when it serves. Its exit code, and what it said."""
    command = [sys.executable, "-c", _STUCK, how, str(data)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENCE_S)
    return process.returncode, said


@pytest.fixture
def written(tmp_path: Path) -> Path:
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("events")
        for number in range(5):
            data.log("events", 0).append(make_batch(first=number))
    return tmp_path / "data"


def expect_checked_and_whole(data: Path) -> None:
    assert not (data / CLEAN_SHUTDOWN).exists()
    with DataDirectory.open(data) as opened:
        assert not opened.reports[0].was_clean
        assert keys(opened.log("events", 0)) == list(range(5))


def test_2_5_a_stop_that_takes_too_long_says_what_it_gives_up(written: Path) -> None:
    code, said = stop_when("stuck", written)
    assert code == 0, said
    assert said.startswith("octavo: stopping\noctavo: gave up after 0.2 s: it still waited for ")
    assert (
        "the disk, to which the logs are written" in said or "work that other threads do" in said
    )  # they load kernels
    assert "Nothing that was acknowledged is lost" in said
    expect_checked_and_whole(written)


def test_2_5_a_start_that_takes_too_long_is_given_up(written: Path) -> None:
    code, said = stop_when("stuck opening", written)
    assert code == 0, said
    assert "it still waited for the directory to be opened" in said


def test_2_5_a_stop_on_a_full_disk_is_a_stop(written: Path) -> None:
    code, said = stop_when("full", written)
    assert code == 0, said
    assert "stopped, but not marked as closed, so the directory is checked at the next start: " in said
    assert "No space left on device" in said
    expect_checked_and_whole(written)


def test_2_5_a_stop_on_a_disk_that_fails_is_none(written: Path) -> None:
    with DataDirectory.open(written) as data:
        data.create_topic("more")
    code, said = stop_when("broken", written)
    assert code == 2, said
    assert "Input/output error" in said
