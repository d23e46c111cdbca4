"""Replicas that two brokers of Kafka wrote are compared: the first difference is named, and lag is no difference."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from octavo.errors import InvalidInput
from octavo.inspect.verify import Problem
from octavo.inspect.verify.replicas import compare_replicas, difference, replicas
from octavo.records import Codec, convert
from tests.golden.directories import unpack
from tests.unit.inspect.verify.planting import batches_of, rules_of, with_batch_crc

FIRST = "00000000000000000000.log"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicas, "_PAUSE_S", 0.0)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return unpack("two", tmp_path)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return unpack("three", tmp_path)


def compare(topic: str, *directories: Path) -> list[Problem]:
    return list(compare_replicas([directory / f"{topic}-0" for directory in directories]))


def only(found: list[Problem]) -> tuple[str, str, int | None, int | None]:
    [problem] = found
    return problem.rule.name, problem.file, problem.position, problem.offset


@pytest.mark.parametrize("topic", ["same", "behind", "table", "__cluster_metadata"])
def test_equal_replicas_one_that_is_behind_and_one_that_is_compacted_do_not_differ(
    topic: str, two: Path, three: Path
) -> None:
    assert compare(topic, two, three) == []
    assert compare(topic, three, two) == []


def test_an_unclean_election_is_named_with_the_offset_and_both_positions(two: Path, three: Path) -> None:
    [problem] = compare_replicas([two, three])  # of all topics, the only difference
    log = "split-0/00000000000000000003.log"
    assert only([problem]) == ("replica-diverged", str(two / log), 154, 5)
    assert problem.found == (
        f"epoch 0, but epoch 2 in {three / log} at 154; "
        "this replica's high watermark is 10, so that acknowledged records are lost"
    )


def test_records_that_a_leader_without_records_of_its_own_does_not_have_are_named(two: Path, three: Path) -> None:
    """The new leader has noted its epoch, and written nothing yet."""
    for path in (three / "split-0").glob("*.log"):
        batches = [batch for batch in batches_of(path.read_bytes()) if int.from_bytes(batch[:8]) < 5]
        path.write_bytes(b"".join(batches))
    for path in sorted((three / "split-0").glob("0*"))[::-1]:
        if int(path.name[:20]) > 5:
            path.unlink()
    assert only(compare("split", two, three)) == (
        "replica-diverged",
        str(two / "split-0" / "00000000000000000003.log"),
        154,
        5,
    )


def test_a_record_that_was_changed_is_named(two: Path, three: Path) -> None:
    path = two / "same-0" / FIRST
    batches = batches_of(path.read_bytes())
    batches[1] = with_batch_crc(batches[1].replace(b"both 1", b"both X"))
    path.write_bytes(b"".join(batches))
    [problem] = compare("same", three, two)
    assert only([problem]) == ("replica-content", str(path), len(batches[0]), 1)
    assert problem.found == f"value differs from {three / 'same-0' / FIRST} at {len(batches[0])}, both of epoch 0"


@pytest.mark.parametrize("who", ["two", "three"])
def test_a_batch_that_one_replica_lacks_is_named(who: str, two: Path, three: Path) -> None:
    lacking = two if who == "two" else three
    path = lacking / "same-0" / FIRST
    batches = batches_of(path.read_bytes())
    path.write_bytes(batches[0] + b"".join(batches[2:]))
    [problem] = compare("same", two, three)
    assert (problem.rule.name, problem.offset) == ("replica-missing", 1)
    assert problem.found.startswith(f"{lacking / 'same-0'} has no such offset")


def test_a_segment_that_one_replica_lacks_is_named_but_not_what_compaction_may_remove(two: Path, three: Path) -> None:
    for path in (three / "same-0").glob("00000000000000000003.*"):
        path.unlink()
    assert compare("same", two, three) == []  # it ends there, and is merely behind
    for path in (three / "same-0").glob("0000000000000000000[0-2].*"):
        path.unlink()
    shutil.copy(two / "same-0" / "00000000000000000003.log", three / "same-0")
    assert compare("same", two, three) == []  # it begins there, as after a retention
    for path in (three / "table-0").glob("00000000000000000026.*"):
        path.unlink()
    [problem] = compare("table", two, three)
    assert (problem.rule.name, problem.file) == ("replica-missing", str(three / "table-0"))


def test_batches_that_are_compressed_otherwise_do_not_differ(two: Path, three: Path) -> None:
    path = three / "same-0" / FIRST
    converted = bytes(convert(path.read_bytes(), codec=Codec.GZIP).data)
    assert converted != path.read_bytes()
    path.write_bytes(converted)
    assert compare("same", two, three) == []


def test_folders_of_different_topics_are_not_replicas(two: Path, three: Path) -> None:
    path = three / "same-0" / "partition.metadata"
    path.write_bytes(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAEw")
    [problem] = compare("same", two, three)
    assert problem.rule.name == "replica-topic"
    assert {problem.file} <= {str(path), str(two / "same-0" / "partition.metadata")}


def test_what_a_second_look_does_not_find_is_no_difference(
    two: Path, three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def catch_up(_seconds: float) -> None:
        shutil.rmtree(two / "split-0")
        shutil.copytree(three / "split-0", two / "split-0")

    monkeypatch.setattr(time, "sleep", catch_up)
    assert compare("split", two, three) == []


def test_directories_without_a_common_partition_are_refused(two: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(InvalidInput, match="no partition in common"):
        list(compare_replicas([two, tmp_path / "other"]))


def test_every_rule_is_tested_here() -> None:
    assert rules_of(difference) == {"replica-topic", "replica-diverged", "replica-content", "replica-missing"}
