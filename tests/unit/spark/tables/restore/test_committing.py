"""An import that dies between the topics and the commit leaves nothing that the next one does not clear up."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID

import pytest

from octavo.errors import BadDirectory, InvalidInput
from octavo.log import DataDirectory, StagedFile, StagedWriter
from octavo.spark.tables.restore.committing import ImportedTopic, TargetLogs
from tests.unit.spark.topics import batch

TOPIC_ID = UUID(int=4711)


def topics(partitions: int = 1, **config: str) -> dict[str, ImportedTopic]:
    ends = dict.fromkeys(range(partitions), 10)
    return {"orders": ImportedTopic({0: 0}, ends, TOPIC_ID, {"retention.ms": "-1", **config})}


def staged(logs: TargetLogs) -> list[StagedFile]:
    writer = StagedWriter(logs.area, sync=True)
    writer.add("orders", 0, batch(0, 10))
    file = writer.finish()
    assert file is not None
    return [file]


def die_before_the_commit(folder: Path) -> None:
    """Let an import die when its topics are there, as SIGKILL would have it."""
    logs = TargetLogs(folder, 0)
    files = staged(logs)
    dying = mock.patch.object(DataDirectory, "commit_staged", side_effect=KeyboardInterrupt)
    with dying, pytest.raises(KeyboardInterrupt):
        logs.commit(files, topics(3), sync=True)
    with DataDirectory.open(folder) as directory:
        assert len(directory.topics["orders"].partitions) == 3


def test_empty_topics_of_an_import_that_died_are_deleted_by_the_next(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    die_before_the_commit(folder)
    logs = TargetLogs(folder, 0)
    done = logs.commit(staged(logs), topics(2, **{"segment.bytes": "1048576"}), sync=True)
    assert done.created == ("orders",)
    with DataDirectory.open(folder) as directory:
        assert directory.topics["orders"].id == TOPIC_ID
        assert directory.topics["orders"].config == {"retention.ms": "-1", "segment.bytes": "1048576"}
        assert [directory.log("orders", number).end_offset for number in range(2)] == [10, 10]
    assert not list(logs.area.folder.iterdir())


def test_they_are_deleted_even_if_nothing_is_imported(tmp_path: Path) -> None:
    die_before_the_commit(tmp_path / "log")
    TargetLogs(tmp_path / "log", 0).check({})
    with DataDirectory.open(tmp_path / "log") as directory:
        assert not directory.topics


def test_topics_that_have_got_records_or_another_id_stay(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    die_before_the_commit(folder)
    with DataDirectory.open(folder) as directory:
        directory.log("orders", 0).append(batch(0))
    TargetLogs(folder, 0).check({})
    die_before = TargetLogs(folder, 0)._created
    die_before.write({"orders": UUID(int=1)})
    TargetLogs(folder, 0).check({})
    with DataDirectory.open(folder) as directory:
        assert directory.log("orders", 0).end_offset == 5
    assert not die_before.path.exists()


def test_a_commit_that_is_refused_leaves_no_topics(tmp_path: Path) -> None:
    logs = TargetLogs(tmp_path / "log", 0)
    files = staged(logs)
    refusing = mock.patch.object(DataDirectory, "commit_staged", side_effect=InvalidInput("no"))
    with refusing, pytest.raises(InvalidInput):
        logs.commit(files, topics(), sync=True)
    with DataDirectory.open(tmp_path / "log") as directory:
        assert not directory.topics
    assert not list(logs.area.folder.iterdir())


def test_topics_that_a_pending_commit_needs_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk: the commit is decided, and cannot be finished now."""
    folder = tmp_path / "log"
    logs = TargetLogs(folder, 0)
    files = staged(logs)

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("octavo.log.staging.commits.StagedCommits._append", die)
        with pytest.raises(KeyboardInterrupt):
            logs.commit(files, topics(2), sync=True)
    with monkeypatch.context() as patch:
        patch.setattr(DataDirectory, "_resolve", lambda _: None)
        TargetLogs(folder, 0).check({})
    with DataDirectory.open(folder) as directory:
        assert directory.log("orders", 0).end_offset == 10
    TargetLogs(folder, 0).check({})
    with DataDirectory.open(folder) as directory:
        assert directory.log("orders", 0).end_offset == 10


def test_a_note_that_is_none_is_refused_by_its_path(tmp_path: Path) -> None:
    with DataDirectory.open(tmp_path / "log"):
        pass
    logs = TargetLogs(tmp_path / "log", 0)
    logs.area.folder.mkdir()
    logs._created.path.write_text('{"orders": 1}')
    with pytest.raises(BadDirectory, match=r"imported-topics-.* remove it"):
        logs.check({})
