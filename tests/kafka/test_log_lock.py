"""Apache Kafka and Octavo keep each other out of a data directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from octavo.errors import DirectoryLocked
from octavo.log.ownership.lock import DirectoryLock, broker_in, lock_owner
from tests.kafka.judge import Judge


def kafka_locks(judge: Judge, folder: Path) -> bool:
    return bool(judge.ask("files.lock", path=str(folder / ".lock"), release=False))


def kafka_unlocks(judge: Judge, folder: Path) -> None:
    judge.ask("files.lock", path=str(folder / ".lock"), release=True)


def test_what_kafka_has_locked_is_refused_with_its_process(kafka_broker: Judge, tmp_path: Path) -> None:
    assert kafka_locks(kafka_broker, tmp_path)
    pid = kafka_broker.ask("files.pid")
    assert lock_owner(tmp_path) == broker_in(tmp_path) == pid
    with pytest.raises(DirectoryLocked, match=f"process {pid}") as refused:
        DirectoryLock.acquire(tmp_path)
    assert refused.value.pid == pid
    kafka_unlocks(kafka_broker, tmp_path)
    with DirectoryLock.acquire(tmp_path):
        assert broker_in(tmp_path) is None
    assert broker_in(tmp_path) is None


def test_what_octavo_has_locked_kafka_cannot_lock(kafka_broker: Judge, tmp_path: Path) -> None:
    with DirectoryLock.acquire(tmp_path):
        assert not kafka_locks(kafka_broker, tmp_path)
        with pytest.raises(DirectoryLocked):  # and this does not release it
            DirectoryLock.acquire(tmp_path)
        assert not kafka_locks(kafka_broker, tmp_path)
    assert kafka_locks(kafka_broker, tmp_path)
    kafka_unlocks(kafka_broker, tmp_path)


def test_kafka_gets_the_lock_of_an_octavo_that_died(kafka_broker: Judge, tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from octavo.log.ownership.lock import DirectoryLock;"
        "lock = DirectoryLock.acquire(Path(sys.argv[1])); print(os.getpid(), flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        pid = int(other.stdout.readline())
        assert not kafka_locks(kafka_broker, tmp_path)
        with pytest.raises(DirectoryLocked) as refused:
            DirectoryLock.acquire(tmp_path)
        assert refused.value.pid == pid
        other.kill()
    assert kafka_locks(kafka_broker, tmp_path)
    kafka_unlocks(kafka_broker, tmp_path)
