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
