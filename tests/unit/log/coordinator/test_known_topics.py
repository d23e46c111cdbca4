"""What coordinators of groups know of topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octavo.log.append.readiness import MustWait, without_pause
from octavo.log.coordinator.known_topics import KnownTopics
from octavo.log.directory.data_folder import DataFolder
from tests.unit.log.coordinator.parts import opened


def test_the_version_grows_when_a_topic_is_there_and_not_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that looks in between would not look again."""
    seen: list[tuple[bool, int]] = []
    make = DataFolder.make_partitions
    with opened(tmp_path) as data:
        known = KnownTopics(data)

        def look(folder: DataFolder, *arguments: Any) -> None:
            seen.append((known.by_name("new") is not None, known.version))
            make(folder, *arguments)

        monkeypatch.setattr(DataFolder, "make_partitions", look)
        before = known.version
        data.create_topic("new")
        assert seen == [(False, before)]
        assert known.version > before
        assert known.by_name("new") is not None
        created = known.version
        data.delete_topic("new")
        assert known.version > created


def test_names_are_matched_by_threads_that_may_pause(tmp_path: Path) -> None:
    with opened(tmp_path) as data:
        known = KnownTopics(data)
        with pytest.raises(MustWait), without_pause():
            known.names()
        assert set(known.names()) == set(data.topics)
