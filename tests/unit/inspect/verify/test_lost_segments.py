"""Segments and batches that are lost in the middle of a log are noticed where nothing else explains the gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.inspect.verify import check_partition, looks
from octavo.log import DataDirectory, Producer


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looks, "_PAUSE_S", 0.0)


def write(directory: Path, policy: str | None, *, truncate: bool = False) -> Path:
    with DataDirectory.open(directory) as data:
        data.create_topic("events", config={} if policy is None else {"cleanup.policy": policy})
        log = data.log("events", 0)
        with Producer(data, {"enable.idempotence": "true"}) as producer:
            for number in range(4):
                for _ in range(5):
                    producer.send("events", b"value", b"key", partition=0)
                producer.flush()
                if truncate and number == 2:
                    log.truncate_to(log.end_offset - 2)
                log.roll()
                if truncate and number == 2:
                    break
        if truncate:
            with Producer(data, {"enable.idempotence": "true"}) as producer:
                producer.send("events", b"value", b"key", partition=0)
    return directory / "events-0"


def lose(folder: Path) -> None:
    for path in folder.glob(f"{10:020d}.*"):
        path.unlink()


def write_batches(directory: Path, *, idempotent: bool = True, policy: str = "delete") -> Path:
    """Write two segments of ten batches, each with an entry in the index."""
    with DataDirectory.open(directory) as data:
        data.create_topic("events", config={"cleanup.policy": policy, "index.interval.bytes": "1"})
        with Producer(data, {"enable.idempotence": "true" if idempotent else "false"}) as producer:
            for number in range(20):
                producer.send("events", b"value %02d" % number, b"key", partition=0)
                producer.flush()
                if number == 9:
                    data.log("events", 0).roll()
    return directory / "events-0"


def cut_out(folder: Path) -> None:
    """Take the third batch out of the first segment; all that is behind it moves up."""
    path = folder / f"{0:020d}.log"
    data = path.read_bytes()
    size = len(data) // 10
    path.write_bytes(data[: 2 * size] + data[3 * size :])


def found(folder: Path) -> list[tuple[str, str, int | None]]:
    return [(each.rule.name, each.file, each.offset) for each in check_partition(folder)]


def test_a_segment_that_is_lost_is_noticed(tmp_path: Path) -> None:
    folder = write(tmp_path, "delete")
    assert found(folder) == []
    lose(folder)
    assert found(folder) == [("segment-lost", f"{15:020d}.log", 15)]


@pytest.mark.parametrize("policy", [None, "compact", "compact,delete"])
def test_where_records_may_have_been_compacted_a_gap_is_sound(policy: str | None, tmp_path: Path) -> None:
    folder = write(tmp_path, policy)
    lose(folder)
    assert found(folder) == []


def test_a_truncation_inside_a_batch_before_a_new_segment_is_sound(tmp_path: Path) -> None:
    folder = write(tmp_path, "delete", truncate=True)
    assert f"{13:020d}.log" in {path.name for path in folder.iterdir()}
    assert found(folder) == []


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_batch_that_was_cut_out_of_a_segment_is_lost(idempotent: bool, tmp_path: Path) -> None:
    """Mend 1.3 (d): it was reported as a fault of the index, with the advice to delete this, the only trace."""
    folder = write_batches(tmp_path, idempotent=idempotent)
    assert found(folder) == []
    cut_out(folder)
    problems = list(check_partition(folder))
    log, index = f"{0:020d}.log", f"{0:020d}.index"
    assert {(each.rule.name, each.file) for each in problems} >= {("batches-lost", log), ("index-offset", index)}
    [lost] = [each for each in problems if each.rule.name == "batches-lost"]
    assert (lost.offset, lost.found) == (3, "the batch before ends at 2")
    assert not [each for each in problems if "delete" in each.repair]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_without_indexes_the_numbers_of_a_producer_tell_of_a_batch_that_was_cut_out(
    suffix: str, tmp_path: Path
) -> None:
    folder = write_batches(tmp_path)
    cut_out(folder)
    (folder / f"{0:020d}{suffix}").write_bytes(b"")
    assert ("batches-lost", f"{0:020d}.log", 3) in found(folder)


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_gap_inside_a_segment_that_may_have_been_compacted_is_sound(policy: str, tmp_path: Path) -> None:
    folder = write_batches(tmp_path, policy=policy)
    cut_out(folder)
    assert "batches-lost" not in {rule for rule, _, _ in found(folder)}
