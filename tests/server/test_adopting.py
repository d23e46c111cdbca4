"""Mend 1.10: partitions that the metadata do not know are named, and served once somebody has them adopted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from octavo.cli import main
from octavo.errors import BadDirectory, DirectoryLocked, InvalidInput, OctavoError
from octavo.log import DataDirectory
from octavo.log.metadata.cluster_log import FOLDER
from octavo.log.names import META_PROPERTIES, PARTITION_METADATA
from octavo.server.serving import Server, serve
from tests.unit.log.directories import left_as_it_was
from tests.unit.log.logs import make_batch

_COUNT = 5


def source(folder: Path, *topics: str) -> Path:
    with DataDirectory.open(folder) as data:
        for topic in topics:
            data.create_topic(topic, 2, {"retention.ms": "-1"})
            for number in range(2):
                if topic != "__consumer_offsets":  # which has other records
                    data.log(topic, number).append(make_batch(_COUNT))
    return folder


def copied(tmp_path: Path, *, with_ids: bool, beside_metadata: bool) -> Path:
    """A directory of partitions that were copied from another."""
    here = tmp_path / "here"
    if beside_metadata:
        source(here, "own")
    here.mkdir(exist_ok=True)
    for path in source(tmp_path / "there", "orders", "__consumer_offsets").iterdir():
        if path.is_dir() and path.name != FOLDER:
            shutil.copytree(path, here / path.name)
            if not with_ids:
                (here / path.name / PARTITION_METADATA).unlink()
    return here


def consumed(server: Server, topic: str) -> int:
    """How many records of the first partition a client gets."""
    consumer = Consumer({"bootstrap.servers": server.bootstrap_servers, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(_COUNT, timeout=60)
    consumer.close()
    return sum(each.error() is None for each in found)


@pytest.mark.parametrize(("with_ids", "beside_metadata"), [(False, False), (False, True), (True, True)])
def test_they_are_named_at_the_start_and_not_touched(tmp_path: Path, *, with_ids: bool, beside_metadata: bool) -> None:
    here = copied(tmp_path, with_ids=with_ids, beside_metadata=beside_metadata)
    size = (here / "orders-0" / "00000000000000000000.log").stat().st_size
    said: list[str] = []
    with serve(here, say=said.append) as server:
        assert "orders" not in server.directory.topics
    told = "\n".join(said)
    assert f"orders-0 ({size:,} bytes), orders-1 ({size:,} bytes)" in told
    assert "--adopt" in told
    assert "own-0" not in told


def test_without_any_metadata_those_of_a_cluster_are_named_in_the_refusal(tmp_path: Path) -> None:
    here = copied(tmp_path, with_ids=True, beside_metadata=False)
    size = (here / "orders-0" / "00000000000000000000.log").stat().st_size
    with left_as_it_was(here), pytest.raises(BadDirectory, match=f"--adopt.*orders-1 \\({size:,} bytes\\)"):
        serve(here)


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("beside_metadata", [False, True])
def test_they_are_served_once_they_are_adopted(tmp_path: Path, *, with_ids: bool, beside_metadata: bool) -> None:
    here = copied(tmp_path, with_ids=with_ids, beside_metadata=beside_metadata)
    said: list[str] = []
    with serve(here, say=said.append, adopt=True) as server:
        assert consumed(server, "orders") == _COUNT
        assert dict(server.directory.topics["orders"].config) == {"retention.ms": "-1"}
        assert dict(server.directory.topics["__consumer_offsets"].config) == {"cleanup.policy": "compact"}
        assert len(server.directory.topics["orders"].partitions) == 2
    assert any("orders-0, orders-1" in each for each in said)
    said.clear()
    with serve(here, say=said.append, adopt=True) as server:
        assert "orders" in server.directory.topics
    assert not said


def test_a_directory_whose_metadata_log_is_gone_is_adopted(tmp_path: Path) -> None:
    here = source(tmp_path, "orders")
    shutil.rmtree(here / FOLDER)
    with left_as_it_was(here), pytest.raises(OctavoError, match="metadata"):
        serve(here, adopt=True)  # `meta.properties` say that there are metadata somewhere
    (here / META_PROPERTIES).unlink()
    with serve(here, adopt=True, say=lambda _: None) as server:
        assert consumed(server, "orders") == _COUNT


@pytest.mark.parametrize("contradiction", ["ids", "names", "number"])
def test_folders_that_contradict_each_other_are_refused(tmp_path: Path, contradiction: str) -> None:
    here = copied(tmp_path, with_ids=True, beside_metadata=True)
    ids = {name: (here / name / PARTITION_METADATA) for name in ("orders-0", "orders-1", "__consumer_offsets-0")}
    if contradiction == "ids":
        shutil.copy(ids["__consumer_offsets-0"], ids["orders-1"])
    elif contradiction == "names":
        for name in ("orders-0", "orders-1"):
            shutil.copy(ids["__consumer_offsets-0"], ids[name])
    else:
        shutil.copytree(here / "own-0", here / "own-7")
    with left_as_it_was(here), pytest.raises(BadDirectory, match="move"):
        serve(here, adopt=True)


def test_the_same_partition_in_two_folders_is_refused(tmp_path: Path) -> None:
    here = copied(tmp_path, with_ids=False, beside_metadata=False)
    other = tmp_path / "other"
    shutil.copytree(here / "orders-0", other / "orders-0")
    with left_as_it_was(here), pytest.raises(BadDirectory, match="same partition"):
        serve(config={"log.dirs": f"{here},{other}"}, adopt=True)


def test_a_directory_in_use_and_a_member_of_a_cluster_adopt_nothing(tmp_path: Path) -> None:
    here = copied(tmp_path, with_ids=False, beside_metadata=True)
    with DataDirectory.open(here), pytest.raises(DirectoryLocked):
        serve(here, adopt=True)
    member = {
        "process.roles": "broker",
        "node.id": "3",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "controller.listener.names": "CONTROLLER",
    }
    with pytest.raises(InvalidInput, match="adopts nothing"):
        serve(here, config=member, adopt=True)


def test_the_command_has_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = copied(tmp_path, with_ids=True, beside_metadata=True)
    shutil.copytree(here / "own-0", here / "own-7")
    assert main(["serve", "--data", str(here), "--adopt"]) == 2
    assert "move it away" in capsys.readouterr().err
