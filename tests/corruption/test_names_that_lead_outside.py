"""Names of topics that would lead out of the directory, or nowhere, if they became paths."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from octavo.errors import BadDirectory, CorruptFile, InvalidInput, OctavoError, UnknownPartition
from octavo.log import DataDirectory, Log
from octavo.log.files.text_checkpoint import LOG_START, RECOVERY_POINT, REPLICATION, read_offsets
from octavo.log.metadata import handover
from octavo.log.storage import DISK
from octavo.schemas.metadata.topics import PartitionRecord, TopicRecord
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.logs import make_batch
from tests.unit.log.metadata.forging import add_metadata

BAD_NAMES = ["../victim", "..", ".", "", "/proc/victim", "a/b", "a\0b", "a\nb", "a b", "x" * 250, "ä"]
TOPIC_ID = UUID(int=4711)


def partition_record(number: int = 0) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=TOPIC_ID,
        replicas=(1,),
        isr=(1,),
        removing_replicas=(),
        adding_replicas=(),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
    )


def make_directory(root: Path) -> Path:
    """A data directory beside folders that belong to somebody else."""
    with DataDirectory.open(root / "data") as data:
        data.create_topic("events")
        data.log("events", 0).append(make_batch(3))
    for name in ("victim", "victim-0", "data-0"):
        (root / name).mkdir()
        (root / name / "precious").write_text("not ours")
    return root / "data"


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_topic_in_the_metadata_that_has_no_topics_name_is_refused_and_nothing_is_touched(
    tmp_path: Path, name: str
) -> None:
    data = make_directory(tmp_path)
    add_metadata(data, TopicRecord(name=name, topic_id=TOPIC_ID), partition_record())
    with left_as_it_was(tmp_path):
        with pytest.raises(CorruptFile, match="topic"):
            DataDirectory.open(data)
        with pytest.raises(CorruptFile, match="topic"):
            handover([data])
        with pytest.raises(CorruptFile, match="topic"):
            Log.open(data / "events-0")


def test_a_partition_in_the_metadata_with_a_number_below_0_is_refused(tmp_path: Path) -> None:
    data = make_directory(tmp_path)
    add_metadata(data, TopicRecord(name="minus", topic_id=TOPIC_ID), partition_record(-1))
    with left_as_it_was(tmp_path), pytest.raises(CorruptFile, match="number -1"):
        DataDirectory.open(data)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_what_callers_call_a_topic_is_checked_before_it_becomes_a_path(tmp_path: Path, name: str) -> None:
    data = make_directory(tmp_path)
    with DataDirectory.open(data) as opened:
        with pytest.raises(InvalidInput):
            opened.create_topic(name)
        for change in (opened.delete_topic, lambda topic: opened.set_config(topic, {"retention.ms": "1"})):
            with pytest.raises(UnknownPartition):
                change(name)
        with pytest.raises(UnknownPartition):
            opened.log(name, 0)
    with DataDirectory.open(data, read_only=True) as watched, pytest.raises(UnknownPartition):
        watched.log(name, 0)


@pytest.mark.parametrize("name", ["../victim", "..", ".", "a/b", "a\0b", "x" * 250, "ä"])
def test_checkpoints_name_topics_only(tmp_path: Path, name: str) -> None:
    data = make_directory(tmp_path)
    for file in (RECOVERY_POINT, LOG_START, REPLICATION):
        (data / file).write_text(f"0\n1\n{name} 0 3\n")
        with pytest.raises(CorruptFile, match="has no place in a checkpoint"):
            read_offsets(DISK, data / file)
    with DataDirectory.open(data) as opened:
        assert sorted(found.file for found in opened.ignored) == sorted([RECOVERY_POINT, LOG_START, REPLICATION])
        assert opened.log("events", 0).end_offset == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "data-0", "victim", "victim-0"]


def test_a_path_with_a_nul_in_it_is_refused_like_any_other_bad_path(tmp_path: Path) -> None:
    for path in (f"{tmp_path}/a\0b", f"{tmp_path}/a\0b/events-0"):
        with pytest.raises((BadDirectory, InvalidInput)):
            DataDirectory.open(path)
        with pytest.raises((BadDirectory, InvalidInput)):
            DataDirectory.open(path, read_only=True)
        with pytest.raises(OctavoError):
            Log.open(path)
        with pytest.raises(OctavoError):
            Log.open(path, read_only=True)


def test_of_a_deleted_partition_that_is_a_link_only_the_link_goes(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    link = folder / f"gone-0.{'0' * 32}-delete"
    link.symlink_to(tmp_path / "victim")
    with DataDirectory.open(folder) as data:
        assert data.delete_files() == 1
    assert not link.is_symlink()
    assert (tmp_path / "victim" / "precious").read_text() == "not ours"


def test_what_a_link_under_a_temporary_name_leads_to_is_not_written(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    for name in (RECOVERY_POINT, REPLICATION, ".kafka_cleanshutdown"):
        (folder / f"{name}.tmp").symlink_to(tmp_path / "victim" / "precious")
    with DataDirectory.open(folder) as data:
        data.log("events", 0).append(make_batch(3, first=3))
    assert (tmp_path / "victim" / "precious").read_text() == "not ours"
    with DataDirectory.open(folder) as data:
        assert data.log("events", 0).end_offset == 6
