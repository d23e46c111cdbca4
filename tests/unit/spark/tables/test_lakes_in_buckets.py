"""Delta and Iceberg tables in a bucket: an S3-compatible server on loopback has them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from octavo.errors import BadTable, ExportConflict, InvalidInput
from octavo.spark.tables.addresses import parse_address
from octavo.spark.tables.delta import DeltaTarget
from octavo.spark.tables.iceberg import IcebergTarget
from tests.unit.spark.bucket import Bucket
from tests.unit.spark.tables.lakes import created, export, open_lake, reached, write

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of boto and its like
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

Opener = Callable[[Callable[..., Any]], Any]


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, bucket: Bucket, tmp_path: Path) -> Opener:
    """A place for a table in the bucket; call it with `created` or `open_lake`."""
    kind = str(request.param)
    catalog = {"uri": f"sqlite:///{tmp_path}/catalog.db"} if kind == "iceberg" else {}
    address = bucket.address(f"{kind}-{tmp_path.name}", "s3a" if kind == "delta" else "s3")
    return lambda opened: opened(kind, address, **catalog)


def test_a_table_in_a_bucket_is_written_as_on_a_disk(lake: Opener) -> None:
    with lake(created) as target:
        for end in (4, 7):
            export(target, end)
        progress = target.progress()
        assert progress == reached(7)
        merged = write(target.begin(progress, progress), range(7))
        target.replace(list(target.files()), [merged])
    with lake(open_lake) as target:
        assert target.progress() == progress
        assert list(target.files()) == [merged]
        assert list(rows(target)["offset"].sort()) == list(range(7))


def rows(target: DeltaTarget | IcebergTarget) -> pl.DataFrame:
    """Read the table with Polars, from its bucket."""
    if isinstance(target, IcebergTarget):
        return pl.scan_iceberg(target._existing, reader_override="pyiceberg").collect()
    return pl.scan_delta(target.address.plain, storage_options=target._options).collect()


@pytest.mark.parametrize("overtaken", ["before", "after"])
def test_of_two_exports_to_a_bucket_one_is_committed(
    lake: Opener, overtaken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other is faster before the commit has looked at the table, or after that."""
    with lake(created) as first, lake(open_lake) as second:
        before = second.progress()
        place = second.begin(before, reached(5))
        files = [write(place, range(5))]
        if overtaken == "before":
            export(first, 3)
        else:
            monkeypatch.setattr(second, "_sync_names", lambda _: export(first, 3))
        with pytest.raises(ExportConflict):
            second.commit(files, before, reached(5))
        assert second.progress() == reached(3)
        assert list(rows(second)["offset"].sort()) == [0, 1, 2]
        assert not place.root.storage().exists(place.root.path() / files[0].path)


def test_a_bucket_with_other_objects_is_left_alone(tmp_path: Path, bucket: Bucket) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious.txt").write_text("mine")
    bucket.put(tmp_path / "other", "other")
    with pytest.raises(BadTable, match=r"s3://logs/other: something else"):
        open_lake("delta", bucket.address("other"))
    with pytest.raises(InvalidInput, match="needs a catalog"):
        open_lake("iceberg", bucket.address("other"))
    with pytest.raises(BadTable, match=r"s3://logs/other: something else"):
        open_lake("iceberg", bucket.address("other"), uri=f"sqlite:///{tmp_path}/catalog.db")


def test_keys_in_an_address_reach_the_libraries_and_no_message() -> None:
    address = parse_address("s3n://me:se%2Fcret@bucket/a/b/?region=eu&endpoint_override=host%3A9000&scheme=http")
    assert address.plain == str(address) == "s3://bucket/a/b"
    assert address.s3 == {
        "region": "eu",
        "endpoint": "http://host:9000",
        "access_key": "me",
        "secret_key": "se/cret",
    }
    assert parse_address("gs://bucket/a?x=y")[1:] == ("gs://bucket/a", {})
    assert parse_address("file:///data/a%20b").plain == "/data/a b"
