"""`read_committed`, whatever the tasks: aborted data and markers are left out, and what is not decided."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from octavo.log import DataDirectory, Isolation
from octavo.log.origin import Origin
from octavo.log.storage import Storage
from octavo.log.watched.watched_log import WatchedLog
from octavo.spark.committed import OpenTransactions
from tests.unit.spark.queries import offsets, plan, read, read_tasks
from tests.workload.generator import Shape, Workload


def write_workload(folder: Path, seed: int, shape: Shape, steps: int = 250) -> tuple[list[int], list[int]]:
    """Offsets of what is committed, and of all records, as the log itself says."""
    workload = Workload(seed, shape)
    with DataDirectory.open(folder) as data:
        data.create_topic("events", 1, {"retention.ms": "-1", "index.interval.bytes": "200"})
        log = data.log("events", 0)
        for step in workload.take(steps):
            if step.rolls:
                log.roll()
            else:
                log.append(step.batches, origin=Origin[step.origin])
        committed = [record.offset for record in log.reader(isolation=Isolation.READ_COMMITTED).records()]
        everything = [record.offset for record in log.reader().records()]
    return committed, everything


def work_for_stage(monkeypatch: pytest.MonkeyPatch, stage: int) -> None:
    """As if this were a worker of Spark's, with a task of that stage."""
    context = SimpleNamespace(stageId=lambda: stage)
    monkeypatch.setattr("octavo.spark.committed.TaskContext.get", lambda: context)
    monkeypatch.setattr("octavo.spark.task_reader.spare_the_collector", lambda: None)


@pytest.mark.parametrize("hangs", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_committed_is_read_by_any_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, hangs: bool
) -> None:
    work_for_stage(monkeypatch, 1)
    written, everything = write_workload(tmp_path, seed, Shape(transactions=4, hangs=hangs))
    assert len(written) < len(everything)
    assert offsets(tmp_path) == everything
    for options in ({}, {"maxBytesPerPartition": "300"}, {"maxRecordsPerPartition": "7"}, {"minPartitions": "40"}):
        assert offsets(tmp_path, kafka_isolation_level="read_committed", **options) == written


def test_it_does_not_need_the_files_beside_the_data(tmp_path: Path) -> None:
    written, _ = write_workload(tmp_path, 5, Shape(transactions=4, hangs=True))
    for pattern in ("*.snapshot", "*.txnindex", "*.index", "*.timeindex"):
        for path in tmp_path.glob(f"events-0/{pattern}"):
            path.unlink()
    assert offsets(tmp_path, isolation_level="read_committed", maxBytesPerPartition="300") == written


def test_control_records_come_where_they_are_asked_for(tmp_path: Path) -> None:
    _, everything = write_workload(tmp_path, 1, Shape(transactions=4))
    rows = read(tmp_path, includeControlRecords="true", columns="offset,isControl,isTransactional")
    assert [row["offset"] for row in rows if not row["isControl"]] == everything
    markers = [row for row in rows if row["isControl"]]
    assert markers
    assert all(row["isTransactional"] for row in markers)


def test_a_worker_finds_out_once_in_a_stage_how_much_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, _ = write_workload(tmp_path, 2, Shape(transactions=4, hangs=True))
    query = plan(tmp_path, isolation_level="read_committed", maxBytesPerPartition="300")
    assert len(query[1]) > 5
    asked = []
    find = OpenTransactions.last_stable_offset

    def count(self: OpenTransactions, storage: Storage, log: WatchedLog, bound: int) -> int:
        asked.append(bound)
        return find(self, storage, log, bound)

    monkeypatch.setattr(OpenTransactions, "last_stable_offset", count)
    for stage in (1, 2):
        work_for_stage(monkeypatch, stage)
        assert read_tasks(*query).column("offset").to_pylist() == written
        assert len(asked) == stage
