"""A segment that is lost in the middle of a log is noticed where nothing else explains the gap."""

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
