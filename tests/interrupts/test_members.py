"""Wherever a member of a group is interrupted, its partitions are free once its consumer is gone, and nothing hangs.

Every day some lines are tried; in the soak one after the other.
"""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from octavo.log import Consumer, DataDirectory, TopicPartition
from tests.crash.storage import FastStorage
from tests.interrupts.raising import chosen, lines_of, raise_at_line
from tests.soak.plugin import Soak
from tests.unit.log.consumer.parts import write
from tests.unit.log.consumer.test_membership import members
from tests.unit.log.waiting import until

GROUP: Final = {"group.id": "g", "auto.offset.reset": "earliest"}
A_FEW: Final = 5
PARTITIONS: Final = [TopicPartition("t", 0), TopicPartition("t", 1)]


@contextmanager
def opened(folder: Path) -> Iterator[DataDirectory]:
    """A new directory with a topic."""
    with DataDirectory.open(folder, storage=FastStorage()) as data:
        data.create_topic("t", 2)
        yield data


def come_and_go(data: DataDirectory) -> None:
    """Have two consumers share the topic, until one has it alone again."""
    first, second = Consumer(data, GROUP), Consumer(data, GROUP)
    first.subscribe(["t"])
    first.poll()
    second.subscribe(["t"])
    until(lambda: first.poll() == [] and len(first.assignment()) == 1)
    until(lambda: second.poll() == [] and len(second.assignment()) == 1)
    first.commit({PARTITIONS[0]: 0})
    second.close()
    until(lambda: first.poll() == [] and first.assignment() == PARTITIONS)
    first.unsubscribe()
    first.close()


def check_free(data: DataDirectory) -> None:
    """Check that nobody is in the group any more, and that the next one gets everything."""
    gc.collect()
    until(lambda: members(data) == {})
    with Consumer(data, GROUP) as consumer:
        consumer.subscribe(["t"])
        assert consumer.assignment() == PARTITIONS
        write(data.log("t", 0), 0, 1)
        until(lambda: consumer.poll() != [])


def interrupt(folder: Path, seeds: Iterable[int]) -> int:
    """Interrupt consumers at a line for each seed; of how many lines."""
    with opened(folder / "first") as data:
        come_and_go(data)  # something may have to be imported
        lines = lines_of(lambda: come_and_go(data))
    for seed in seeds:
        with opened(folder / str(seed)) as data:
            raise_at_line(lambda: come_and_go(data), *chosen(lines, seed))
            check_free(data)
        shutil.rmtree(folder / str(seed))
    return len(lines)


def test_an_interrupted_member_keeps_nothing(tmp_path: Path) -> None:
    interrupt(tmp_path, range(A_FEW))


@pytest.mark.soak
def test_an_interrupted_member_keeps_nothing_wherever_it_is(tmp_path: Path, soak: Soak) -> None:
    assert interrupt(tmp_path, soak.seeds()) > 100
