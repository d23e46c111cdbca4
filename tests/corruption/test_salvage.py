"""Logs with damage at random places: a salvage keeps every batch whose bytes are intact, and reports all others."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from octavo.inspect.salvage import salvage
from octavo.inspect.verify import check_partition
from octavo.log import Log
from octavo.records import BatchBuilder
from tests.crash.storage import FastStorage
from tests.soak.plugin import Soak
from tests.unit.inspect.salvage.damaging import (
    batches_in,
    check_kept,
    check_salvaged,
    damage,
    data_batch,
    make_compacted_log,
    make_log,
)


def check_seeds(folder: Path, seeds: range, replicas: int = 1) -> None:
    for log_seed in seeds[:: 40 // replicas]:
        original = make_log(folder / str(log_seed) / "sound" / "events-0", log_seed)
        for seed in seeds[log_seed - seeds[0] : log_seed - seeds[0] + 40 // replicas]:
            place = folder / str(log_seed) / str(seed)
            sources = [place / str(number) / "events-0" for number in range(replicas)]
            for number, source in enumerate(sources):
                shutil.copytree(folder / str(log_seed) / "sound", source.parent)
                damage(source, 1000 * seed + number)
            before = {path: path.read_bytes() for source in sources for path in source.iterdir()}
            [report] = salvage(sources, place / "result", storage=FastStorage()).partitions
            check_salvaged(original, sources, place / "result", report)
            assert list(check_partition(place / "result")) == []
            assert {path: path.read_bytes() for source in sources for path in source.iterdir()} == before
            assert sorted(path.name for path in place.iterdir()) == [*map(str, range(replicas)), "result"]
            shutil.rmtree(place)
        shutil.rmtree(folder / str(log_seed))


def test_every_intact_batch_of_a_damaged_log_is_kept(tmp_path: Path) -> None:
    check_seeds(tmp_path, range(30))


def test_replicas_with_damage_at_different_places_fill_each_other(tmp_path: Path) -> None:
    check_seeds(tmp_path, range(1000, 1012), replicas=2)


def check_compacted(folder: Path, seeds: range) -> None:
    """Every intact batch is kept. What is lost cannot be known: offsets are missing anyway, and any may be right."""
    for seed in seeds:
        source = folder / str(seed) / "events-0"
        original = make_compacted_log(source, seed)
        damage(source, seed)
        salvage([source], folder / str(seed) / "result", storage=FastStorage())
        check_kept(original, [source], folder / str(seed) / "result")
        shutil.rmtree(folder / str(seed))


def test_every_intact_batch_of_a_compacted_log_is_kept(tmp_path: Path) -> None:
    check_compacted(tmp_path, range(12))


@pytest.mark.soak
def test_every_intact_batch_is_kept_in_hundreds_of_damaged_logs(tmp_path: Path, soak: Soak) -> None:
    for seed in soak.seeds():
        check_seeds(tmp_path, range(40 * seed, 40 * seed + 40))
        check_seeds(tmp_path, range(40 * seed, 40 * seed + 13), replicas=3)
        check_compacted(tmp_path, range(20 * seed, 20 * seed + 20))


def test_a_batch_in_a_value_is_not_taken_for_a_batch_of_the_log(tmp_path: Path) -> None:
    """The values of a topic may be batches themselves, and come to light when the batch around them is damaged."""
    random = Random(7)
    log = Log.open(tmp_path / "copies-0")
    for _ in range(20):
        builder = BatchBuilder()
        builder.append(None, data_batch(random, 3) + data_batch(random, 2), timestamp_ms=0)
        log.append(builder.build())
    log.close()
    [path] = (tmp_path / "copies-0").glob("*.log")
    original = batches_in(tmp_path / "copies-0")
    data = bytearray(path.read_bytes())
    second = data.index(original[2])
    data[second + 8] ^= 1  # the length, so that nothing says where the batch ends
    path.write_bytes(data)
    [report] = salvage([tmp_path / "copies-0"], tmp_path / "result").partitions
    assert batches_in(tmp_path / "result") == {offset: batch for offset, batch in original.items() if offset != 2}
    assert [(lost.first_offset, lost.last_offset) for lost in report.lost] == [(2, 2)]
