"""The fixture that opens a log in Kafka and one in Octavo."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol

import pytest

from tests.kafka.judge import Judge
from tests.kafka.log.side_by_side import SideBySide

_OPTIONS: Final = ("now_ms", "follows_end", "exact", "source", "damage")
_IN_MEMORY: Final = Path("/dev/shm")


class OpenBoth(Protocol):
    """Opens two new logs. Given are options of `SideBySide` and a configuration: Kafka's names, with _ for dots."""

    def __call__(self, **given: Any) -> SideBySide: ...


@pytest.fixture(scope="module")
def memory_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory, where there is such: both logs sync often, and nothing here depends on a disk."""
    if os.access(_IN_MEMORY, os.W_OK):
        with TemporaryDirectory(dir=_IN_MEMORY, prefix="octavo-") as folder:
            yield Path(folder)
    else:
        yield tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def open_both(kafka_broker: Judge, memory_path: Path) -> OpenBoth:
    """Opens as many pairs of logs as a test needs, each in a folder of its own."""
    numbers = count()

    def opened(**given: Any) -> SideBySide:
        options = {name: given.pop(name) for name in _OPTIONS if name in given}
        config = {name.replace("_", "."): str(value) for name, value in given.items()}
        return SideBySide(kafka_broker, memory_path / str(next(numbers)), config, **options)

    return opened
