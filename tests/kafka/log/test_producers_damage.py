"""Producers whose snapshots and transaction indexes were damaged while nobody had the log open: the data tell all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.kafka.judge import Judge
from tests.kafka.log.conftest import OpenProducing
from tests.kafka.log.damage import unclean, write_by_kafka
from tests.kafka.log.side_by_side import FOLDER
from tests.workload.generator import Shape, Workload

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def source(kafka_broker: Judge, memory_path: Path) -> Path:
    """A log of several segments, cleanly closed, with a transaction open at its end."""
    folder = memory_path / "source" / FOLDER
    write_by_kafka(kafka_broker, folder, Workload(2, Shape(rolls=0.05, hangs=True)).take(120))
    assert len(_snapshots(folder)) > 2
    assert list(folder.glob("*.txnindex"))
    return folder


def _snapshots(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.snapshot"))


def _garble(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x55
    path.write_bytes(data)


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _no_newest(folder: Path) -> None:
    _snapshots(folder)[-1].unlink()


def _garbled_newest(folder: Path) -> None:
    _garble(_snapshots(folder)[-1], 20)


def _cut_newest(folder: Path) -> None:
    _cut(_snapshots(folder)[-1], 33)


def _empty_newest(folder: Path) -> None:
    _cut(_snapshots(folder)[-1], 0)


def _from_the_future(folder: Path) -> None:
    _garble(_snapshots(folder)[-1], 1)


def _only_the_oldest(folder: Path) -> None:
    for path in _snapshots(folder)[1:]:
        path.unlink()


def _all_but_the_oldest_garbled(folder: Path) -> None:
    for path in _snapshots(folder)[1:]:
        _garble(path, 3)


def _stray(folder: Path) -> None:
    (folder / f"{7:020d}.snapshot").write_bytes(_snapshots(folder)[-1].read_bytes())
    (folder / f"{10**9:020d}.snapshot").write_bytes(_snapshots(folder)[-1].read_bytes())


def _all_gone_after_a_crash(folder: Path) -> None:
    for path in _snapshots(folder):
        path.unlink()
    unclean(folder)


def _indexes_gone_after_a_crash(folder: Path) -> None:
    for path in folder.glob("*.txnindex"):
        path.unlink()
    unclean(folder)


def _indexes_garbled_after_a_crash(folder: Path) -> None:
    for path in folder.glob("*.txnindex"):
        _garble(path, 12)
        _cut(path, path.stat().st_size - 5)
    unclean(folder)


ALL: Final[tuple[Damage, ...]] = (
    _no_newest,
    _garbled_newest,
    _cut_newest,
    _empty_newest,
    _from_the_future,
    _only_the_oldest,
    _all_but_the_oldest_garbled,
    _stray,
    _all_gone_after_a_crash,
    _indexes_gone_after_a_crash,
    _indexes_garbled_after_a_crash,
)


@pytest.mark.parametrize("damage", ALL, ids=lambda damage: damage.__name__.strip("_"))
def test_the_same_is_known_again(damage: Damage, source: Path, open_producing: OpenProducing) -> None:
    both = open_producing(source=source, damage=damage, remembers_more=True)
    both.may_lack_snapshots = True  # while it reads, Kafka also writes those of the last two segments
    both.read_committed((1, 500))
    both.reopen()
    both.read_committed((500,))
    both.close()


def test_without_any_snapshot_we_read_the_data(source: Path, open_producing: OpenProducing) -> None:
    """Here we differ: after a clean shutdown Kafka takes a log without snapshots for one of before there were any, in
    which nobody is known and nothing open, and so lets consumers of committed data see what is not."""

    def damage(folder: Path) -> None:
        for path in _snapshots(folder):
            path.unlink()

    whole = open_producing(source=source)
    with pytest.raises(AssertionError, match="states"):
        open_producing(source=source, damage=damage)
    assert whole.producers.last_stable_offset < whole.state.end_offset
    whole.close()
