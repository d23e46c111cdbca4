"""What the crash tests have found, each by itself."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import pytest

from octavo.log import DataDirectory, Log
from octavo.records import BatchBuilder, read_batches
from tests.batches import TIME_MS
from tests.crash.disk import Data, Names, Survival, write_image
from tests.crash.storage import CrashStorage, FastStorage, Moment, PowerCut
from tests.crash.workload import Clock, stored

CONFIG: Final = {"internal.segment.bytes": "400", "file.delete.delay.ms": "0"}
SYNCED: Final = Survival(Names.NONE, Data.NONE)


@pytest.fixture
def storage(tmp_path: Path) -> CrashStorage:
    folder = tmp_path / "disk"
    folder.mkdir()
    return CrashStorage(folder)


def append(log: Log, records: int = 1) -> None:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(b"key", b"v" * 100, timestamp_ms=TIME_MS)
    log.append(builder.build())


def open_directory(storage: CrashStorage) -> DataDirectory:
    return DataDirectory.open(storage.folder, storage=storage, clock=Clock())


def after_power_cut(storage: CrashStorage, folder: Path) -> DataDirectory:
    """Only what was synced is left."""
    write_image(storage.disk().image(SYNCED, Random(0)), folder)
    return DataDirectory.open(folder, storage=FastStorage(), clock=Clock())


def test_a_log_that_was_cut_through_a_batch_opens_again(storage: CrashStorage) -> None:
    """The batch goes whole, and the next segment begins at the offset of the cut: there is no file missing."""
    with open_directory(storage) as data:
        data.create_topic("t", 1, CONFIG)
        log = data.log("t", 0)
        append(log)
        append(log, 3)
        log.truncate_to(2)
        log.roll()
        append(log)
    with open_directory(storage) as data:
        found = [record.offset for batch in stored(data.log("t", 0)) for record in next(read_batches(batch.data))]
        assert found == [0, 2]


def test_what_retention_deleted_does_not_come_back(storage: CrashStorage, tmp_path: Path) -> None:
    """Not even when its start offset is no longer remembered, because the first segment begins there."""
    with open_directory(storage) as data:
        data.create_topic("t", 1, CONFIG)
        log = data.log("t", 0)
        for _ in range(10):
            append(log)
        log.delete_records_before(log.segments[2].base_offset)
        log.apply_retention()
        start = log.start_offset
        data.write_checkpoints()
        with after_power_cut(storage, tmp_path / "image") as left:
            assert left.log("t", 0).start_offset == start


def test_what_a_dead_process_named_lasts_once_it_is_flushed(storage: CrashStorage, tmp_path: Path) -> None:
    """The one that goes on finds the segment, and syncs its bytes; the name has to be synced as well."""
    data = open_directory(storage)
    data.create_topic("t", 1, CONFIG)
    for _ in range(4):
        append(data.log("t", 0))
    storage.stop_at(len(storage.journal), Moment.BEFORE)
    with pytest.raises(PowerCut):
        append(data.log("t", 0))
    storage.restart()
    with open_directory(storage) as data:
        log = data.log("t", 0)
        log.flush()
        with after_power_cut(storage, tmp_path / "image") as left:
            assert stored(left.log("t", 0)) == stored(log)


def test_a_topic_that_a_dead_process_made_lasts_once_it_is_used(storage: CrashStorage, tmp_path: Path) -> None:
    """The one that goes on finds it in the metadata; whether they are on the disk it cannot know."""
    data = open_directory(storage)
    written = len(storage.journal)
    storage.stop_at(written + 1, Moment.BEFORE)  # the record is written, and not synced
    with pytest.raises(PowerCut):
        data.create_topic("t", 1, CONFIG)
    storage.restart()
    with open_directory(storage) as data:
        assert "t" in data.topics
        append(data.log("t", 0))
        data.log("t", 0).flush()
        with after_power_cut(storage, tmp_path / "image") as left:
            assert "t" in left.topics
            assert stored(left.log("t", 0)) == stored(data.log("t", 0))
