"""Several threads check and append a large commit; it is the same as if one did."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from octavo.errors import AppendRefused, CommitPending
from octavo.log import DataDirectory, ExpectedTopic
from octavo.log import at_once as threads_at_work
from octavo.log.names import TopicPartition
from octavo.log.staging.appending import StagedBatches
from octavo.records import BatchBuilder
from tests.unit.log.logs import TIME_MS, keys
from tests.unit.log.staging.staged import Task, area_of, batches, found, stage
from tests.unit.log.test_full_disk import FullDisk

PARTITIONS = [TopicPartition("t", number) for number in range(12)]
KEYS = {partition: [100 * partition.partition + number for number in range(15)] for partition in PARTITIONS}
NOTHING: dict[TopicPartition, list[int]] = {partition: [] for partition in PARTITIONS}
SMALL_SEGMENTS = {"internal.segment.bytes": "700"}


@pytest.fixture(autouse=True)
def several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_at_work, "WORTH_THREADS", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def tasks() -> list[Task]:
    """Three tasks, each with a third of the rows of every partition."""
    return [
        {partition: batches(*numbers[first : first + 5]) for partition, numbers in KEYS.items()} for first in (0, 5, 10)
    ]


@pytest.mark.parametrize("config", [{}, {"message.timestamp.type": "LogAppendTime"}, {"compression.type": "lz4"}])
def test_every_partition_gets_its_batches_in_order(
    folder: Path, config: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_work: set[int] = set()
    meeting = threading.Barrier(4)  # so that four threads have begun before one of them ends
    append = StagedBatches.append

    def meet_and_append(*arguments: object) -> None:
        if threading.get_ident() not in at_work:
            at_work.add(threading.get_ident())
            meeting.wait(60)
        append(*arguments)  # type: ignore[arg-type]  # they are passed on as they came

    monkeypatch.setattr(StagedBatches, "append", meet_and_append)
    area = area_of(folder)
    files = stage(area, *tasks())
    with DataDirectory.open(folder) as data:
        expected = {"t": ExpectedTopic(len(PARTITIONS), {**SMALL_SEGMENTS, **config})}
        done = data.commit_staged(area, files, topics=expected)
    assert len(at_work) == 4
    assert found(folder) == KEYS
    assert done.offsets == dict.fromkeys(PARTITIONS, range(15))


def test_a_batch_that_is_refused_keeps_all_others_out(folder: Path) -> None:
    area = area_of(folder)
    files = stage(area, *tasks())
    keyless = BatchBuilder()
    keyless.append(None, b"value", timestamp_ms=TIME_MS)
    files += stage(area, {PARTITIONS[7]: [keyless.build()]})
    topics = {"t": ExpectedTopic(len(PARTITIONS), {"cleanup.policy": "compact"})}
    with DataDirectory.open(folder) as data, pytest.raises(AppendRefused, match="t-7"):
        data.commit_staged(area, files, topics=topics)
    assert found(folder) == NOTHING


def test_a_full_disk_undoes_the_commit_or_leaves_it_pending(tmp_path: Path) -> None:
    outcomes = set()
    for room in range(0, 60_000, 12_000):
        folder = tmp_path / str(room)
        area = area_of(folder)
        files = stage(area, *tasks())
        disk = FullDisk()
        with DataDirectory.open(folder, storage=disk) as data:
            data.create_topic("t", len(PARTITIONS), SMALL_SEGMENTS)
            disk.room = room
            try:
                data.commit_staged(area, files)
                outcomes.add("done")
            except CommitPending:
                outcomes.add("pending")
            except OSError:
                outcomes.add("undone")
                assert {partition: keys(data.log(*partition)) for partition in PARTITIONS} == NOTHING
                disk.room = None
                data.commit_staged(area, files)
            disk.room = None
        DataDirectory.open(folder).close()
        assert found(folder) == KEYS
    assert {"done", "undone"} <= outcomes
