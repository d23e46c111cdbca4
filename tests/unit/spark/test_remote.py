"""Logs in a bucket: an S3-compatible server on loopback has them."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from octavo.errors import BadDirectory, InvalidInput
from tests.unit.spark.queries import offsets, plan, read, read_tasks
from tests.unit.spark.test_committed import write_workload
from tests.unit.spark.topics import write_topic
from tests.workload.generator import Shape

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of boto and its like
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Bucket:
    """A bucket, and its address."""

    def __init__(self, port: int) -> None:
        self._query = f"?region=us-east-1&scheme=http&endpoint_override=127.0.0.1%3A{port}"
        self._client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}", region_name="us-east-1")
        self._client.create_bucket(Bucket="logs")

    def address(self, path: str, scheme: str = "s3") -> str:
        """Of something in it."""
        return f"{scheme}://logs/{path}{self._query}"

    def put(self, folder: Path, prefix: str) -> None:
        """Copy a folder there, as a backup does."""
        for path in folder.rglob("*"):
            if path.is_file():
                self._client.upload_file(str(path), "logs", f"{prefix}/{path.relative_to(folder)}")

    def remove(self, key: str) -> None:
        """Remove an object."""
        self._client.delete_object(Bucket="logs", Key=key)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    """An empty bucket on a server of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
        server.start()
        _, port = server.get_host_and_port()
        yield Bucket(port)
        server.stop()


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


def test_an_address_of_this_machine_is_a_path(tmp_path: Path) -> None:
    write_topic(tmp_path, batches=2)
    shutil.copytree(tmp_path, tmp_path / "a b")
    assert offsets(f"file://{tmp_path}/a%20b") == offsets(f"file:{tmp_path}") == list(range(10))
