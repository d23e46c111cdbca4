"""Nothing is wrong with directories that Apache Kafka or Octavo left, whole or in the middle of something."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest

from octavo.inspect.verify import Problem, looks
from octavo.inspect.verify.tasks import check, find_tasks
from octavo.log import DataDirectory, Producer
from octavo.log.metadata import handover
from tests.golden.directories import Name, unpack


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


def problems(directory: Path) -> list[Problem]:
    found = []
    for task in find_tasks(directory):
        checked = check(task)
        assert checked.error is None
        found += checked.problems
    return found


@pytest.mark.parametrize("name", get_args(Name))
def test_what_a_broker_left(name: Name, tmp_path: Path) -> None:
    assert problems(unpack(name, tmp_path)) == []


def write_transactions(data: DataDirectory) -> None:
    with Producer(data, {"transactional.id": "clerk"}) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for key in range(4):
                producer.send("table", b"value %d" % number, b"key %d" % key, partition=0)
            if number % 2:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            data.log("table", 0).roll()


@pytest.mark.parametrize(("small", "large", "to"), [(5, 100, 50), (0, 100, 50), (1, 9, 9)])
def test_a_truncation_inside_a_batch_that_is_larger_than_all_others(
    small: int, large: int, to: int, tmp_path: Path
) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("table")
        for number in range(small):
            with Producer(data) as producer:
                producer.send("table", b"%d" % number, partition=0)
        with Producer(data, {"batch.size": "1000000", "linger.ms": "1000"}) as producer:
            for number in range(large):
                producer.send("table", b"%d" % number, partition=0)
        data.log("table", 0).truncate_to(to)
        assert data.log("table", 0).end_offset == to
    assert problems(tmp_path) == []
    DataDirectory.open(tmp_path).close()
    assert problems(tmp_path) == []


def test_what_octavo_leaves_at_each_step(tmp_path: Path) -> None:
    """Fresh, written, deleted, compacted, cut, closed, crashed, recovered and handed over."""
    directory, crashed = tmp_path / "data", tmp_path / "crashed"
    with DataDirectory.open(directory) as data:
        assert problems(directory) == []
        data.create_topic("table", partitions=2, config={"cleanup.policy": "compact,delete", "retention.ms": "-1"})
        data.create_topic("gone")
        assert problems(directory) == []
        write_transactions(data)
        data.delete_topic("gone")
        assert problems(directory) == []
        log = data.log("table", 0)
        assert log.compact() is not None
        assert problems(directory) == []
        write_transactions(data)
        log.truncate_to(log.end_offset - 7)  # inside a batch
        log.delete_records_before(3)
        assert problems(directory) == []
        shutil.copytree(directory, crashed)
    assert problems(directory) == []
    assert problems(crashed) == []
    DataDirectory.open(crashed).close()
    assert problems(crashed) == []
    handover([directory])
    assert problems(directory) == []
