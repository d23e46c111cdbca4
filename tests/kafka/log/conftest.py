"""The fixture that opens a log in Kafka and one in Octavo."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol, TypeVar

import pytest

from tests.kafka.judge import Judge
from tests.kafka.log.producing import Compacting, Producing
from tests.kafka.log.side_by_side import SideBySide

_OPTIONS: Final = ("now_ms", "follows_end", "exact", "source", "damage", "remembers_more")
Kind_co = TypeVar("Kind_co", bound=SideBySide, covariant=True)
_IN_MEMORY: Final = Path("/dev/shm")


class Open(Protocol[Kind_co]):
    """Opens two new logs. Given are options of `SideBySide` and a configuration: Kafka's names, with _ for dots."""

    def __call__(self, **given: Any) -> Kind_co: ...


OpenBoth = Open[SideBySide]
OpenProducing = Open[Producing]
OpenCompacting = Open[Compacting]


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
    return _opener(SideBySide, kafka_broker, memory_path)


@pytest.fixture(scope="module")
def open_producing(kafka_broker: Judge, memory_path: Path) -> OpenProducing:
    """The same, with producers compared."""
    return _opener(Producing, kafka_broker, memory_path)


@pytest.fixture(scope="module")
def open_compacting(kafka_broker: Judge, memory_path: Path) -> OpenCompacting:
    """The same, to be compacted: as soon as there is anything to clean, unless the configuration says otherwise."""
    dirty = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    return _opener(Compacting, kafka_broker, memory_path, dirty)


def _opener(
    kind: type[Kind_co], judge: Judge, folder: Path, settings: Mapping[str, str] | None = None
) -> Open[Kind_co]:
    numbers = count()

    def opened(**given: Any) -> Kind_co:
        options = {name: given.pop(name) for name in _OPTIONS if name in given}
        config = {name.replace("_", "."): str(value) for name, value in given.items()}
        place = folder / f"{kind.__name__}-{next(numbers)}"
        return kind(judge, place, {**(settings or {}), **config}, **options)

    return opened
