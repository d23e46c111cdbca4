"""What the crash tests have found, each by itself."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import pytest

from octavo.log import DataDirectory, Isolation, Log, Origin
from octavo.records import BatchBuilder, read_batches
from octavo.records.control import end_transaction_marker
from tests.batches import TIME_MS
from tests.clock import Clock
from tests.crash.disk import PROCESS_DIED, Data, Names, Survival, write_image
from tests.crash.knowledge import Line, check_producers
from tests.crash.opening import open_directory as open_after
from tests.crash.storage import CrashStorage, FastStorage, Moment, PowerCut
from tests.crash.workload import stored

CONFIG: Final = {"internal.segment.bytes": "400", "file.delete.delay.ms": "0"}
COMPACTED: Final = CONFIG | {"internal.segment.bytes": "10000", "cleanup.policy": "compact"}
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


def send(log: Log, key: bytes, sequence: int, *, producer_id: int = 7, transactional: bool = True) -> int:
    """One record of a producer; its offset."""
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=transactional
    )
    builder.append(key, b"%d" % sequence, timestamp_ms=TIME_MS)
    return log.append(builder.build()).base_offset


def end(log: Log, *, commit: bool, producer_id: int = 7, coordinator_epoch: int = 0) -> None:
    marker = end_transaction_marker(
        commit, timestamp_ms=TIME_MS, producer_id=producer_id, producer_epoch=0, coordinator_epoch=coordinator_epoch
    )
    log.append(marker, origin=Origin.COORDINATOR)


def committed(log: Log) -> list[int]:
    return [record.offset for record in log.reader(isolation=Isolation.READ_COMMITTED).records()]


def open_directory(storage: CrashStorage) -> DataDirectory:
    return DataDirectory.open(storage.folder, storage=storage, clock=Clock())


def after_power_cut(storage: CrashStorage, folder: Path) -> DataDirectory:
    """Only what was synced is left."""
    write_image(storage.disk().image(SYNCED, Random(0)), folder)
    return open_after(folder, storage=FastStorage(), clock=Clock())


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


def test_what_was_aborted_stays_hidden_when_the_name_of_its_index_is_lost(
    storage: CrashStorage, tmp_path: Path
) -> None:
    """The index of aborted transactions is made later than the segment, whose names are on the disk by then."""
    with open_directory(storage) as data:
        data.create_topic("t", 1, CONFIG)
        log = data.log("t", 0)
        send(log, b"key", 0)
        log.flush()
        end(log, commit=False)
        log.roll()
        data.write_checkpoints()
        synced = storage.disk().image(SYNCED, Random(0))
        image = storage.disk().image(PROCESS_DIED, Random(0))
        index = f"t-0/{0:020d}.txnindex"
        write_image({name: image[name] for name in image if name != index or name in synced}, tmp_path / "image")
    with DataDirectory.open(tmp_path / "image", storage=FastStorage(), clock=Clock()) as left:
        assert left.log("t", 0).end_offset == 2
        assert committed(left.log("t", 0)) == []


def test_a_value_outlasts_the_one_in_its_place_that_is_not_decided_any_more(
    storage: CrashStorage, tmp_path: Path
) -> None:
    """Compaction goes by markers, which are behind what it cleans: they are on the disk before it begins."""
    with open_directory(storage) as data:
        data.create_topic("t", 1, COMPACTED)
        log = data.log("t", 0)
        append(log)
        send(log, b"key", 0)
        log.roll()
        end(log, commit=True)
        log.compact()
        with after_power_cut(storage, tmp_path / "image") as left:
            assert committed(left.log("t", 0)) == [1]


def test_a_producer_is_known_by_a_batch_that_compaction_empties_while_it_sends_another(
    storage: CrashStorage, tmp_path: Path
) -> None:
    """The other may be lost; so the one that was its last when compaction began is kept."""
    with open_directory(storage) as data:
        data.create_topic("t", 1, COMPACTED)
        log = data.log("t", 0)
        send(log, b"key", 0, transactional=False)
        append(log)
        log.roll()
        sent: list[int] = []

        def send_once(_: object) -> None:
            if not sent:
                sent.append(send(log, b"key", 1, transactional=False))

        log.compact(on_progress=send_once)
        assert sent
        with after_power_cut(storage, tmp_path / "image") as left:
            assert left.log("t", 0).producers.entries[7].last_sequence == 0


def test_a_transaction_whose_end_is_deleted_is_not_taken_for_open(storage: CrashStorage, tmp_path: Path) -> None:
    """Of segments before the start of a log some may be gone and others not: what they tell is no whole."""
    with open_directory(storage) as data:
        data.create_topic("t", 1, CONFIG)
        log = data.log("t", 0)
        send(log, b"key", 0)
        log.roll()
        end(log, commit=True)
        log.roll()
        start = send(log, b"key", 0, producer_id=8, transactional=False)
        log.flush()
        log.delete_records_before(start)
        image = storage.disk().image(SYNCED, Random(0))
        for name in [name for name in image if name.startswith(f"t-0/{1:020d}.")]:
            del image[name]  # its removal has come to the disk, that of the one before has not
        write_image(image, tmp_path / "image")
    with DataDirectory.open(tmp_path / "image", storage=FastStorage(), clock=Clock()) as left:
        assert left.log("t", 0).start_offset == start
        assert left.log("t", 0).last_stable_offset == start + 1


def test_a_snapshot_beyond_the_end_of_a_log_without_segments_is_removed(storage: CrashStorage, tmp_path: Path) -> None:
    """Truncating a whole log removes every segment; the new one's name and the removal of a snapshot may be lost."""
    with open_directory(storage) as data:
        data.create_topic("t", 1, CONFIG)
        log = data.log("t", 0)
        for _ in range(6):
            append(log)
        log.delete_records_before(2)
        data.write_checkpoints()
        image = storage.disk().image(PROCESS_DIED, Random(0))
    is_of_segment = (".log", ".index", ".timeindex", ".txnindex")
    left = {name: image[name] for name in image if not (name.startswith("t-0/") and name.endswith(is_of_segment))}
    assert f"t-0/{4:020d}.snapshot" in left
    write_image(left, tmp_path / "image")
    with DataDirectory.open(tmp_path / "image", storage=FastStorage(), clock=Clock()) as opened:
        log = opened.log("t", 0)
        assert (log.start_offset, log.end_offset) == (2, 2)
        assert list(log.folder.glob("*.snapshot")) == []
        append(log)
    with DataDirectory.open(tmp_path / "image", storage=FastStorage(), clock=Clock()) as opened:
        assert opened.log("t", 0).recovery.is_unremarkable, str(opened.log("t", 0).recovery)


def test_a_log_that_is_compacted_still_knows_what_it_was_opened_with(storage: CrashStorage, tmp_path: Path) -> None:
    """A producer's last marker may go before an earlier one; without snapshots only the earlier one is known then."""

    def compact(log: Log, key: bytes) -> None:
        """Remove data, then say when the marker without data may go, then remove it."""
        for _ in range(3):
            send(log, key, -1, producer_id=-1, transactional=False)
            log.roll()
            log.compact(Clock().now_ms + 1000)

    with open_directory(storage) as data:
        data.create_topic("t", 1, COMPACTED | {"delete.retention.ms": "0"})
        log = data.log("t", 0)
        send(log, b"key", 0)
        end(log, commit=True, coordinator_epoch=5)
        end(log, commit=True, coordinator_epoch=6)
        lineage = stored(log)
        compact(log, b"another key")
        send(log, b"last", 1, transactional=False)
        lineage += [batch for batch in stored(log) if batch.base_offset >= 3]
        image = storage.disk().image(PROCESS_DIED, Random(0))
    write_image({name: image[name] for name in image if not name.endswith(".snapshot")}, tmp_path / "image")
    with DataDirectory.open(tmp_path / "image", storage=FastStorage(), clock=Clock()) as left:
        log = left.log("t", 0)
        opened = Line.of(lineage, stored(log))
        assert log.producers.entries[7].coordinator_epoch == 5
        check_producers(log.producers.entries, opened, is_cleaned=True)
        compact(log, b"key")
        assert log.producers.entries[7].coordinator_epoch == 5
        check_producers(log.producers.entries, Line.of(lineage, stored(log), opened.left), is_cleaned=True)
        with pytest.raises(AssertionError):  # the batches that are left tell of neither marker
            check_producers(log.producers.entries, Line.of(lineage, stored(log)), is_cleaned=True)
