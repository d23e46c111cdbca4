"""Logs in a bucket: an S3-compatible server on loopback has them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyarrow.fs import FileSystem, LocalFileSystem

from octavo.errors import BadDirectory, InvalidInput
from octavo.log import DataDirectory
from octavo.spark.files import RemoteFile, Root, shown
from octavo.spark.options import read_options
from tests.unit.log.reading.test_segment_portions import write as write_segments
from tests.unit.spark.bucket import Bucket
from tests.unit.spark.queries import offsets, plan, read, read_tasks
from tests.unit.spark.test_committed import write_workload
from tests.unit.spark.topics import batch, write_segment, write_topic
from tests.workload.generator import Shape

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of boto and its like
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_a_bucket_is_read_as_a_directory_is(tmp_path: Path, bucket: Bucket) -> None:
    write_topic(tmp_path, partitions=2, batches=40)
    bucket.put(tmp_path, "broker-1/data")
    for path in ("broker-1/data", "broker-*/data", "broker-1/data/events-*"):
        assert read(bucket.address(path)) == read(tmp_path)
    assert offsets(bucket.address("broker-1/data/events-1", "s3a")) == list(range(200))
    ranged = {
        "subscribe": "events",
        "startingOffsets": '{"events":{"0":33,"1":190}}',
        "endingOffsets": '{"events":{"0":77,"1":-1}}',
        "maxBytesPerPartition": "600",
        "includeBatchInfo": "true",
    }
    ours, theirs = read(bucket.address("broker-1/data"), **ranged), read(tmp_path, **ranged)
    assert len(ours) == 54
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.pop("file") == f"logs/broker-1/data/{Path(other.pop('file')).relative_to(tmp_path)}"
        assert mine == other


def test_segments_that_overlap_in_a_bucket_are_read_as_in_a_directory(tmp_path: Path, bucket: Bucket) -> None:
    path = write_segments(tmp_path, {0: [0, 5, 20], 10: [10, 11, 12], 15: [15, 16, 21, 22], 30: [30, 31]})
    bucket.put(path, "overlap/events-0")
    assert offsets(bucket.address("overlap")) == offsets(path) == [0, 5, 20, 21, 22, 30, 31]


def test_small_reads_that_lie_near_each_other_are_one_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 1000
    (tmp_path / "file").write_bytes(data)
    file = RemoteFile(LocalFileSystem(), tmp_path / "file")
    requests: list[tuple[int, int]] = []
    read_remote = RemoteFile._read

    def count(file: RemoteFile, size: int, position: int) -> bytes:
        requests.append((size, position))
        return read_remote(file, size, position)

    monkeypatch.setattr(RemoteFile, "_read", count)
    for position in (1000, 1001, 60_000, 1000, 66_500, 255_900, 255_999, 256_000, 300_000):
        assert file.read_at(200, position) == data[position : position + 200]
    assert [position for _, position in requests] == [1000, 66_500, 255_900]
    assert file.read_at(100_000, 7) == data[7:100_007]


def test_committed_data_are_read_from_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    committed, _ = write_workload(tmp_path, 7, Shape(transactions=4, hangs=True), steps=80)
    bucket.put(tmp_path, "committed")
    options = {"isolation_level": "read_committed", "maxBytesPerPartition": "900"}
    assert offsets(bucket.address("committed"), **options) == committed


def test_an_object_that_goes_under_a_query_is_lost_data(tmp_path: Path, bucket: Bucket) -> None:
    write_topic(tmp_path, batches=40)
    bucket.put(tmp_path, "going")
    reader, tasks, schema = plan(bucket.address("going"), failOnDataLoss="false", maxBytesPerPartition="600")
    first, second, *_ = sorted((tmp_path / "events-0").glob("*.log"))
    bucket.remove(f"going/events-0/{first.name}")
    table = read_tasks(reader, tasks, schema)
    assert table.column("offset").to_pylist() == list(range(int(second.stem), 200))


def test_an_object_that_goes_while_it_is_read_is_told(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octavo.spark.task_reader._WINDOW", 1024)
    monkeypatch.setattr("octavo.spark.joined._FEW_ROWS", 1)
    write_segment(tmp_path)
    bucket.put(tmp_path, "gone")
    reader, tasks, _ = plan(bucket.address("gone"))
    rows = iter(reader.read(tasks[0]))
    next(rows)
    bucket.remove("gone/events-0/00000000000000000000.log")
    with pytest.raises(BadDirectory, match="cannot be read any more at byte "):
        list(rows)


def test_an_object_that_is_put_again_under_a_query_is_read_as_it_is_now(tmp_path: Path, bucket: Bucket) -> None:
    write_topic(tmp_path, batches=4)
    bucket.put(tmp_path, "again")
    planned = plan(bucket.address("again"))
    with DataDirectory.open(tmp_path) as data:
        data.log("events", 0).append(batch(20))
    bucket.put(tmp_path, "again")
    assert read_tasks(*planned).column("offset").to_pylist() == list(range(20))
    assert offsets(bucket.address("again")) == list(range(25))


def test_objects_are_told_apart_though_they_were_put_at_the_same_time(tmp_path: Path, bucket: Bucket) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(b"same")
    bucket.put(tmp_path, "apart")
    root = Root(bucket.address("apart"))
    storage = root.storage()
    first, second = storage.files(root.path(), ".log").values()
    assert first.identity != second.identity
    assert first == storage.status(root.path() / "a.log")
    assert storage.identity(storage.open(root.path() / "a.log")) == first.identity


def test_objects_are_closed_when_they_are_read(tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    write_topic(tmp_path, batches=20)
    bucket.put(tmp_path, "closed")
    reader, tasks, schema = plan(bucket.address("closed"))
    files: list[RemoteFile] = []
    opened = RemoteFile.__init__

    def open_and_note(file: RemoteFile, filesystem: FileSystem, path: Path) -> None:
        opened(file, filesystem, path)
        files.append(file)

    monkeypatch.setattr(RemoteFile, "__init__", open_and_note)
    assert read_tasks(reader, tasks, schema).num_rows == 100
    assert len(files) > 1
    assert all(file.is_closed for file in files)


def test_damage_is_put_aside_in_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    from tests.unit.spark.test_faults import FIRST, damage

    write_topic(tmp_path, batches=4)
    damage(tmp_path / "events-0" / FIRST, 1)
    bucket.put(tmp_path, "damaged")
    aside = bucket.address("aside")
    found = offsets(bucket.address("damaged"), onCorruption="quarantine", quarantinePath=aside)
    assert found == [*range(5), *range(10, 20)]


def test_addresses_that_lead_nowhere_are_answered(bucket: Bucket) -> None:
    with pytest.raises(BadDirectory, match="there is no such file or folder"):
        read(bucket.address("nowhere"))
    with pytest.raises(BadDirectory, match="matches this pattern"):
        read(bucket.address("nowhere/*"))
    with pytest.raises(InvalidInput, match="nothing here reads gopher://"):
        read("gopher://somewhere/data")


@pytest.mark.parametrize("password", ["Geheim", "Ge/heim", "Ge%2Fheim", "Ge@heim", "Ge heim"])
def test_keys_and_passwords_are_never_shown(bucket: Bucket, password: str) -> None:
    query = bucket.address("").partition("?")[2]
    said = []
    for address in (f"logs/nowhere?{query}", f"logs/nowhere/*?{query}", "logs/nowhere?secret=Geheim"):
        for scheme in ("s3", "s3a", "gopher"):
            given = f"{scheme}://me:{password}@{address}"
            with pytest.raises((BadDirectory, InvalidInput)) as refused:
                read(given)
            said += [str(refused.value), repr(refused.value)]
            said += [repr(Root(given)), repr(read_options({"path": given, "quarantinePath": given}))]
    assert [each for each in said if "heim" in each or "me:" in each] == []
    assert all("logs/nowhere" in each for each in said if "no such file" in each)


def test_addresses_are_shown_but_for_their_secrets() -> None:
    for address, told in (
        ("s3://me:x@bucket/a@b", "s3://bucket/a@b"),
        ("s3://bucket/a@b?region=x", "s3://bucket/a@b"),
        ("hdfs://node:8020/a@b", "hdfs://node:8020/a@b"),
        ("abfs://container@account/a", "abfs://container@account/a"),
        ("/data/a?b:c@d", "/data/a?b:c@d"),
    ):
        assert shown(address) == told


def test_an_address_of_this_machine_is_a_path(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    shutil.copytree(tmp_path, tmp_path / "a b")
    assert offsets(f"file://{tmp_path}/a%20b") == offsets(f"file:{tmp_path}") == list(range(10))
