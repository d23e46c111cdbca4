"""Several replicas: one history comes out, and damage in one is filled from another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from octavo.errors import InvalidInput
from octavo.inspect.salvage import PartitionReport, salvage
from octavo.log import Log
from octavo.log.files.partition_metadata import read_topic_id
from octavo.log.storage import DISK
from tests.crash.storage import FastStorage
from tests.unit.inspect.salvage.damaging import Batches, batches_in, data_batch, is_filler

Part = tuple[int, int]  # leader epoch, and number of batches


def make_replica(folder: Path, parts: Sequence[Part], seed: int = 0, *, common: Batches | None = None) -> Batches:
    """Make a log of batches of one record each, beginning with those that it has in common with another."""
    folder.parent.mkdir()
    log = Log.open(folder, storage=FastStorage())
    for batch in (common or {}).values():
        log.append_as_follower(batch)
    random = Random(seed)
    for epoch, count in parts:
        log.become_leader(epoch)
        for _ in range(count):
            log.append(data_batch(random, 1))
            if random.random() < 0.1:
                log.roll()
    log.close()
    return batches_in(folder)


def up_to(batches: Batches, offset: int) -> Batches:
    return {base: batch for base, batch in batches.items() if base < offset}


def damage(folder: Path, batches: Batches, offset: int) -> None:
    for path in folder.glob("*.log"):
        data = path.read_bytes()
        at = data.find(batches[offset])
        if at >= 0:
            path.write_bytes(data[: at + 65] + bytes([data[at + 65] ^ 1]) + data[at + 66 :])


def salvaged(*sources: Path) -> tuple[PartitionReport, Batches]:
    target = sources[0].parent.parent / "result"
    [report] = salvage(sources, target, storage=FastStorage()).partitions
    return report, batches_in(target)


@pytest.mark.parametrize("turned", [False, True])
def test_after_an_unclean_election_one_of_two_histories_comes_out(tmp_path: Path, turned: bool) -> None:
    one = make_replica(tmp_path / "a" / "events-0", [(0, 50), (1, 30)])
    other = make_replica(tmp_path / "b" / "events-0", [(0, 10), (2, 10)], 7, common=up_to(one, 50))
    sources = [tmp_path / "a" / "events-0", tmp_path / "b" / "events-0"]
    report, result = salvaged(*(sources[::-1] if turned else sources))
    assert result == other
    assert [(source.leads, source.last_epoch, source.last_common_offset) for source in report.sources] in (
        [(False, 1, 49), (True, 2, None)],
        [(True, 2, None), (False, 1, 49)],
    )
    assert {(each.first_offset, each.last_offset) for each in report.left_out if each.is_lost}
    assert sum(each.batches for each in report.left_out) == 30
    assert min(each.first_offset for each in report.left_out) == 50
    assert report.has_lost


def test_a_losing_epoch_fills_no_damage_behind_the_divergence(tmp_path: Path) -> None:
    one = make_replica(tmp_path / "a" / "events-0", [(0, 50), (1, 30)])
    other = make_replica(tmp_path / "b" / "events-0", [(0, 10), (2, 20)], 7, common=up_to(one, 50))
    for offset in (20, 55, 65):
        damage(tmp_path / "b" / "events-0", other, offset)
    report, result = salvaged(tmp_path / "a" / "events-0", tmp_path / "b" / "events-0")
    assert result == {offset: batch for offset, batch in other.items() if offset not in (55, 65)}
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(55, 55), (65, 65)]


def test_where_the_change_of_epochs_is_lost_the_checkpoint_decides(tmp_path: Path) -> None:
    one = make_replica(tmp_path / "a" / "events-0", [(0, 60)])
    other = make_replica(tmp_path / "b" / "events-0", [(2, 20)], 7, common=up_to(one, 50))
    sources = [tmp_path / "a" / "events-0", tmp_path / "b" / "events-0"]
    for offset in (48, 49, 50, 51):
        damage(sources[1], other, offset)
    report, result = salvaged(*sources)
    assert result == {offset: batch for offset, batch in other.items() if offset not in (50, 51)}
    (sources[1] / "leader-epoch-checkpoint").unlink()
    (tmp_path / "again").mkdir()
    [report] = salvage(sources, tmp_path / "again", storage=FastStorage()).partitions
    # Without it, nobody knows which of 48 to 51 the new leader has seen.
    assert batches_in(tmp_path / "again").keys() == other.keys() - {48, 49, 50, 51}
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(48, 51)]


def test_the_first_batches_of_the_last_epoch_are_filled_if_the_checkpoint_has_it(tmp_path: Path) -> None:
    one = make_replica(tmp_path / "a" / "events-0", [(0, 20), (5, 20)])
    make_replica(tmp_path / "b" / "events-0", [], common=up_to(one, 23))
    for offset in (20, 21, 22, 23):
        damage(tmp_path / "a" / "events-0", one, offset)
    report, result = salvaged(tmp_path / "a" / "events-0", tmp_path / "b" / "events-0")
    assert result.keys() == one.keys() - {23}
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(23, 23)]
    assert report.left_out == []


def test_damage_everywhere_is_filled_from_three_replicas(tmp_path: Path) -> None:
    one = make_replica(tmp_path / "a" / "events-0", [(0, 40), (3, 40), (4, 5)])
    make_replica(tmp_path / "b" / "events-0", [], common=up_to(one, 80))
    make_replica(tmp_path / "c" / "events-0", [], common=up_to(one, 60))
    sources = [tmp_path / name / "events-0" for name in "abc"]
    for number, source in enumerate(sources):
        for offset in range(number, 60, 3):
            damage(source, one, offset)
    damage(sources[0], one, 70)
    damage(sources[0], one, 84)
    report, result = salvaged(*sources)
    assert is_filler(result.pop(84))
    assert result == {offset: batch for offset, batch in one.items() if offset != 84}
    assert [(each.first_offset, each.last_offset) for each in report.lost] == [(84, None)]
    assert [each.is_lost for each in report.damage].count(True) == 1


def test_replicas_of_different_topics_are_refused(tmp_path: Path) -> None:
    for name, topic_id in [("a", "AAAAAAAAAAAAAAAAAAAAAQ"), ("b", "AAAAAAAAAAAAAAAAAAAAAg")]:
        make_replica(tmp_path / name / "events-0", [(0, 3)])
        (tmp_path / name / "events-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    with pytest.raises(InvalidInput, match="different topics"):
        salvaged(tmp_path / "a" / "events-0", tmp_path / "b" / "events-0")
    assert not (tmp_path / "result").exists()


def test_whole_data_directories_are_matched_by_the_names_of_partitions(tmp_path: Path) -> None:
    made = {}
    for name in ("events-0", "events-1", "other.topic-7"):
        log = Log.open(tmp_path / "a" / name, storage=FastStorage()) if (tmp_path / "a").exists() else None
        if log is None:
            (tmp_path / "a").mkdir()
            log = Log.open(tmp_path / "a" / name, storage=FastStorage())
        for _ in range(20):
            log.append(data_batch(Random(name), 2))
        if name == "events-1":
            log.delete_records_before(10)
        log.close()
        made[name] = batches_in(tmp_path / "a" / name)
    (tmp_path / "b").mkdir()
    replica = Log.open(tmp_path / "b" / "events-0", storage=FastStorage())
    for batch in made["events-0"].values():
        replica.append_as_follower(batch)
    replica.close()
    (tmp_path / "a" / "events-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    (tmp_path / "a" / "__cluster_metadata-0").mkdir()
    damage(tmp_path / "a" / "events-0", made["events-0"], 4)
    damage(tmp_path / "a" / "other.topic-7", made["other.topic-7"], 4)
    report = salvage([tmp_path / "a", tmp_path / "b"], tmp_path / "result", storage=FastStorage())
    assert [(each.partition, each.has_lost) for each in report.partitions] == [
        ("events-0", False),
        ("events-1", False),
        ("other.topic-7", True),
    ]
    made["other.topic-7"].pop(4)
    assert {name: batches_in(tmp_path / "result" / name) for name in made} == made
    assert sorted(path.name for path in (tmp_path / "result").iterdir() if path.is_dir()) == sorted(made)
    assert read_topic_id(DISK, tmp_path / "result" / "events-0") is not None
    log = Log.open(tmp_path / "result" / "events-1", storage=FastStorage())
    assert (log.start_offset, log.end_offset) == (10, 40)
    assert log.recovery.was_clean
    log.close()
