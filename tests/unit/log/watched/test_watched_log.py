"""Who only watches: logs that another process writes, and changes in any way."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import BadDirectory, FormatError, UnknownPartition
from octavo.log import DataDirectory, Log
from octavo.log.checkpoints import WatchedCheckpoints
from octavo.log.consumer import Consumer
from octavo.log.names import LOG, TopicPartition, file_name
from octavo.log.partition_folders import METADATA_PARTITION
from octavo.log.storage import DISK
from octavo.log.view import View
from octavo.log.watched.watched_directory import WatchedDirectory
from tests.unit.log.failing import FailingDisk
from tests.unit.log.logs import SMALL, TIME_MS, keys, make_batch, open_log


def test_a_watcher_sees_what_is_appended_rolled_and_deleted(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data, DataDirectory.open(tmp_path, read_only=True) as watching:
        data.create_topic("events", config=SMALL | {"retention.ms": "1000", "file.delete.delay.ms": "0"})
        log = data.log("events", 0)
        for number in range(40):
            log.append(make_batch(first=number))
            assert watching.log("events", 0).end_offset == number + 1
            assert keys(watching.log("events", 0), max(0, number - 3)) == list(range(max(0, number - 3), number + 1))
        watched = watching.log("events", 0)
        assert sorted(watching.topics) == ["events"]
        assert watched.offset_for_timestamp(TIME_MS) == (0, TIME_MS, 0)
        log.delete_oldest(2)
        log.delete_files(2**62)
        assert watched.refresh()
        assert watched.start_offset == log.start_offset > 0
        assert keys(watched) == keys(log)


def test_a_watcher_does_not_see_a_batch_that_is_not_all_there(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events")
        data.log("events", 0).append(make_batch(2))
        data.log("events", 0).flush()
        path = tmp_path / "events-0" / "00000000000000000000.log"
        whole = path.read_bytes()
        torn = bytearray(whole)
        torn[7] = 2  # its base offset
        with DataDirectory.open(tmp_path, read_only=True) as watching:
            for size in (1, 20, 60, len(torn) - 1):
                path.write_bytes(whole + torn[:size])
                assert watching.log("events", 0).end_offset == 2
            path.write_bytes(whole + torn[:-1] + b"x")  # room was made, the last byte is not written yet
            assert watching.log("events", 0).end_offset == 2
            path.write_bytes(whole + torn)
            assert watching.log("events", 0).end_offset == 4
        path.write_bytes(whole)


def test_folders_of_different_clusters_are_not_watched_as_one_directory(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        with DataDirectory.open(folder) as data:
            data.create_topic("events")
    ids = {folder: (folder / "meta.properties").read_text().split("cluster.id=")[1][:22] for folder in (one, two)}
    with pytest.raises(BadDirectory, match=f"two: it belongs to cluster {ids[two]}, but .*one to cluster {ids[one]}"):
        DataDirectory.open([one, two], read_only=True)


def test_a_watcher_touches_nothing(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events")
        data.log("events", 0).append(make_batch(2))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with DataDirectory.open(tmp_path, read_only=True) as watching:
        assert keys(watching.log("events", 0)) == [0, 1]
        with pytest.raises(UnknownPartition):
            watching.log("events", 1)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_watcher_looks_again_when_segments_are_gone(tmp_path: Path) -> None:
    with open_log(tmp_path, retention_ms="-1") as log:
        for number in range(30):
            log.append(make_batch(first=number, time_ms=TIME_MS + number))
        watched = [Log.open(tmp_path / "topic-0", read_only=True) for _ in range(3)]
        log.delete_oldest(2)
        log.delete_files(2**62)
        start = log.start_offset
        assert watched[0].offset_for_timestamp(TIME_MS) == (start, TIME_MS + start, 0)
        assert watched[1].max_timestamp_offset() == (29, TIME_MS + 29, 0)
        assert watched[2].read(start, 1).records == log.read(start, 1).records


def test_a_watcher_notices_a_truncation_when_the_log_has_grown_again(tmp_path: Path) -> None:
    with open_log(tmp_path, internal_segment_bytes="100000") as log:
        for number in range(10):
            log.append(make_batch(first=number))
        with Log.open(tmp_path / "topic-0", read_only=True) as watched:
            assert keys(watched) == list(range(10))
            before = watched.generation
            log.truncate_to(5)
            for number in range(100, 120):
                log.append(make_batch(first=number, size=50))
            assert watched.refresh()
            assert watched.generation == before + 1
            assert watched.end_offset == log.end_offset == 25
            assert keys(watched) == [*range(5), *range(100, 120)]
            assert not watched.refresh()
            log.truncate_to(20)
            assert watched.refresh()
            assert watched.generation == before + 2
            assert watched.end_offset == 20
            log.append(make_batch())
            assert watched.refresh()
            assert watched.generation == before + 2  # it has only grown


@pytest.mark.parametrize("rolls", [False, True])
def test_a_watcher_notices_one_through_segments_of_the_same_names_and_sizes(tmp_path: Path, rolls: bool) -> None:
    with open_log(tmp_path) as log:
        for number in range(10, 40):
            log.append(make_batch(first=number))
        if rolls:
            log.roll()  # there is no batch in the last segment
        with Log.open(tmp_path / "topic-0", read_only=True) as watched:
            assert keys(watched) == list(range(10, 40))
            log.truncate_to(10)
            log.delete_files(2**62)
            for number in range(50, 70):
                log.append(make_batch(first=number))
            if rolls:
                log.roll()
            assert [segment.size for segment in watched.segments] == [segment.size for segment in log.segments]
            assert watched.refresh()
            assert watched.generation == 1
            assert keys(watched) == keys(log) == [*range(10, 20), *range(50, 70)]


@pytest.mark.parametrize("error", [FileNotFoundError(), FormatError(0, "there is no batch")])
def test_a_watcher_asks_again_when_a_file_is_no_longer_what_it_was(tmp_path: Path, error: Exception) -> None:
    with open_log(tmp_path) as log, Log.open(tmp_path / "topic-0", read_only=True) as watched:
        log.append(make_batch(3))
        asked: list[int] = []

        def ask(view: View) -> int:
            asked.append(view.end_offset)
            if len(asked) == 1:
                raise error
            return view.end_offset

        assert watched._in_view(ask) == 3
        assert asked == [0, 3]

        def fail(view: View) -> int:
            raise error

        with pytest.raises(type(error)):
            watched._in_view(fail)


def test_a_watcher_notices_that_a_topic_was_made_anew(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data, DataDirectory.open(tmp_path, read_only=True) as watching:
        for count in (5, 7):
            data.create_topic("events")
            data.log("events", 0).append(make_batch(count, first=count))
            assert keys(watching.log("events", 0)) == list(range(count, 2 * count))
            data.delete_topic("events")


def test_the_high_watermark_is_never_behind_the_end(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(3))
    for name in ("log-start-offset-checkpoint", "replication-offset-checkpoint"):
        (tmp_path / name).write_text("0\n1\ntopic 0 100\n")
    with Log.open(tmp_path / "topic-0", read_only=True) as watched:
        assert (watched.start_offset, watched.high_watermark, watched.end_offset) == (3, 3, 3)
        assert watched.read(3, 100).size == 0


def test_an_index_that_lies_does_not_hide_the_end(tmp_path: Path) -> None:
    with open_log(tmp_path, internal_segment_bytes="100000") as log:
        for number in range(10):
            log.append(make_batch(first=number))
        path = log.segments[0].path
    damaged = bytearray(path.read_bytes())
    last = len(damaged) // 10 * 9
    damaged[last + 70] ^= 1  # the last batch, to which the index leads
    path.write_bytes(damaged)
    with Log.open(tmp_path / "topic-0", read_only=True) as watched:
        assert watched.end_offset == 9
        assert keys(watched) == list(range(9))


def test_a_watcher_notices_that_the_last_batch_is_no_longer_whole(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        log.append(make_batch(2))
        log.append(make_batch(3, first=2))
        path = log.segments[0].path
    with Log.open(tmp_path / "topic-0", read_only=True) as watched:
        assert watched.end_offset == 5
        path.write_bytes(path.read_bytes()[:-1])  # its header is still there
        assert watched.refresh()
        assert (watched.end_offset, watched.generation) == (2, 1)
        assert keys(watched) == [0, 1]


def test_a_watcher_notices_that_a_segment_was_put_in_place_of_another(tmp_path: Path) -> None:
    """As a compaction does, here with as many bytes as there were."""
    for name, first in (("one", 10), ("two", 60)):
        (tmp_path / name).mkdir()
        with open_log(tmp_path / name) as log:
            for number in range(first, first + 30):
                log.append(make_batch(first=number))
    with Log.open(tmp_path / "one" / "topic-0", read_only=True) as watched:
        assert keys(watched) == list(range(10, 40))
        old, new = watched.segments[0].path, tmp_path / "two" / "topic-0" / watched.segments[0].path.name
        assert old.stat().st_size == new.stat().st_size
        new.rename(old)
        assert watched.refresh()
        count = watched.segments[1].base_offset
        assert keys(watched) == [*range(60, 60 + count), *range(10 + count, 40)]


def _watch(folder: Path, disk: FailingDisk, count: int) -> WatchedDirectory:
    watching = WatchedDirectory([folder], disk)
    for number in range(count):
        watching.log("events", number)
    return watching


def test_many_partitions_cost_the_metadata_and_checkpoints_once(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data:
        data.create_topic("events", 40)
        for number in range(40):
            data.log("events", number).append(make_batch())
    one, many = FailingDisk(), FailingDisk()
    _watch(tmp_path, one, 1).close()
    with _watch(tmp_path, many, 40) as watching:
        assert keys(watching.log("events", 39)) == [0]
        for name in ("meta.properties", "replication-offset-checkpoint", "log-start-offset-checkpoint"):
            assert many.opened[name] == one.opened[name] == 1, name
        assert many.opened.total() <= one.opened.total() + 40 * 3


def test_a_watcher_stays_in_its_directory(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with DataDirectory.open(tmp_path / name) as data:
            data.create_topic("events")
    with DataDirectory.open(tmp_path / "one", read_only=True) as watching:
        for topic, partition in (("../two/events", 0), ("events", -1), ("__cluster_metadata", 0), ("", 0)):
            with pytest.raises(UnknownPartition):
                watching.log(topic, partition)


def test_nothing_is_seen_of_a_partition_that_the_checkpoint_does_not_have(tmp_path: Path) -> None:
    checkpoint = tmp_path / "replication-offset-checkpoint"
    with open_log(tmp_path) as log:
        for number in range(30):
            log.append(make_batch(first=number))
        log.delete_records_before(5)
    checkpoint.unlink()
    with Log.open(tmp_path / "topic-0", read_only=True) as watched:
        assert (watched.recorded_high_watermark, watched.high_watermark) == (None, 30)
        checkpoint.touch()  # as Kafka leaves it when it starts
        assert watched.refresh()
        assert (watched.recorded_high_watermark, watched.high_watermark, watched.end_offset) == (0, 5, 30)
        assert watched.read(5, 1000).size == 0
        checkpoint.write_text("0\n1\ntopic 0 100\n")
        assert watched.refresh()
        assert (watched.recorded_high_watermark, watched.high_watermark) == (100, 30)
        checkpoint.write_text("0\n1\ntopic 0 x\n")
        with pytest.raises(BadDirectory, match="replication-offset-checkpoint"):
            watched.refresh()


def test_the_metadata_are_in_no_checkpoint_and_are_seen(tmp_path: Path) -> None:
    (tmp_path / "replication-offset-checkpoint").touch()
    checkpoints = WatchedCheckpoints(DISK, tmp_path)
    assert checkpoints.high_watermark(METADATA_PARTITION) is None
    assert checkpoints.high_watermark(TopicPartition("topic", 0)) == 0


def test_a_topic_that_is_deleted_hides_nothing_of_others(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path) as data, DataDirectory.open(tmp_path, read_only=True) as watching:
        for name in ("events", "other"):
            data.create_topic(name)
            data.log(name, 0).append(make_batch(3))
        data.delete_topic("other")
        assert keys(watching.log("events", 0)) == [0, 1, 2]


def test_a_partition_that_is_being_made_is_not_there_yet(tmp_path: Path) -> None:
    partition = TopicPartition("events", 0)
    (tmp_path / partition.folder).mkdir()
    with (
        DataDirectory.open(tmp_path, read_only=True) as data,
        Consumer(data, {"auto.offset.reset": "earliest"}) as assigned,
        Consumer(data, {"auto.offset.reset": "earliest"}) as subscribed,
    ):
        assigned.assign([partition])
        subscribed.subscribe(["events"])
        for _ in range(2):
            with pytest.raises(UnknownPartition, match="events-0 is being made: it has no segment yet"):
                data.log(*partition)
            assert assigned.poll() == subscribed.poll() == []
            assert assigned.poll_arrow() is None
        (tmp_path / partition.folder / file_name(0, LOG)).write_bytes(make_batch(3))
        assert data.log(*partition).end_offset == 3
        assert len(assigned.poll()) == len(subscribed.poll()) == 3
        (tmp_path / partition.folder / file_name(0, LOG)).unlink()  # it is deleted, and made anew
        assert assigned.poll() == subscribed.poll() == []
