"""Which folders a broker serves, whose they are, and how a start ends that is interrupted."""

from __future__ import annotations

import re
import shutil
import signal
import threading
from argparse import Namespace
from pathlib import Path

import pytest

import octavo
from octavo.cli import main
from octavo.cli import serve as command
from octavo.errors import BadDirectory, InvalidConfig
from octavo.log import handover
from octavo.log.directory.data_directory import DataDirectory
from octavo.log.metadata.cluster_log import FOLDER
from octavo.log.names import CLEAN_SHUTDOWN
from tests.unit.log.logs import make_batch
from tests.unit.log.metadata.test_authority import WAYS, make_directory


def test_a_new_directory_belongs_to_the_node_of_the_settings(tmp_path: Path) -> None:
    with octavo.serve(tmp_path / "data", config={"node.id": "7"}) as server:
        assert server.broker.node_id == 7
    with octavo.serve(tmp_path / "data") as server:
        assert server.broker.node_id == 7
    with pytest.raises(BadDirectory, match="it belongs to node 7, not to node 8"):
        octavo.serve(tmp_path / "data", config={"broker.id": "8"})
    assert (tmp_path / "data" / CLEAN_SHUTDOWN).exists()


def test_what_a_handover_prints_is_taken(tmp_path: Path) -> None:
    with DataDirectory.open([tmp_path / "a", tmp_path / "b"]) as data:
        data.create_topic("events", 4)
    settings = dict(handover([tmp_path / "a", tmp_path / "b"]).settings)
    with octavo.serve(listen="127.0.0.1:0", config=settings) as server:
        assert len(server.directory.topics["events"].partitions) == 4
        assert server.directory.folders == [tmp_path / "a", tmp_path / "b"]


def separate_metadata(tmp_path: Path) -> dict[str, str]:
    """Make a directory whose metadata are in a folder of their own, as Kafka's may be."""
    with DataDirectory.open([tmp_path / "meta", tmp_path / "data"]) as data:
        data.create_topic("events", 2)
    for partition in (tmp_path / "meta").glob("events-*"):
        shutil.move(partition, tmp_path / "data")
    return {"log.dirs": str(tmp_path / "data"), "metadata.log.dir": str(tmp_path / "meta")}


def test_metadata_in_a_folder_of_their_own_are_found(tmp_path: Path) -> None:
    with octavo.serve(config=separate_metadata(tmp_path)) as server:
        assert list(server.directory.topics) == ["events"]
        assert server.warnings == []
    assert not (tmp_path / "data" / FOLDER).exists()


def test_partitions_without_their_metadata_are_not_served(tmp_path: Path) -> None:
    separate_metadata(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadDirectory, match=r"name their folder by metadata\.log\.dir"):
        octavo.serve(tmp_path / "data")
    assert sorted(tmp_path.rglob("*")) == before


def test_new_metadata_are_in_one_of_the_log_dirs(tmp_path: Path) -> None:
    config = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b", "metadata.log.dir": f"{tmp_path}/b"}
    with octavo.serve(config=config):
        assert (tmp_path / "b" / FOLDER).exists()
    with pytest.raises(InvalidConfig, match="new ones are kept in one of"):
        octavo.serve(config={"log.dirs": str(tmp_path / "c"), "metadata.log.dir": str(tmp_path / "d")})
    assert not (tmp_path / "c").exists()


def test_a_directory_of_a_larger_cluster_is_refused_in_words_for_operators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, message = WAYS["another broker"]
    change(make_directory(tmp_path))
    assert main(["serve", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert re.search(message, said)
    assert said.endswith(". It can be read, but not served\n")


def test_a_start_tells_what_it_checks_and_ends_at_a_signal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with octavo.serve(tmp_path / "data") as server:
        server.broker.create_topic("events", 2, {})
        for number in range(2):
            server.directory.log("events", number).append(make_batch())
    (tmp_path / "data" / CLEAN_SHUTDOWN).unlink()
    go_on = command._Start.go_on

    def interrupted(self: command._Start, progress: object) -> None:
        go_on(self, progress)  # type: ignore[arg-type] # what it is called with
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(command._Start, "go_on", interrupted)
    assert threading.current_thread() is threading.main_thread()
    given: dict[str, object] = {
        "data": str(tmp_path / "data"),
        "listen": None,
        "file": None,
        "config": None,
        "override": [],
    }
    assert command.run(Namespace(**given, adopt=False)) == 0
    out, said = capsys.readouterr()
    assert out == ""
    assert "octavo: checking events-" in said
    assert said.endswith("octavo: stopped before the directory was open; it will be checked again\n")
    assert not (tmp_path / "data" / CLEAN_SHUTDOWN).exists()
    with octavo.serve(tmp_path / "data") as server:
        assert [server.directory.log("events", number).end_offset for number in range(2)] == [1, 1]
