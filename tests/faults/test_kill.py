"""A broker that is killed with SIGKILL under load, again and again, loses nothing that it acknowledged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from octavo.log.names import CLEAN_SHUTDOWN
from tests.faults.broker_process import BrokerProcess
from tests.faults.load import BROKER, Load
from tests.history import Removals, check
from tests.kafka.conftest import NewBroker
from tests.soak.plugin import Soak


def kill_under_load(folder: Path, kills: Iterable[int], seed: int, most: int) -> tuple[Path, Load, Removals]:
    """Kill a broker again and again, each time when up to `most` more sends are acknowledged.

    Now and then, and at last, it is stopped with SIGTERM instead, under the same load.
    """
    random = Random(seed)
    with BrokerProcess(folder, BROKER) as broker:
        with Load(broker.address, random) as load:
            for number in kills:
                load.wait_for(random.choice([1, most // 10, most]))
                broker.kill()
                broker.start()
                if number % 5 == 4:
                    load.wait_for(most)
                    assert broker.stop() == 0
                    assert (broker.data / CLEAN_SHUTDOWN).exists()
                    broker.start()
        assert not load.errors
        removals = load.read_everything(broker.address)
        assert broker.stop() == 0
    report = check(load.history, removals)
    assert report.is_clean, f"{report}\nseed {seed}"
    said = broker.said()
    assert "Traceback" not in said
    assert "failed" not in said, said
    verify(broker.data)
    return broker.data, load, removals


def verify(data: Path) -> None:
    """Have every byte of the directory checked."""
    command = [sys.executable, "-m", "octavo.cli", "verify", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_acknowledged_is_lost_when_a_broker_is_killed(tmp_path: Path) -> None:
    kill_under_load(tmp_path, kills=range(10), seed=16, most=600)


@pytest.mark.soak(30)
def test_nothing_is_lost_in_many_kills_and_apache_kafka_goes_on_from_there(
    tmp_path: Path, new_broker: NewBroker, soak: Soak
) -> None:
    data, load, removals = kill_under_load(tmp_path, kills=soak.rounds(), seed=soak.seed, most=5_000)
    with new_broker(data) as kafka:
        kafka.start()
        load.read_everything(kafka.address)
        assert kafka.troubles == []
        kafka.stop()
    report = check(load.history, removals)
    assert report.is_clean, report
