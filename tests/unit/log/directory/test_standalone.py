"""One partition by itself: in a data directory it has to be one of those that the directory knows."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from octavo.errors import BadDirectory
from octavo.log import DataDirectory, Log
from octavo.log.files.partition_metadata import read_topic_id, write_topic_id
from octavo.log.metadata import MetadataStore
from octavo.log.storage import DISK
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.logs import make_batch


def make(folder: Path) -> uuid.UUID:
    with DataDirectory.open(folder) as data:
        return data.create_topic("events").id


@pytest.mark.parametrize("name", ["events-1", "others-0"])
def test_a_partition_that_the_metadata_do_not_know_is_not_made(tmp_path: Path, name: str) -> None:
    make(tmp_path)
    with left_as_it_was(tmp_path), pytest.raises(BadDirectory, match="create_topic"):
        Log.open(tmp_path / name)


def test_one_of_another_folder_is_not_made(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    with DataDirectory.open(folders) as data:
        data.create_topic("events", 2)
    here = next(folder for folder in folders if (folder / "events-0").exists())
    for name in ("events-0", "events-1"):
        for folder in folders:
            if not (folder / name).exists():
                with pytest.raises(BadDirectory, match="the metadata of this directory"):
                    Log.open(folder / name)
    with Log.open(here / "events-0") as log:
        log.append(make_batch())


def test_one_that_the_metadata_know_is_made_as_they_know_it(tmp_path: Path) -> None:
    topic_id = make(tmp_path)
    for path in (tmp_path / "events-0").iterdir():
        path.unlink()
    (tmp_path / "events-0").rmdir()
    with Log.open(tmp_path / "events-0") as log:
        assert log.end_offset == 0
    assert read_topic_id(DISK, tmp_path / "events-0") == topic_id


def test_one_of_another_topic_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    write_topic_id(DISK, tmp_path / "events-0", uuid.uuid4())
    with left_as_it_was(tmp_path), pytest.raises(BadDirectory, match="another topic of this name"):
        Log.open(tmp_path / "events-0")


def test_the_leader_epoch_is_that_of_the_metadata(tmp_path: Path) -> None:
    make(tmp_path)
    store = MetadataStore.open([tmp_path], storage=DISK, read_only=False)
    store.set_partitions([replace(store.topics["events"].partitions[0], leader_epoch=7)])
    with Log.open(tmp_path / "events-0") as log:
        assert log.leader_epoch == 7


def test_a_file_is_not_put_aside_for_a_partition(tmp_path: Path) -> None:
    (tmp_path / "events-0").write_text("mine")
    with pytest.raises(BadDirectory, match="is a file"):
        Log.open(tmp_path / "events-0")
    assert (tmp_path / "events-0").read_text() == "mine"


def test_a_folder_without_metadata_may_have_any(tmp_path: Path) -> None:
    with Log.open(tmp_path / "events-7") as log:
        log.append(make_batch(2))
    with Log.open(tmp_path / "events-7", read_only=True) as watched:
        assert watched.end_offset == 2


def test_the_log_of_the_metadata_is_not_opened_to_be_written(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / "meta.properties").unlink()
    with left_as_it_was(tmp_path), pytest.raises(BadDirectory, match="by Kafka and DataDirectory alone"):
        Log.open(tmp_path / "__cluster_metadata-0")
