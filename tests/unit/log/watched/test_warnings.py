"""Reading a directory that is not as it should be: what can be read is read, and what is missing is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.errors import OctavoError
from octavo.log import Consumer, DataDirectory, Isolation, Log
from octavo.log.files.text_checkpoint import REPLICATION
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.logs import keys, make_batch

METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with DataDirectory.open(tmp_path / "data") as data:
        data.create_topic("events", partitions=2)
        for partition in range(2):
            data.log("events", partition).append(make_batch(5))
    return tmp_path / "data"


def test_logs_are_read_though_the_metadata_are_incomplete(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = folder / METADATA_LOG
    log.rename(log.with_name("00000000000000000042.log"))  # the snapshot that went before it is lost
    with left_as_it_was(folder):
        with DataDirectory.open(folder, read_only=True) as watched:
            assert [keys(watched.log("events", partition)) for partition in range(2)] == [list(range(5))] * 2
            consumer = Consumer(watched, group_id=None, auto_offset_reset="earliest")
            consumer.assign([("events", 0)])
            assert len(consumer.poll()) == 5
            with pytest.raises(OctavoError, match="no snapshot goes as far as offset 42"):
                _ = watched.topics  # which is asked of the metadata alone
        assert [record.getMessage() for record in caplog.records if "no snapshot goes as far" in record.getMessage()]
        assert len(caplog.records) == 1  # for both partitions
        with Log.open(folder / "events-0", read_only=True) as single:
            assert keys(single) == list(range(5))
        with pytest.raises(OctavoError, match="no snapshot goes as far as offset 42"):
            DataDirectory.open(folder)  # to write, everything has to be known


def test_logs_are_read_though_the_metadata_are_damaged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = folder / METADATA_LOG
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    with DataDirectory.open(folder, read_only=True) as watched:
        assert keys(watched.log("events", 0)) == list(range(5))
    assert "Logs are read all the same" in caplog.text


def test_a_folder_of_several_brokers_directories_is_told_from_an_empty_one(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    DataDirectory.open(folder.parent / "other").close()
    with DataDirectory.open(folder.parent, read_only=True) as watched:
        assert watched.partitions() == []
    assert "has no partitions, but data directories in it: open one of them (data, other)" in caplog.text
    caplog.clear()
    (folder.parent / "empty").mkdir()
    for quiet in (folder, folder.parent / "empty"):
        DataDirectory.open(quiet, read_only=True).close()
    assert caplog.text == ""


def test_records_that_are_hidden_for_want_of_a_high_watermark_are_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / REPLICATION).write_text("0\n1\nevents 0 5\n")
    with DataDirectory.open(folder, read_only=True) as watched:
        assert keys(watched.log("events", 0)) == list(range(5))
        assert caplog.text == ""
        hidden = watched.log("events", 1)
        assert list(hidden.reader().records()) == []
        assert "events-1: replication-offset-checkpoint does not name this partition" in caplog.text
        assert "none of its 5 offsets is shown" in caplog.text
        assert len(list(hidden.reader(isolation=Isolation.LOG_END).records())) == 5
        watched.log("events", 1)
        assert len(caplog.records) == 1
    caplog.clear()
    with Log.open(folder / "events-1", read_only=True):
        assert "does not name this partition" in caplog.text
